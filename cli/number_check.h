#ifndef AAH_CLI_NUMBER_CHECK_H_
#define AAH_CLI_NUMBER_CHECK_H_

#include <string>

namespace aah {

// For CLI::Validator. Empty, or what is wrong: the parser would take -1 for the largest number.
inline std::string RefuseNegative(const std::string& number) {
  return number.starts_with('-') ? "expected an integer of at least 0, got " + number : "";
}

}  // namespace aah

#endif  // AAH_CLI_NUMBER_CHECK_H_
