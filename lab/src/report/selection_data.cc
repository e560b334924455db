#include "report/selection_data.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "aah/io/json.h"
#include "aah/lab/plan_text.h"
#include "aah/lab/run_log.h"
#include "aah/lab/selection_history.h"
#include "aah/lab/window_history.h"
#include "aah/model/learned_options.h"
#include "aah/model/run_folder.h"
#include "report/window_data.h"

namespace aah {
namespace {

// The steps that belong to a search, in order.
std::vector<const StepRecord*> SelectionSteps(const std::vector<StepRecord>& steps) {
  std::vector<const StepRecord*> found;
  for (const StepRecord& record : steps) {
    if (record.selection) found.push_back(&record);
  }
  return found;
}

Json PhasesJson(const std::vector<const StepRecord*>& steps) {
  Json phases = Json::array();
  for (const StepRecord* record : steps) {
    if (phases.empty() || phases.back()[0] != record->selection->phase) {
      phases.push_back({record->selection->phase, record->step, record->step});
    }
    phases.back()[2] = record->step;
  }
  return phases;
}

// Of many steps some, evenly spread: means would blur where phases meet.
Json CurveJson(const std::vector<const StepRecord*>& steps) {
  const auto list = [&](const auto& value) {
    Json values = Json::array();
    const size_t count = std::min(steps.size(), kMostSelectionPoints);
    for (size_t i = 0; i < count; ++i) {
      const size_t last = std::max<size_t>(count, 2) - 1;
      values.push_back(value(*steps[i * (steps.size() - 1) / last]));
    }
    return values;
  };
  const auto figure = [&](double SelectionSummary::* member) {
    return list([=](const StepRecord& record) { return Rounded((*record.selection).*member); });
  };
  return {{"step", list([](const StepRecord& record) { return record.step; })},
          {"target", figure(&SelectionSummary::target_cost)},
          {"expected", figure(&SelectionSummary::expected_cost)},
          {"hard", figure(&SelectionSummary::hard_cost)},
          {"entropy", figure(&SelectionSummary::entropy)},
          {"temperature", figure(&SelectionSummary::temperature)}};
}

Json DecisionsJson(const std::vector<SelectionDecision>& decisions) {
  Json rows = Json::array();
  for (const SelectionDecision& decision : decisions) {
    rows.push_back({decision.step, decision.moved, Rounded(decision.duality_gap)});
  }
  return rows;
}

Json WeightsJson(const SelectionHistory::Layers& layers) {
  Json weights = Json::array();
  for (const SelectionRecord* layer : layers) {
    Json rows = Json::array();
    for (const std::vector<double>& head : layer->weights) {
      Json row = Json::array();
      for (const double weight : head) row.push_back(std::lround(1000 * weight));
      rows.push_back(row);
    }
    weights.push_back(rows);
  }
  return weights;
}

}  // namespace

Json SelectionData(const RunLog& log) {
  const std::vector<const StepRecord*> steps = SelectionSteps(log.metrics.steps);
  const SelectionHistory history(log);
  if (steps.empty() && log.selection.empty()) return nullptr;
  const WindowHistory windows(log);
  const std::vector<SelectionDecision> decisions = SelectionDecisions(log.metrics.steps);
  Json snapshots = Json::array();
  for (const int64_t step : Spread(history.Steps(), kMostSelectionSnapshots)) {
    Json snapshot = {{"step", step}, {"weights", WeightsJson(history.At(step))}};
    if (!decisions.empty() && step >= decisions.front().step) {
      snapshot["windows"] = windows.At(step);
    }
    snapshots.push_back(snapshot);
  }
  const WindowBudget budget = BudgetOf(log.config.attention.learned, log.config.model.context);
  return {
      {"candidates", history.candidates()},
      {"budget", {{"value", budget.value}, {"text", CostText(budget.value, budget)}}},
      {"phases", PhasesJson(steps)},
      {"curve", CurveJson(steps)},
      {"decisions", DecisionsJson(decisions)},
      {"snapshots", snapshots},
      {"all_snapshots", history.Steps().size()},
  };
}

}  // namespace aah
