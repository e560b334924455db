#include "aah/lab/inspect.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "aah/error.h"
#include "aah/io/json.h"
#include "aah/lab/run_log.h"
#include "aah/lab/selection_history.h"
#include "aah/lab/window_history.h"
#include "aah/model/config.h"
#include "aah/model/learned_options.h"
#include "aah/model/run_folder.h"
#include "aah/window_budget.h"

namespace aah {
namespace {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

int64_t LastStep(const RunLog& log) {
  int64_t last = log.metrics.steps.empty() ? 0 : log.metrics.steps.back().step;
  if (!log.windows.empty()) last = std::max(last, log.windows.back().step);
  return last;
}

int64_t CheckedStep(const RunLog& log, std::optional<int64_t> step, int64_t last) {
  if (!step) return last;
  AAH_CHECK(last > 0, "step ", *step, " of '", log.folder,
            "': the run has logged no step yet; wait for the first, or leave the step out");
  const int64_t nearest = std::clamp<int64_t>(*step, 1, last);
  AAH_CHECK(*step == nearest, "step ", *step, " of '", log.folder, "': the run has steps 1 to ",
            last, "; the nearest is ", nearest);
  return nearest;
}

// The record of the last step up to `step`; null where there is none.
const StepRecord* RecordAt(const std::vector<StepRecord>& steps, int64_t step) {
  const StepRecord* found = nullptr;
  for (const StepRecord& record : steps) {
    if (record.step <= step) found = &record;
  }
  return found;
}

bool Deciding(const StepRecord& record) {
  return record.control && record.control->path == "update";
}

struct StepParts {
  double attention = 0;
  double features = 0;
  double grouping = 0;
  double decision = 0;
  double total = 0;

