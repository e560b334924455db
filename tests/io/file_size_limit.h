#ifndef AAH_TESTS_IO_FILE_SIZE_LIMIT_H_
#define AAH_TESTS_IO_FILE_SIZE_LIMIT_H_

#include <sys/resource.h>

#include <csignal>

namespace aah {

// While it lives, no file of this process can grow over `bytes`: to the code that writes, a disk
// that is full.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    previous_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &previous_);
    rlimit limit = previous_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &previous_);
    std::signal(SIGXFSZ, previous_handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit previous_ = {};
  void (*previous_handler_)(int) = nullptr;
};

}  // namespace aah

#endif  // AAH_TESTS_IO_FILE_SIZE_LIMIT_H_
