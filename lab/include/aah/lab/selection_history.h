#ifndef AAH_LAB_SELECTION_HISTORY_H_
#define AAH_LAB_SELECTION_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "aah/lab/run_log.h"
#include "aah/model/run_folder.h"

namespace aah {

// The selection weights of a run that learns its windows, whenever they were kept. Borrows the
// log's records.
class SelectionHistory {
 public:
  using Layers = std::vector<const SelectionRecord*>;  // one per layer

  // Throws aah::Error where the log speaks of layers or heads that the model does not have, where
  // candidates are not ascending or not always the same, or weights not in [0, 1].
  explicit SelectionHistory(const RunLog& log);

  // Windows in tokens, clamped to the context; empty where no weights were kept.
  const std::vector<int32_t>& candidates() const { return candidates_; }

  // Steps in which the weights of all layers were kept. Ascending.
  std::vector<int64_t> Steps() const;
  // The newest of them that is not after `step`; absent where there is none.
  std::optional<int64_t> StepAt(int64_t step) const;
  // REQUIRES: one of Steps().
  const Layers& At(int64_t step) const { return steps_.at(step); }

 private:
  std::vector<int32_t> candidates_;
  std::map<int64_t, Layers> steps_;
};

// A choice of the plan among the steps of a run.
struct SelectionDecision {
  int64_t step = 0;
  int64_t moved = 0;  // heads whose window it changed
  double duality_gap = 0;
};
std::vector<SelectionDecision> SelectionDecisions(const std::vector<StepRecord>& steps);

}  // namespace aah

#endif  // AAH_LAB_SELECTION_HISTORY_H_
