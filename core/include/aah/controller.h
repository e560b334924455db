#ifndef AAH_CONTROLLER_H_
#define AAH_CONTROLLER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "aah/control_options.h"
#include "aah/head_features.h"
#include "aah/hierarchy.h"
#include "aah/regime.h"
#include "aah/window_decision.h"

namespace aah {

// All that a controller carries from one step to the next; what a checkpoint holds. Empty: not yet.
struct ControlState {
  int64_t last_decision_step = -1;          // -1: none
  int64_t shadow_step = -1;                 // when the shadow's groups were last measured
  std::vector<int32_t> group_of_head;       // [heads] in the level-0 grouping
  std::vector<FeatureRow> feature_average;  // [heads]
  std::vector<float> statistics;            // [3][heads] of the last step's attention
  std::vector<int32_t> decided_index;       // [heads] into the candidates
  std::vector<float> window_average;        // [heads] of indices
  std::vector<int32_t> executed_window;     // [heads] before clamping; empty: full

  bool operator==(const ControlState&) const = default;
};

// Calls visit(name, field) for every field, in order: int64_t, or a vector of int32_t, float or
// FeatureRow. Saving and restoring are both written with it, so neither forgets a field.
template <typename State, typename Visitor>
void VisitControlState(State& state, Visitor&& visit) {
  visit("last_decision_step", state.last_decision_step);
  visit("shadow_step", state.shadow_step);
  visit("group_of_head", state.group_of_head);
  visit("feature_average", state.feature_average);
  visit("statistics", state.statistics);
  visit("decided_index", state.decided_index);
  visit("window_average", state.window_average);
  visit("executed_window", state.executed_window);
}

enum class ControlPath {
  kFull,    // there is nothing to decide
  kShadow,  // full in warm-up or with control off; a grouping is built or kept beside it
  kUpdate,  // decided in this step
  kCached,  // the last decision stands
};
const char* ControlPathName(ControlPath path);

// What the last Advance did, for logs and reports; no part of the state.
struct ControlReport {
  int64_t step = -1;
  ControlPath path = ControlPath::kFull;
  Hierarchy hierarchy;                  // the last one built; no levels: none
  std::vector<LevelDecision> decision;  // of the last scored decision, per level
  double organise_seconds = 0;          // grouping and hierarchy
  double decide_seconds = 0;            // scoring
};

// Picks the windows of one attention layer, step by step (METHOD.md sections 3 to 6): when, from
// what, and what is remembered. How is in head_features.h, hierarchy.h and window_decision.h.
//
//   if (controller.NeedsFeatures(step)) sums.AddBatch(query, key, value, parallel);
//   windows = controller.Advance(step, tokens, &sums);
//   ... attention with these windows, its by-products if controller.NeedsFeatures(step + 1) ...
//   controller.RecordStatistics(statistics.Means());
//
// Once per optimiser step; `sums` and statistics reduced over all that shares the decision,
// replicas and micro-batches. Since windows must be known before the first micro-batch is attended
// to, a trainer that accumulates hands over either the sums of the step's first micro-batch or
// those gathered over a whole step before it. Decisions depend on these sums, the options, the
// scorers, the state and the layer's number, on nothing else.
//
// Evaluation and generation use WindowsFor and change nothing. Not thread-safe; scorers are
// borrowed and must outlive the controller.
class Controller {
 public:
  // Throws aah::Error for options CheckControlOptions refuses and scorers of other sizes.
  Controller(const ControlOptions& options, int32_t layer, int32_t heads, ScorerWeights scorers);

  // Whether Advance(step) will read the sums.
  bool NeedsFeatures(int64_t step) const;

  // Windows to execute in this step over `tokens` tokens, [heads], each in [1, tokens]; valid until
  // the next call. Throws aah::Error where sums are needed and missing, of another number of heads,
  // or not finite; the state is then what it was.
  std::span<const int32_t> Advance(int64_t step, int64_t tokens, const ProjectionSums* sums);

  // By-products of the step's attention: [3][heads] entropy, norm, usage. Only needed of the step
  // before one that needs features.
  void RecordStatistics(std::span<const float> statistics);

  // The windows in force over `tokens` tokens, as Advance left them.
  std::vector<int32_t> WindowsFor(int64_t tokens) const;

  // The candidate of an index, in tokens. REQUIRES: index in range.
  int32_t CandidateWindow(int32_t index) const {
    return options_.windows[static_cast<size_t>(index)];
  }

  const Regime& regime() const { return regime_; }
  const ControlReport& report() const { return report_; }
  const ControlState& state() const { return state_; }
  // Throws aah::Error for a state of another shape, or with indices that mean nothing here.
  void set_state(ControlState state);

 private:
  bool InShadow(int64_t step) const;
  bool DecisionIsDue(int64_t step) const;
  bool ShadowIsDue(int64_t step) const;
  Hierarchy Organise(const ProjectionSums& sums, bool deciding, ControlState& state) const;
  Hierarchy ClusterHeads(const ProjectionSums& sums, ControlState& state) const;
  Hierarchy KeepGroups(const ProjectionSums& sums, Groups groups, ControlState& state) const;
  Groups FixedGroups() const;
  void Decide(int64_t step, const ProjectionSums* sums, ControlState& state,
              ControlReport& report) const;
  void Execute(int64_t step, int64_t tokens, ControlState& state) const;
  uint64_t Seed(uint64_t purpose, int64_t step) const;

  ControlOptions options_;
  Regime regime_;
  DecisionOptions decision_;
  int32_t layer_;
  int32_t heads_;
  ScorerWeights scorers_;
  ControlState state_;
  ControlReport report_;
  std::vector<int32_t> windows_;
};

}  // namespace aah

#endif  // AAH_CONTROLLER_H_
