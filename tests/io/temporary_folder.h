#ifndef AAH_TESTS_IO_TEMPORARY_FOLDER_H_
#define AAH_TESTS_IO_TEMPORARY_FOLDER_H_

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "aah/io/file.h"

namespace aah {

// A fresh folder that goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "aah-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  // How many entries it has, temporary files included.
  int entry_count() const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      (void)entry;
      ++count;
    }
    return count;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace aah

#endif  // AAH_TESTS_IO_TEMPORARY_FOLDER_H_
