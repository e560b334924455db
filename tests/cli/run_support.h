#ifndef AAH_TESTS_CLI_RUN_SUPPORT_H_
#define AAH_TESTS_CLI_RUN_SUPPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aah/error.h"
#include "aah/lab/run_log.h"
#include "aah/model/run_folder.h"
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

// Records as training logs them; a decision's groups are {0}, its indices 0.
WindowRecord Window(int64_t step, int layer, int head, int window);
WindowRecord DecidedWindow(int64_t step, int layer, int head, int window);

// With features 0.5, 1.5, ..., 8.5, indices 1 and a window of 16.
GroupRecord Group(int64_t step, int layer, int level, int group, std::optional<int> parent,
                  std::vector<int32_t> heads);

// A run of 8 steps of SmallConfig that learns its windows among 16, 32 and 64 within a quarter of
// the visible pairs: warmup in steps 1 and 2, search in 3 and 4, a plan from 5 on that is chosen
// again in 7, where it moves a head. Weights are kept in steps 3, 4, 5 and 7.
RunLog LearnedLog();

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
