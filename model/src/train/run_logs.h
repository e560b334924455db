#ifndef AAH_MODEL_SRC_TRAIN_RUN_LOGS_H_
#define AAH_MODEL_SRC_TRAIN_RUN_LOGS_H_

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "aah/io/file.h"
#include "aah/model/attention_variant.h"
#include "aah/model/checkpoint.h"
#include "aah/model/run_folder.h"

namespace aah {

// The logs of a run folder, open for appending: metrics.jsonl, windows.jsonl, groups.jsonl,
// selection.jsonl and TensorBoard events.
class RunLogs {
 public:
  // Cuts the logs back to `sizes` (all 0: a new run) and goes on behind. Throws
  // aah::Error(kBadInput) where one of the .jsonl files is shorter than that.
  RunLogs(const std::string& run_folder, const LogSizes& sizes);

  void Append(const StepRecord& record);
  void Append(const ValidationRecord& record);
  void Append(const SummaryRecord& record);

  // Appends the windows, [layers][heads], of the layers that `control` has decided in this step,
  // and others that differ from those written last; and the groups that it has made.
  void AppendWindows(int64_t step, const std::vector<std::vector<int32_t>>& windows,
                     const ControlView& control);

  // Appends the weights of a selection, layer by layer, where it has any to keep.
  void AppendSelection(int64_t step, int64_t layers, const SelectionView& selection);

  // Flushes to the disk and says how far the logs reach.
  LogSizes Sync();

 private:
  void AppendScalar(int64_t step, const char* tag, double value);
  void AppendEvent(const std::string& bytes);

  AppendLog metrics_;
  AppendLog windows_;
  AppendLog groups_;
  AppendLog selection_;
  std::string events_path_;
  std::ofstream events_;
  std::vector<std::vector<int32_t>> last_windows_;
};

}  // namespace aah

#endif  // AAH_MODEL_SRC_TRAIN_RUN_LOGS_H_
