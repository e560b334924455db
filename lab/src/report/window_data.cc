#include "report/window_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <vector>

#include "aah/io/json.h"
#include "aah/lab/run_log.h"
#include "aah/lab/window_history.h"
#include "aah/model/run_folder.h"

namespace aah {
namespace {

Json GroupJson(const GroupRecord& group) {
  const bool cut = group.raw_index && group.index && *group.raw_index != *group.index;
  Json json = {
      group.level, group.group, group.parent.value_or(-1), group.heads, group.window.value_or(0),
      cut ? 1 : 0};
  for (const double feature : group.features) json.push_back(Rounded(feature));
  return json;
}

Json GroupingsJson(const GroupHistory& history, const std::vector<int64_t>& steps, size_t layers) {
  Json groupings = Json::array();
  for (const int64_t step : Spread(steps, kMostGroupings)) {
    Json layer_groups = Json::array();
    for (size_t layer = 0; layer < layers; ++layer) {
      Json groups = Json::array();
      for (const GroupRecord* group : history.At(layer, step)) groups.push_back(GroupJson(*group));
      layer_groups.push_back(groups);
    }
    groupings.push_back({{"step", step}, {"layers", layer_groups}});
  }
  return groupings;
}

std::vector<int> AllWindows(const WindowHistory& history, int context) {
  std::set<int> windows = {context};
  for (const auto& [unused, changes] : history.changes()) {
    for (const WindowHistory::Change& change : changes) windows.insert(change.window);
  }
  return {windows.begin(), windows.end()};
}

// What changed from each slider step to the next; the last change of a head counts.
Json StatesJson(const WindowHistory& history, const std::vector<int64_t>& slider_steps,
                const std::vector<int>& values) {
  Json states = Json::array();
  auto next = history.changes().begin();
  for (const int64_t step : slider_steps) {
    std::map<size_t, int> window_of_head;
    for (; next != history.changes().end() && next->first <= step; ++next) {
      for (const WindowHistory::Change& change : next->second) {
        window_of_head[change.head] = change.window;
      }
    }
    Json state = Json::array();
    for (const auto& [head, window] : window_of_head) {
      state.push_back(head);
      state.push_back(std::lower_bound(values.begin(), values.end(), window) - values.begin());
    }
    states.push_back(state);
  }
  return states;
}

}  // namespace

Json Rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return std::strtod(text.data(), nullptr);
}

std::vector<int64_t> Spread(const std::vector<int64_t>& steps, size_t most) {
  if (steps.size() <= most) return steps;
  std::vector<int64_t> spread;
  for (size_t i = 0; i < most; ++i) spread.push_back(steps[i * (steps.size() - 1) / (most - 1)]);
  return spread;
}

SliderSteps StepsOfSlider(const std::vector<RunLog>& logs) {
  std::set<int64_t> steps;
  for (const RunLog& log : logs) {
    for (const int64_t step : WindowHistory(log).ChangeSteps()) steps.insert(step);
  }
  return {Spread({steps.begin(), steps.end()}, kMostSliderSteps), steps.size()};
}

Json WindowData(const RunLog& log, const std::vector<int64_t>& slider_steps) {
  const WindowHistory history(log);
  const GroupHistory groups(log);
  const std::vector<int64_t> grouping_steps = groups.Steps();
  const auto layers = static_cast<size_t>(log.config.model.layers);
  const std::vector<int> values = AllWindows(history, static_cast<int>(log.config.model.context));
  return {
      {"context", log.config.model.context},
      {"layers", layers},
      {"heads", log.config.model.heads},
      {"decisions",
       *std::max_element(history.decision_counts().begin(), history.decision_counts().end())},
      {"values", values},
      {"states", StatesJson(history, slider_steps, values)},
      {"changes", history.change_counts()},
      {"groupings", GroupingsJson(groups, grouping_steps, layers)},
      {"all_groupings", grouping_steps.size()},
  };
}

}  // namespace aah
