#ifndef AAH_TESTS_CLI_RUN_SUPPORT_H_
#define AAH_TESTS_CLI_RUN_SUPPORT_H_

#include <string>

#include "aah/error.h"
#include "aah/model/train_config.h"

namespace aah {

// An empty folder that vanishes with the object.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// 2 layers of 2 heads, context 64, 4 steps, into `out`.
RunConfig SmallConfig(const std::string& out);

// Writes the logs of a run of `config` as training would: its config, steps 1 to `steps` with
// losses 3, 2.5, 2, ..., 1000 tokens in one second each, a validation after the last one of
// loss 1.5, and, if finished, a summary with validation loss 1.25.
void WriteRun(const RunConfig& config, int steps, bool finished);

void AppendText(const std::string& path, const std::string& text);

// The message of the aah::Error that `call` throws; empty where it throws none.
template <typename Call>
std::string ErrorOf(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace aah

#endif  // AAH_TESTS_CLI_RUN_SUPPORT_H_
