#ifndef AAH_LAB_INSPECT_H_
#define AAH_LAB_INSPECT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aah/lab/run_log.h"
#include "aah/lab/selection_history.h"
#include "aah/lab/window_history.h"
#include "aah/model/run_folder.h"
#include "aah/window_budget.h"

namespace aah {

// A part of a training step: mean seconds over all steps, and over those in which controllers
// decided (NaN where there is none).
struct PartTime {
  std::string part;
  double seconds = 0;
  double deciding_seconds = 0;
};

// Where the search for windows of a run stands, seen at one step.
struct SelectionInspection {
  SelectionSummary summary;  // as logged in the step
  WindowBudget budget;
  std::vector<SelectionDecision> decisions;  // of the whole run
  int64_t weights_step = 0;                  // of the weights; 0: none were kept up to the step
  std::vector<int32_t> candidates;           // tokens; empty where there are no weights
  std::vector<std::vector<std::vector<double>>> weights;  // [layers][heads][candidates]
  std::string plan;  // the file of the newest plan; empty where there is none
};

// What a run's controllers did, or how its windows are learned, seen at one step.
struct Inspection {
  std::string name;
  std::string attention;               // variant of the config
  int64_t step = 0;                    // looked at
  int64_t last_step = 0;               // of the log; 0: nothing is logged yet
  int64_t steps = 0;                   // of the config
  int context = 0;                     // tokens
  bool decided = false;                // whether controllers decided anything in the whole run
  HeadMap windows;                     // in force at `step`, tokens
  int64_t window_step = 0;             // the last step, up to `step`, in which a window changed
  double allocated_context_ratio = 0;  // at `step`; NaN where not logged
  double visible_pair_ratio = 0;
  HeadMap change_counts;                         // over the whole run
  std::vector<int64_t> decision_counts;          // [layers] over the whole run
  std::vector<std::vector<GroupRecord>> groups;  // [layers] newest up to `step`, finest level first
  std::optional<SelectionInspection> selection;  // of runs that learn their windows
  std::vector<PartTime> times;                   // they add up to a step; empty: nothing logged
  int64_t timed_steps = 0;
  int64_t deciding_steps = 0;
};

// Throws aah::Error where `step` is not one of the log's (the message names the nearest that is),
// or the log contradicts the config. Without a step: the last one.
Inspection Inspect(const RunLog& log, std::optional<int64_t> step);

struct InspectionTextOptions {
  bool colour = false;       // 256-colour control sequences
  std::optional<int> layer;  // whose tree and weights to draw; absent: all layers'
};

// For a terminal of 80 columns: heat maps of windows and of their changes (layer x head); the
// groups of each layer as a tree with their features, or the search with the weights of each head
// (of a large model their means per layer); the time of each part of a step.
std::string InspectionText(const Inspection& inspection, const InspectionTextOptions& options);

// One JSON object with the fields above under their own names; numbers not measured are null, and
// `selection` is there only where windows are learned, with the fields of the summary as its own.
std::string InspectionJson(const Inspection& inspection);

// Tables to draw plots from, written whole or not at all into `folder`, which is made: windows.csv
// (a head a row: step, layer, head, window, groups from the finest level on, raw_index, index) and
// siblings.csv (a group a row: step, layer, level, group, parent, heads, raw_index, index, window,
// nine features). All that is logged, or, with a step, what was in force then. Returns their paths.
std::vector<std::string> WriteInspectionTables(const RunLog& log, std::optional<int64_t> step,
                                               const std::string& folder);

}  // namespace aah

#endif  // AAH_LAB_INSPECT_H_
