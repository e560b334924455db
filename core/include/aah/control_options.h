#ifndef AAH_CONTROL_OPTIONS_H_
#define AAH_CONTROL_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "aah/hierarchy.h"
#include "aah/regime.h"
#include "aah/window_decision.h"

namespace aah {

// What a user may set; the defaults are the paper's.
struct ControlOptions {
  std::string regime = "full_adaptive";                    // see FindRegime
  std::vector<int32_t> windows = {512, 1024, 2048, 4096};  // candidates, ascending
  int32_t min_window = 1;                                  // no window that is executed is below
  int64_t warmup_steps = 100;                              // in which every head is full
  int64_t control_interval = 5;                            // steps from one decision to the next
  int64_t ramp_steps = 0;    // after warm-up, from full to what is decided; 0: at once
  double feature_ema = 0.9;  // weight of the past
  double window_ema = 0.15;  // weight of the past; 0: the decision itself
  HierarchyOptions hierarchy = {};
  ControllerInput input = ControllerInput::kEnriched;
  SiblingScoring siblings = SiblingScoring::kJoint;  // where the regime lets siblings see another
  int32_t joint_siblings = 2;  // scored together; the method's scorer takes pairs
  bool deep_scorer = false;    // one more hidden layer in the base scorer
  int32_t hidden = 16;
  int32_t joint_hidden = 64;
  float logit_scale = 1;
  float joint_output_scale = 1;
  float sibling_bias_scale = 1;
  uint64_t seed = 0;  // of random scorers, groupings, windows and shuffles
};

// Throws aah::Error with one line on the first setting that is out of range for layers of `heads`
// query heads.
void CheckControlOptions(const ControlOptions& options, int32_t heads);

// A layer's scorers with the memory they live in, random (as OwnedMlp), of the sizes that the
// options and their regime ask for; empty where nothing is scored.
struct OwnedScorers {
  OwnedMlp base;
  OwnedMlp siblings;

  ScorerWeights weights() const { return {base.weights(), siblings.weights()}; }
};
OwnedScorers MakeScorers(const ControlOptions& options, int32_t layer);

// The decision rules that the options and their regime come to.
DecisionOptions MakeDecisionOptions(const ControlOptions& options, const Regime& regime);

}  // namespace aah

#endif  // AAH_CONTROL_OPTIONS_H_
