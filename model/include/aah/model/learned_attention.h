#ifndef AAH_MODEL_LEARNED_ATTENTION_H_
#define AAH_MODEL_LEARNED_ATTENTION_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "aah/model/attention_variant.h"
#include "aah/model/config.h"
#include "aah/model/learned_options.h"
#include "aah/model/selection_logits.h"

namespace aah {

// Where a run stands in its search for windows.
enum class SelectionPhase {
  kWarmup,  // full attention
  kSearch,  // every candidate at once, mixed by the selection weights; cost falls to the budget
  kPlan,    // one window per head
};
const char* SelectionPhaseName(SelectionPhase phase);

// What the phases are at a step of a run; a pure function of both.
struct SelectionSchedule {
  int64_t search_begin = 0;  // steps
  int64_t search_end = 0;

  // Throws aah::Error where the run is too short for a step of each phase that it should have.
  SelectionSchedule(const LearnedOptions& options, int64_t steps);

  SelectionPhase Phase(int64_t step) const;
  double Progress(int64_t step) const;  // of the search, 0 in its first and 1 in its last step
};

// Attention whose windows are learned with the model (docs/learned_allocation.md). In a mixed step
// the output of a head is sum_n pi_n O_n, O_n being attention within candidate n, and pi the
// softmax of the head's logits: the task's loss tells every logit what its window is worth, and a
// penalty what it costs. When the search ends, a knapsack takes the plan within the budget that
// the weights make most likely, and attention costs what its windows cost.
//
//   step begins   phase, temperature and target cost of the step; after the search, and after each
//                 tracking step, decide
//   Attend        warmup: full; search and tracking steps: mixed; else the plan's windows
//   Penalty       mixed steps: multiplier * max(0, expected cost - target)
//
// The target falls from full cost to the budget over the first 0.7 of the search, then stays. The
// multiplier begins with `penalty` and grows while the cost lags behind the target, else it falls
// back (dual ascent): how much a unit of cost is worth depends on the task and the model.
//
// Micro-batches of a step share weights and noise. Evaluation changes no state, and attends as the
// phase does: full, mixed with the temperature of the last step, or by the plan, tracking or not.
class LearnedAttention final : public AttentionVariant {
 public:
  // `logits` may be another source than free parameters; null: those. Throws aah::Error for options
  // that do not fit each other or the model.
  LearnedAttention(const LearnedOptions& options, const ModelConfig& model, int32_t sinks,
                   std::unique_ptr<SelectionLogits> logits = nullptr);

  at::Tensor Attend(const AttentionInputs& inputs) override;
  void BeginStep(const StepPosition& position) override;
  at::Tensor Penalty() override;
  std::vector<OwnParameter> parameters() override { return logits_->parameters(); }

  // In the search the widest window a head would compute next, after it the plan's.
  std::vector<std::vector<int32_t>> windows() const override;
  std::vector<std::vector<int32_t>> computed_windows() const override;
  int32_t sinks() const override { return sinks_; }
  std::optional<SelectionView> selection() const override;
  std::optional<WindowPlan> plan() const override;

  PolicyState Save() const override;
  void Restore(const PolicyState& state) override;

  // [layers * heads, candidates], float64 on the CPU: softmax(logits / temperature).
  at::Tensor Weights() const;

 private:
  // Of one layer in one step.
  struct Selection {
    at::Tensor weights;  // [heads, candidates], with gradient; 0 where not live
    at::Tensor live;     // [heads, candidates], int64: 0 or 1
  };

  bool Mixes(bool training) const;
  Selection Select(int64_t layer, bool training) const;
  double WeightTemperature() const;  // of the weights that cost and plan follow
  at::Tensor LogWeights() const;     // [layers * heads, candidates], float64
  std::vector<int32_t> WidestLive(const at::Tensor& live) const;  // [heads], of a Selection
  at::Tensor Probabilities(int64_t layer) const;  // [items, candidates], with gradient
  at::Tensor ExpectedCost() const;                // scalar, with gradient
  void BeginSearchStep(const SelectionSchedule& schedule, int64_t step);
  void AdaptMultiplier();
  void DrawNoise(int64_t step);
  void Decide();
  std::vector<int32_t> MostLikely() const;
  WindowTable FullTable() const;
  WindowTable TableOf(const std::vector<int32_t>& index) const;

  LearnedOptions options_;
  ModelConfig model_;
  AttentionShape shape_;
  int32_t sinks_;
  std::unique_ptr<SelectionLogits> logits_;
  WindowBudget budget_;
  at::Tensor candidate_cost_;  // [candidates], float64, of one head or key/value head

  // State.
  SelectionPhase phase_ = SelectionPhase::kWarmup;
  double temperature_;
  double target_cost_ = 1;
  double multiplier_;          // of the penalty
  int64_t search_begin_ = -1;  // of the search that runs, whatever the run's length becomes
  int64_t search_end_ = -1;
  std::vector<int32_t> index_;  // [layers * heads] of the plan; empty: none yet
  int64_t plan_step_ = -1;      // when the search ended
  double duality_gap_ = 0;      // of the last decision

  // Of the step that runs or ran last.
  WindowTable computed_;  // by Attend in training, where it mixed
  at::Tensor noise_;      // [layers, items, candidates]; undefined: none
  bool tracking_ = false;
  bool decided_ = false;
  bool snapshot_ = false;
  int64_t moved_ = 0;
};

}  // namespace aah

#endif  // AAH_MODEL_LEARNED_ATTENTION_H_
