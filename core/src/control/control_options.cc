#include "aah/control_options.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "aah/error.h"
#include "aah/random.h"
#include "aah/regime.h"
#include "aah/window_decision.h"

namespace aah {
namespace {

// Far beyond any use, but what is allocated stays small.
constexpr size_t kMaxWindows = 256;
constexpr int32_t kMaxDepth = 64;
constexpr int32_t kMaxHidden = 1 << 10;

void CheckRange(const char* name, double value, double least, double most, const char* why) {
  AAH_CHECK(value >= least && value <= most, name, " is ", value, ", expected ", least, " to ",
            most, ": ", why);
}

void CheckWhole(const char* name, int64_t value, int64_t least, int64_t most) {
  AAH_CHECK(value >= least && value <= most, name, " is ", value, ", expected ", least, " to ",
            most);
}

void CheckWindows(const std::vector<int32_t>& windows) {
  AAH_CHECK(!windows.empty(), "windows is empty: give at least one candidate");
  AAH_CHECK(windows.size() <= kMaxWindows, "windows has ", windows.size(),
            " candidates, expected at most ", kMaxWindows);
  for (size_t i = 0; i < windows.size(); ++i) {
    AAH_CHECK(windows[i] >= 1, "windows[", i, "] is ", windows[i],
              ": a window counts the query's own key, so it is at least 1");
    if (i == 0) continue;
    AAH_CHECK(windows[i] != windows[i - 1], "windows[", i, "] repeats ", windows[i],
              ": give every candidate once");
    AAH_CHECK(windows[i] > windows[i - 1], "windows[", i, "] is ", windows[i], " after ",
              windows[i - 1], ": give the candidates in ascending order");
  }
}

void CheckHierarchy(const HierarchyOptions& options) {
  CheckRange("sim_threshold", options.sim_threshold, -1, 1, "a cosine");
  CheckRange("super_threshold", options.super_threshold, -1, 1, "a cosine");
  AAH_CHECK(std::isfinite(options.upper_l2_threshold) && options.upper_l2_threshold <= 0,
            "upper_l2_threshold is ", options.upper_l2_threshold,
            ", expected at most 0: it is compared with minus a distance");
  CheckRange("normdiff_scale", options.norm_difference_scale, 0, 1e6, "a weight");
  CheckRange("churn_penalty", options.churn_penalty, 0, 2, "added to a cosine");
  CheckWhole("min_group_size", options.min_group_size, 1, INT32_MAX);
  CheckWhole("max_depth", options.max_depth, 1, kMaxDepth);
}

void CheckScorers(const ControlOptions& options, int32_t heads) {
  const Regime regime = FindRegime(options.regime);
  if (regime.windows == WindowSource::kScorer &&
      MakeDecisionOptions(options, regime).siblings == SiblingScoring::kJoint) {
    AAH_CHECK(options.joint_siblings <= heads, "joint_siblings is ", options.joint_siblings,
              ", but a layer has ", heads,
              " heads: there are never more siblings than heads; take regime "
              "independent_scoring to score each group alone");
  }
  AAH_CHECK(options.joint_siblings == 2, "joint_siblings is ", options.joint_siblings,
            ", expected 2: the joint scorer takes pairs");
  CheckWhole("hidden", options.hidden, 1, kMaxHidden);
  CheckWhole("joint_hidden", options.joint_hidden, 1, kMaxHidden);
  CheckRange("logit_scale", double{options.logit_scale}, -1e6, 1e6, "a factor");
  CheckRange("joint_output_scale", double{options.joint_output_scale}, -1e6, 1e6, "a factor");
  CheckRange("sibling_bias_scale", double{options.sibling_bias_scale}, -1e6, 1e6, "a factor");
}

}  // namespace

void CheckControlOptions(const ControlOptions& options, int32_t heads) {
  AAH_CHECK(heads >= 1, "expected at least 1 head, got ", heads);
  CheckScorers(options, heads);
  CheckWindows(options.windows);
  CheckWhole("min_window", options.min_window, 1, INT32_MAX);
  CheckWhole("warmup_steps", options.warmup_steps, 0, INT64_MAX);
  CheckWhole("control_interval", options.control_interval, 1, INT64_MAX);
  CheckWhole("ramp_steps", options.ramp_steps, 0, INT64_MAX);
  constexpr double kBelowOne = 0.999999;
  CheckRange("feature_ema", options.feature_ema, 0, kBelowOne, "the weight of the past");
  CheckRange("window_ema", options.window_ema, 0, kBelowOne, "the weight of the past");
  CheckHierarchy(options.hierarchy);
}

DecisionOptions MakeDecisionOptions(const ControlOptions& options, const Regime& regime) {
  DecisionOptions decision;
  decision.input = options.input;
  decision.siblings =
      regime.siblings == SiblingScoring::kNone ? SiblingScoring::kNone : options.siblings;
  decision.parent_constraint = regime.parent_constraint;
  decision.logit_scale = options.logit_scale;
  decision.joint_output_scale = options.joint_output_scale;
  decision.sibling_bias_scale = options.sibling_bias_scale;
  return decision;
}

OwnedScorers MakeScorers(const ControlOptions& options, int32_t layer) {
  OwnedScorers scorers;
  const Regime regime = FindRegime(options.regime);
  if (regime.windows != WindowSource::kScorer) return scorers;
  const DecisionOptions decision = MakeDecisionOptions(options, regime);
  const int32_t inputs = ControllerInputSize(decision.input);
  const auto windows = static_cast<int32_t>(options.windows.size());
  uint64_t state = options.seed;
  state = SplitMix64(state) + static_cast<uint64_t>(layer);

  std::vector<int32_t> sizes = {inputs, options.hidden};
  if (options.deep_scorer) sizes.push_back(options.hidden);
  sizes.push_back(windows);
  scorers.base = OwnedMlp(sizes, SplitMix64(state));
  if (decision.siblings == SiblingScoring::kJoint) {
    sizes = {4 * inputs, options.joint_hidden, 2 * windows};
    scorers.siblings = OwnedMlp(sizes, SplitMix64(state));
  } else if (decision.siblings == SiblingScoring::kBias) {
    sizes = {inputs, options.hidden, windows};
    scorers.siblings = OwnedMlp(sizes, SplitMix64(state));
  }
  return scorers;
}

}  // namespace aah
