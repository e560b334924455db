#include "train/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "aah/error.h"

namespace aah {

RunLock::RunLock(const std::string& run_folder)
    : descriptor_(open(run_folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  AAH_CHECK(descriptor_ >= 0, run_folder, ": cannot be opened: ", std::strerror(errno));
  // File systems that know no locks are used without one.
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(descriptor_);
    ThrowError(ErrorKind::kBadInput, run_folder,
               ": another process trains in this folder; wait for it or choose another `out`");
  }
}

RunLock::~RunLock() { close(descriptor_); }

}  // namespace aah
