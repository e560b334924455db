#include "aah/controller.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "aah/error.h"
#include "aah/head_features.h"
#include "aah/hierarchy.h"
#include "aah/random.h"
#include "aah/regime.h"
#include "aah/window_decision.h"

namespace aah {
namespace {

// What a random number is drawn for, so that draws do not repeat each other.
enum Purpose : uint64_t { kHalves = 1, kUniform = 2, kPermutation = 3 };

class Stopwatch {
 public:
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Rounds half to even, as the default rounding mode does.
int32_t RoundToIndex(float value) { return static_cast<int32_t>(std::nearbyint(value)); }

bool HasGrouping(const Regime& regime) {
  return regime.groups != GroupSource::kNone && regime.groups != GroupSource::kSingletons;
}

}  // namespace

const char* ControlPathName(ControlPath path) {
  switch (path) {
    case ControlPath::kFull:
      return "full";
    case ControlPath::kShadow:
      return "shadow";
    case ControlPath::kUpdate:
      return "update";
    case ControlPath::kCached:
      return "cached";
  }
  return "";
}

Controller::Controller(const ControlOptions& options, int32_t layer, int32_t heads,
                       ScorerWeights scorers)
    : options_(options), layer_(layer), heads_(heads), scorers_(std::move(scorers)) {
  CheckControlOptions(options, heads);
  regime_ = FindRegime(options.regime);
  decision_ = MakeDecisionOptions(options, regime_);
  options_.hierarchy.max_depth = std::min(options.hierarchy.max_depth, regime_.max_depth);
  if (regime_.windows == WindowSource::kScorer) {
    CheckScorerWeights(scorers_, decision_, static_cast<int32_t>(options.windows.size()));
  }
}

bool Controller::InShadow(int64_t step) const {
  return regime_.windows == WindowSource::kFull || step < options_.warmup_steps;
}

bool Controller::DecisionIsDue(int64_t step) const {
  return state_.last_decision_step < 0 ||
         step - state_.last_decision_step >= options_.control_interval;
}

bool Controller::ShadowIsDue(int64_t step) const {
  return HasGrouping(regime_) &&
         (state_.shadow_step < 0 || step - state_.shadow_step >= options_.control_interval);
}

bool Controller::NeedsFeatures(int64_t step) const {
  if (InShadow(step)) return ShadowIsDue(step);
  return regime_.windows == WindowSource::kScorer && DecisionIsDue(step);
}

std::span<const int32_t> Controller::Advance(int64_t step, int64_t tokens,
                                             const ProjectionSums* sums) {
  AAH_CHECK(tokens >= 1, "expected at least 1 token, got ", tokens);
  if (NeedsFeatures(step)) {
    AAH_CHECK(sums != nullptr && !sums->empty(), "layer ", layer_, " decides in step ", step,
              " and was given no sums of q, k and v");
    AAH_CHECK(sums->heads() == heads_, "expected sums of ", heads_, " heads, got ", sums->heads());
  }
  ControlState state = state_;
  ControlReport report = report_;
  report.step = step;
  report.organise_seconds = 0;
  report.decide_seconds = 0;
  if (InShadow(step)) {
    report.path = HasGrouping(regime_) ? ControlPath::kShadow : ControlPath::kFull;
    if (ShadowIsDue(step)) {
      const Stopwatch watch;
      // Groups made in this step are measured as groups from the next one on.
      state.shadow_step = state.group_of_head.empty() ? -1 : step;
      report.hierarchy = Organise(*sums, /*deciding=*/false, state);
      report.organise_seconds = watch.Seconds();
    }
    state.executed_window.clear();
  } else {
    report.path = DecisionIsDue(step) ? ControlPath::kUpdate : ControlPath::kCached;
    if (report.path == ControlPath::kUpdate) Decide(step, sums, state, report);
    Execute(step, tokens, state);
  }
  state_ = std::move(state);
  report_ = std::move(report);
  windows_ = WindowsFor(tokens);
  return windows_;
}

// The groups of this step: clustered from heads where the regime says so, or where none are known.
Hierarchy Controller::Organise(const ProjectionSums& sums, bool deciding,
                               ControlState& state) const {
  const bool known = !state.group_of_head.empty();
  if (!deciding) {
    if (!known) return ClusterHeads(sums, state);
    return KeepGroups(sums, GroupsFromItems(state.group_of_head), state);
  }
  switch (regime_.groups) {
    case GroupSource::kSingletons: {
      Hierarchy hierarchy;
      hierarchy.levels.push_back(
          {SingletonGroups(heads_), HeadFeatures(sums, state.statistics), {}});
      return hierarchy;
    }
    case GroupSource::kRandomHalves:
    case GroupSource::kAlternating:
      return KeepGroups(sums, FixedGroups(), state);
    case GroupSource::kFirstDecision:
      if (state.last_decision_step < 0) return ClusterHeads(sums, state);
      return KeepGroups(sums, GroupsFromItems(state.group_of_head), state);
    case GroupSource::kFirstForward:
      if (!known) return ClusterHeads(sums, state);
      return KeepGroups(sums, GroupsFromItems(state.group_of_head), state);
    case GroupSource::kClustered:
    case GroupSource::kNone:
      break;
  }
  return ClusterHeads(sums, state);
}

Hierarchy Controller::ClusterHeads(const ProjectionSums& sums, ControlState& state) const {
  AverageFeatures(regime_.feature_average ? options_.feature_ema : 0.0,
                  HeadFeatures(sums, state.statistics), state.feature_average);
  Hierarchy hierarchy =
      BuildHierarchy(state.feature_average, options_.hierarchy, state.group_of_head);
  if (regime_.upper == UpperLevels::kPassThrough) {
    HierarchyLevel& bottom = hierarchy.levels.front();
    hierarchy = PassThroughHierarchy(std::move(bottom.groups), std::move(bottom.features),
                                     options_.hierarchy.max_depth);
  }
  state.group_of_head = GroupOfItems(hierarchy.levels.front().groups, heads_);
  return hierarchy;
}

Hierarchy Controller::KeepGroups(const ProjectionSums& sums, Groups groups,
                                 ControlState& state) const {
  state.group_of_head = GroupOfItems(groups, heads_);
  std::vector<FeatureRow> features = GroupFeatures(sums, state.statistics, groups);
  if (regime_.upper == UpperLevels::kPassThrough) {
    return PassThroughHierarchy(std::move(groups), std::move(features),
                                options_.hierarchy.max_depth);
  }
  return BuildHierarchyAbove(std::move(groups), std::move(features), options_.hierarchy);
}

// Two halves, or one group of a single head.
Groups Controller::FixedGroups() const {
  std::vector<int32_t> heads(static_cast<size_t>(heads_));
  std::iota(heads.begin(), heads.end(), 0);
  std::vector<int32_t> group_of(heads.size());
  if (regime_.groups == GroupSource::kRandomHalves) {
    Random(Seed(kHalves, 0)).Shuffle(std::span<int32_t>(heads));
    for (size_t i = heads.size() / 2; i < heads.size(); ++i) {
      group_of[static_cast<size_t>(heads[i])] = heads_ == 1 ? 0 : 1;
    }
  } else {
    for (size_t head = 0; head < heads.size(); ++head) {
      group_of[head] = static_cast<int32_t>(head % 2);
    }
  }
  return GroupsFromItems(group_of);
}

void Controller::Decide(int64_t step, const ProjectionSums* sums, ControlState& state,
                        ControlReport& report) const {
  const auto candidates = static_cast<int32_t>(options_.windows.size());
  state.decided_index.assign(static_cast<size_t>(heads_), 0);
  if (regime_.windows == WindowSource::kScorer) {
    const Stopwatch organise;
    report.hierarchy = Organise(*sums, /*deciding=*/true, state);
    report.organise_seconds = organise.Seconds();
    const Stopwatch decide;
    report.decision = DecideWindows(report.hierarchy, scorers_, decision_, candidates);
    report.decide_seconds = decide.Seconds();
    const Groups& groups = report.hierarchy.levels.front().groups;
    for (size_t group = 0; group < groups.size(); ++group) {
      for (const int32_t head : groups[group]) {
        state.decided_index[static_cast<size_t>(head)] = report.decision.front().index[group];
      }
    }
  } else if (regime_.windows == WindowSource::kRandomUniform) {
    Random random(Seed(kUniform, step));
    for (int32_t& index : state.decided_index) {
      index = static_cast<int32_t>(random.Below(static_cast<uint64_t>(candidates)));
    }
  }
  state.last_decision_step = step;
}

// From the decided indices to the windows that are executed: average over steps, ramp, shuffle.
// Controls that bypass the decision bypass these as well.
void Controller::Execute(int64_t step, int64_t tokens, ControlState& state) const {
  if (regime_.windows == WindowSource::kFixed) {
    state.executed_window.assign(static_cast<size_t>(heads_), regime_.fixed_window);
    return;
  }
  std::vector<int32_t> indices = state.decided_index;
  if (regime_.windows == WindowSource::kScorer) {
    const auto past = static_cast<float>(options_.window_ema);
    const auto present = static_cast<float>(1 - options_.window_ema);
    if (state.window_average.empty()) state.window_average.assign(indices.begin(), indices.end());
    const double progress = options_.ramp_steps == 0
                                ? 1
                                : static_cast<double>(step - options_.warmup_steps + 1) /
                                      static_cast<double>(options_.ramp_steps);
    const auto ramp = static_cast<float>(std::clamp(progress, 0.0, 1.0));
    const auto found = std::find(options_.windows.begin(), options_.windows.end(), tokens);
    const float full = found == options_.windows.end()
                           ? 0.0F
                           : static_cast<float>(found - options_.windows.begin());
    for (size_t head = 0; head < indices.size(); ++head) {
      float& average = state.window_average[head];
      average = past * average + present * static_cast<float>(indices[head]);
      const auto smooth = static_cast<float>(RoundToIndex(average));
      indices[head] = RoundToIndex(ramp * smooth + (1 - ramp) * full);
    }
    if (regime_.shuffled) {
      Random(Seed(kPermutation, state.last_decision_step)).Shuffle(std::span<int32_t>(indices));
    }
  }
  state.executed_window.clear();
  for (const int32_t index : indices) {
    state.executed_window.push_back(options_.windows[static_cast<size_t>(index)]);
  }
}

uint64_t Controller::Seed(uint64_t purpose, int64_t step) const {
  uint64_t state = options_.seed;
  for (const uint64_t part :
       {purpose, static_cast<uint64_t>(layer_), static_cast<uint64_t>(step)}) {
    state = SplitMix64(state) + part;
  }
  return SplitMix64(state);
}

void Controller::RecordStatistics(std::span<const float> statistics) {
  AAH_CHECK(statistics.size() == 3 * static_cast<size_t>(heads_), "expected 3 statistics of ",
            heads_, " heads, got ", statistics.size(), " numbers");
  state_.statistics.assign(statistics.begin(), statistics.end());
}

std::vector<int32_t> Controller::WindowsFor(int64_t tokens) const {
  const auto longest = static_cast<int32_t>(std::min<int64_t>(tokens, INT32_MAX));
  std::vector<int32_t> windows(static_cast<size_t>(heads_), longest);
  for (size_t head = 0; head < state_.executed_window.size(); ++head) {
    windows[head] = std::min(std::max(state_.executed_window[head], options_.min_window), longest);
  }
  return windows;
}

void Controller::set_state(ControlState state) {
  const auto heads = static_cast<size_t>(heads_);
  const auto check = [&](const char* name, size_t size, size_t expected) {
    AAH_CHECK(size == 0 || size == expected, "controller state of layer ", layer_, ": ", name,
              " has ", size, " entries, expected ", expected, " for ", heads_, " heads");
  };
  check("group_of_head", state.group_of_head.size(), heads);
  check("feature_average", state.feature_average.size(), heads);
  check("statistics", state.statistics.size(), 3 * heads);
  check("decided_index", state.decided_index.size(), heads);
  check("window_average", state.window_average.size(), heads);
  check("executed_window", state.executed_window.size(), heads);
  const auto check_range = [&](const char* name, const auto& values, double least, double most) {
    for (const auto value : values) {
      AAH_CHECK(value >= least && value <= most, "controller state of layer ", layer_, ": ", name,
                " holds ", value, ", expected ", least, " to ", most);
    }
  };
  const auto last = static_cast<double>(options_.windows.size() - 1);
  check_range("group_of_head", state.group_of_head, 0, heads_ - 1);
  check_range("decided_index", state.decided_index, 0, last);
  // An average may lie a rounding outside of what it averages.
  check_range("window_average", state.window_average, -0.01, last + 0.01);
  check_range("executed_window", state.executed_window, 1, INT32_MAX);
  for (const std::vector<int32_t>& group : GroupsFromItems(state.group_of_head)) {
    AAH_CHECK(!group.empty(), "controller state of layer ", layer_,
              ": group_of_head leaves a group without heads");
  }
  AAH_CHECK(state.last_decision_step < 0 || !state.decided_index.empty(),
            "controller state of layer ", layer_, ": a decision was taken in step ",
            state.last_decision_step, ", but decided_index is empty");
  AAH_CHECK(state.last_decision_step < 0 || regime_.windows != WindowSource::kScorer ||
                !HasGrouping(regime_) || !state.group_of_head.empty(),
            "controller state of layer ", layer_, ": a decision was taken in step ",
            state.last_decision_step, ", but group_of_head is empty");
  state_ = std::move(state);
  report_ = {};
}

}  // namespace aah