  void Add(const StepRecord& record) {
    attention += record.attention_share * record.seconds;
    total += record.seconds;
    if (!record.control) return;
    features += record.control->features_seconds;
    grouping += record.control->grouping_seconds;
    decision += record.control->decision_seconds;
  }
};

void MeasureTimes(const std::vector<StepRecord>& steps, Inspection& inspection) {
  if (steps.empty()) return;
  StepParts all;
  StepParts deciding;
  bool controlled = false;
  for (const StepRecord& record : steps) {
    all.Add(record);
    controlled |= record.control.has_value();
    if (Deciding(record)) {
      deciding.Add(record);
      ++inspection.deciding_steps;
    }
  }
  inspection.timed_steps = static_cast<int64_t>(steps.size());
  const auto count = static_cast<double>(inspection.timed_steps);
  const auto deciding_count = static_cast<double>(inspection.deciding_steps);
  const auto add = [&](const char* part, double sum, double deciding_sum) {
    inspection.times.push_back(
        {part, sum / count, deciding_count > 0 ? deciding_sum / deciding_count : kNotMeasured});
  };
  const auto rest = [](const StepParts& parts) {
    return std::max(
        0.0, parts.total - parts.attention - parts.features - parts.grouping - parts.decision);
  };
  add("attention", all.attention, deciding.attention);
  if (controlled) {
    add("features", all.features, deciding.features);
    add("grouping", all.grouping, deciding.grouping);
    add("decision", all.decision, deciding.decision);
  }
  add("all else", rest(all), rest(deciding));
}

std::optional<SelectionInspection> InspectSelection(const RunLog& log, const StepRecord* record) {
  const SelectionHistory history(log);
  if (record == nullptr || !record->selection) return {};
  SelectionInspection selection;
  selection.summary = *record->selection;
  const std::string& phase = selection.summary.phase;
  AAH_CHECK(phase == "warmup" || phase == "search" || phase == "plan", MetricsPath(log.folder),
            ": phase '", phase, "' in step ", record->step, ": expected warmup, search or plan");
  selection.budget = BudgetOf(log.config.attention.learned, log.config.model.context);
  selection.decisions = SelectionDecisions(log.metrics.steps);
  if (log.has_plan) selection.plan = PlanPath(log.folder);
  const std::optional<int64_t> step = history.StepAt(record->step);
  if (!step) return selection;
  selection.weights_step = *step;
  selection.candidates = history.candidates();
  for (const SelectionRecord* layer : history.At(*step)) {
    selection.weights.push_back(layer->weights);
  }
  return selection;
}

// JSON has no NaN.
Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json SelectionJson(const SelectionInspection& selection) {
  Json decisions = Json::array();
  for (const SelectionDecision& decision : selection.decisions) {
    decisions.push_back({{"step", decision.step},
                         {"moved", decision.moved},
                         {"duality_gap", Number(decision.duality_gap)}});
  }
  const SelectionSummary& summary = selection.summary;
  return {
      {"phase", summary.phase},
      {"temperature", Number(summary.temperature)},
      {"target_cost", Number(summary.target_cost)},
      {"expected_cost", Number(summary.expected_cost)},
      {"hard_cost", Number(summary.hard_cost)},
      {"entropy", Number(summary.entropy)},
      {"decided", summary.decided},
      {"moved", summary.moved},
      {"duality_gap", Number(summary.duality_gap)},
      {"budget",
       {{"kind", BudgetKindName(selection.budget.kind)},
        {"value", selection.budget.value},
        {"length", selection.budget.length}}},
      {"decisions", decisions},
      {"weights_step", selection.weights_step},
      {"candidates", selection.candidates},
      {"weights", selection.weights},
      {"plan", selection.plan},
  };
}

}  // namespace

Inspection Inspect(const RunLog& log, std::optional<int64_t> step) {
  const WindowHistory history(log);
  const GroupHistory groups(log);
  Inspection inspection;
  inspection.name = log.name;
  inspection.attention = AttentionName(log.config.attention);
  inspection.last_step = LastStep(log);
  inspection.step = CheckedStep(log, step, inspection.last_step);
  inspection.steps = log.config.training.steps;
  inspection.context = static_cast<int>(log.config.model.context);
  inspection.decided = history.decided();
  inspection.windows = history.At(inspection.step);
  for (const int64_t change : history.ChangeSteps()) {
    if (change <= inspection.step) inspection.window_step = change;
  }
  const StepRecord* record = RecordAt(log.metrics.steps, inspection.step);
  inspection.allocated_context_ratio = record ? record->allocated_context_ratio : kNotMeasured;
  inspection.visible_pair_ratio = record ? record->visible_pair_ratio : kNotMeasured;
  inspection.change_counts = history.change_counts();
  inspection.decision_counts = history.decision_counts();
  for (size_t layer = 0; layer < inspection.windows.size(); ++layer) {
    inspection.groups.emplace_back();
    for (const GroupRecord* group : groups.At(layer, inspection.step)) {
      inspection.groups.back().push_back(*group);
    }
  }
  inspection.selection = InspectSelection(log, record);
  MeasureTimes(log.metrics.steps, inspection);
  return inspection;
}

std::string InspectionJson(const Inspection& inspection) {
  Json layers = Json::array();
  for (const std::vector<GroupRecord>& layer : inspection.groups) {
    Json groups = Json::array();
    for (const GroupRecord& group : layer) groups.push_back(Json::parse(ToJsonLine(group)));
    layers.push_back(groups);
  }
  Json times = Json::array();
  for (const PartTime& time : inspection.times) {
    times.push_back({{"part", time.part},
                     {"seconds", Number(time.seconds)},
                     {"deciding_seconds", Number(time.deciding_seconds)}});
  }
  Json object = {
      {"name", inspection.name},
      {"attention", inspection.attention},
      {"step", inspection.step},
      {"last_step", inspection.last_step},
      {"steps", inspection.steps},
      {"context", inspection.context},
      {"decided", inspection.decided},
      {"windows", inspection.windows},
      {"window_step", inspection.window_step},
      {"allocated_context_ratio", Number(inspection.allocated_context_ratio)},
      {"visible_pair_ratio", Number(inspection.visible_pair_ratio)},
      {"change_counts", inspection.change_counts},
      {"decision_counts", inspection.decision_counts},
      {"groups", layers},
      {"times", times},
      {"timed_steps", inspection.timed_steps},
      {"deciding_steps", inspection.deciding_steps},
  };
  if (inspection.selection) object["selection"] = SelectionJson(*inspection.selection);
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace aah
