#ifndef AAH_LAB_RUN_LOG_H_
#define AAH_LAB_RUN_LOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aah/lab/machine.h"
#include "aah/lab/table.h"
#include "aah/model/run_folder.h"
#include "aah/model/train_config.h"

namespace aah {

// All that a run folder logs, read back for tables and reports.
struct RunLog {
  std::string name;  // the folder's last component
  std::string folder;
  RunConfig config;
  RunMetrics metrics;
  std::vector<WindowRecord> windows;
  std::vector<GroupRecord> groups;
  std::vector<SelectionRecord> selection;
  bool has_plan = false;  // whether there is a plan.json
  std::optional<MachineFacts> machine;
};

// Throws aah::Error where `folder` is no run folder or a log is malformed.
RunLog ReadRunLog(const std::string& folder);

// A run in figures, NaN where nothing was logged. Of a finished run its summary; of an unfinished
// one what the summary would be if it ended here.
struct RunFigures {
  std::string name;
  int64_t step = 0;
  int64_t steps = 0;
  double validation_loss = 0;
  double bits_per_byte = 0;
  double allocated_context_ratio = 0;
  double visible_pair_ratio = 0;
  double flops_per_token = 0;
  double tokens_per_second = 0;
  double speed = 0;  // tokens per second over those of the first run
  double attention_share = 0;
  double control_share = 0;
  double peak_memory_bytes = 0;
  double parameters = 0;
  double seconds = 0;
};

std::vector<RunFigures> Compare(const std::vector<RunLog>& logs);

// The one table of a comparison, a row a run. flops_per_token and control_share stand on the report
// page alone: with them a terminal of 120 columns would not hold it.
Table ComparisonTable(const std::vector<RunFigures>& figures);

}  // namespace aah

#endif  // AAH_LAB_RUN_LOG_H_
