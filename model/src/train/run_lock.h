#ifndef AAH_MODEL_SRC_TRAIN_RUN_LOCK_H_
#define AAH_MODEL_SRC_TRAIN_RUN_LOCK_H_

#include <string>

namespace aah {

// Keeps a run folder to one training process; the system lets go of it when the process ends,
// however it ends.
class RunLock {
 public:
  // Throws aah::Error(kBadInput) where another process holds the folder.
  explicit RunLock(const std::string& run_folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace aah

#endif  // AAH_MODEL_SRC_TRAIN_RUN_LOCK_H_
