#ifndef AAH_ERROR_H_
#define AAH_ERROR_H_

#include <sstream>
#include <stdexcept>
#include <string>

namespace aah {

// Who can mend what went wrong. A command-line program exits with the number.
enum class ErrorKind : int {
  kMachine = 1,   // the machine failed: disk full, out of memory, a device error
  kBadInput = 2,  // what the user gave is wrong: a file, a setting, a shape
};

// The one exception this project throws on purpose. Its message is one line that says what was
// expected, what came and what to do.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}

  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

namespace internal {

template <typename... Parts>
std::string Concatenate(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

}  // namespace internal

// Throws aah::Error of the given kind; the parts are written one after another.
template <typename... Parts>
[[noreturn]] void ThrowError(ErrorKind kind, const Parts&... parts) {
  throw Error(kind, internal::Concatenate(parts...));
}

}  // namespace aah

// Throws aah::Error(kBadInput) with the concatenated message unless `condition` holds. For what
// callers and users get wrong; never for our own invariants.
#define AAH_CHECK(condition, ...)                                  \
  do {                                                             \
    if (!(condition)) {                                            \
      ::aah::ThrowError(::aah::ErrorKind::kBadInput, __VA_ARGS__); \
    }                                                              \
  } while (false)

#endif  // AAH_ERROR_H_
