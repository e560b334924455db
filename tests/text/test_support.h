#ifndef AAH_TESTS_TEXT_TEST_SUPPORT_H_
#define AAH_TESTS_TEXT_TEST_SUPPORT_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <string>

#include "aah/error.h"
#include "aah/io/file.h"

namespace aah {

// A folder that is gone at the end of the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "aah-text-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string Path(const std::string& name) const { return (path_ / name).string(); }
  std::string Write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    WriteFileAtomically(path_ / name, content);
    return Path(name);
  }

 private:
  std::filesystem::path path_;
};

// The message of the aah::Error(kBadInput) that `action` throws; a test failure where it does not.
inline std::string BadInput(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadInput) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "expected an error";
  return "";
}

}  // namespace aah

#endif  // AAH_TESTS_TEXT_TEST_SUPPORT_H_
