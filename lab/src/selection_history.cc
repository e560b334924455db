#include "aah/lab/selection_history.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "aah/error.h"
#include "aah/lab/run_log.h"
#include "aah/model/run_folder.h"

namespace aah {
namespace {

void CheckRecord(const SelectionRecord& record, size_t layers, size_t heads,
                 const std::string& path) {
  AAH_CHECK(record.layer >= 0 && static_cast<size_t>(record.layer) < layers, path, ": layer ",
            record.layer, " where the model has ", layers, " layers");
  const std::vector<int32_t>& candidates = record.candidates;
  const bool ascending = std::adjacent_find(candidates.begin(), candidates.end(),
                                            std::greater_equal<>()) == candidates.end();
  AAH_CHECK(!candidates.empty() && candidates.front() >= 1 && ascending, path,
            ": the candidates in step ", record.step,
            ": expected windows of at least 1, ascending");
  AAH_CHECK(record.weights.size() == heads, path, ": weights of ", record.weights.size(),
            " heads in step ", record.step, " where the model has ", heads, " heads");
  for (const std::vector<double>& row : record.weights) {
    AAH_CHECK(row.size() == candidates.size(), path, ": ", row.size(),
              " weights of a head in step ", record.step, " for ", candidates.size(),
              " candidates");
    for (const double weight : row) {
      AAH_CHECK(weight >= 0 && weight <= 1, path, ": a weight of ", weight, " in step ",
                record.step, ": expected one from 0 to 1");
    }
  }
}

}  // namespace

SelectionHistory::SelectionHistory(const RunLog& log) {
  const std::string path = SelectionPath(log.folder);
  const auto layers = static_cast<size_t>(log.config.model.layers);
  const auto heads = static_cast<size_t>(log.config.model.heads);
  if (log.selection.empty()) return;
  candidates_ = log.selection.front().candidates;
  for (const SelectionRecord& record : log.selection) {
    CheckRecord(record, layers, heads, path);
    AAH_CHECK(record.candidates == candidates_, path, ": other candidates in step ", record.step,
              " than in step ", log.selection.front().step);
    Layers& step = steps_[record.step];
    step.resize(layers);
    step[static_cast<size_t>(record.layer)] = &record;
  }
  // A run that goes on may have written some layers of its last step.
  std::erase_if(steps_, [](const auto& entry) {
    return std::find(entry.second.begin(), entry.second.end(), nullptr) != entry.second.end();
  });
  for (int32_t& candidate : candidates_) {
    candidate = static_cast<int32_t>(std::min<int64_t>(candidate, log.config.model.context));
  }
}

std::vector<int64_t> SelectionHistory::Steps() const {
  std::vector<int64_t> steps;
  for (const auto& [step, unused] : steps_) steps.push_back(step);
  return steps;
}

std::optional<int64_t> SelectionHistory::StepAt(int64_t step) const {
  const auto after = steps_.upper_bound(step);
  if (after == steps_.begin()) return {};
  return std::prev(after)->first;
}

std::vector<SelectionDecision> SelectionDecisions(const std::vector<StepRecord>& steps) {
  std::vector<SelectionDecision> decisions;
  for (const StepRecord& record : steps) {
    if (!record.selection || !record.selection->decided) continue;
    decisions.push_back({record.step, record.selection->moved, record.selection->duality_gap});
  }
  return decisions;
}

}  // namespace aah
