#ifndef AAH_TESTS_IO_ERROR_OF_H_
#define AAH_TESTS_IO_ERROR_OF_H_

#include <functional>
#include <string>

#include "aah/error.h"

namespace aah {

// The message of the aah::Error that `function` throws; "(nothing was thrown)" where none is. Plain
// strings compare much faster, for the compiler, than a matcher made anew for every lambda.
inline std::string ErrorOf(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

// Its kind; kMachine + 100 where nothing is thrown.
inline ErrorKind KindThrownBy(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.kind();
  }
  return static_cast<ErrorKind>(101);
}

}  // namespace aah

#endif  // AAH_TESTS_IO_ERROR_OF_H_
