#ifndef AAH_MODEL_LEARNED_ATTENTION_H_
#define AAH_MODEL_LEARNED_ATTENTION_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "aah/model/attention_variant.h"
#include "aah/model/config.h"
#include "aah/model/cost_multiplier.h"
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
// the output of a head is sum_n pi_n O_n, O_n being attention within candidate n, and
//
//   pi = softmax(logits / temperature - multiplier * cost)
//
// (Drawn with Gumbel noise: pi is one-hot, a candidate's odds those of temperature 1.)
//
// The task's loss alone moves the logits; one multiplier for all heads, solved for in every mixed
// step, makes the weights cost what the step's target says (CostMultiplier). When the search ends,
// a knapsack takes the windows that the logits make most likely within the budget, and attention
// costs what they cost.
//
//   step begins    phase, temperature, target and weights of the step; after the search, and after
//                  each tracking step, decide
//   Attend         warmup: full; search and tracking steps: mixed; else the plan's windows
//   EndBackward    brings the gradient of the weights on to the logits
//
// The target falls over the first 0.7 of the search, from nearly full cost to the budget, and is
// met. From then on the budget is an upper bound: logits may go on to less, not to more.
//
// Micro-batches of a step share weights and noise. Evaluation changes no state, and attends as the
// phase does: full, mixed by the logits as they are and the temperature and multiplier of the last
// step, or by the plan, tracking or not.
class LearnedAttention final : public AttentionVariant {
 public:
  // `logits` may be another source than free parameters; null: those. Throws aah::Error for options
  // that do not fit each other or the model.
  LearnedAttention(const LearnedOptions& options, const ModelConfig& model, int32_t sinks,
                   std::unique_ptr<SelectionLogits> logits = nullptr);

  at::Tensor Attend(const AttentionInputs& inputs) override;
  void BeginStep(const StepPosition& position) override;
  void EndBackward() override;
  std::vector<OwnParameter> parameters() override { return logits_->parameters(); }

  // In the search the widest window that a head computes by the logits as they are, after it the
  // plan's.
  std::vector<std::vector<int32_t>> windows() const override;
  std::vector<std::vector<int32_t>> computed_windows() const override;
  int32_t sinks() const override { return sinks_; }
  std::optional<SelectionView> selection() const override;
  std::optional<WindowPlan> plan() const override;

  PolicyState Save() const override;
  void Restore(const PolicyState& state) override;

  // [layers * heads, candidates], float64 on the CPU: softmax(logits / temperature -
  // multiplier * cost).
  at::Tensor Weights() const;

  // Whether this step's passes mix candidates.
  bool Mixes(bool training) const;

 private:
  struct Selection {
    at::Tensor weights;  // [..., candidates], float64; 0 where not live
    at::Tensor live;     // [..., candidates], bool
  };

  double WeightTemperature() const;                   // of the weights that cost and plan follow
  at::Tensor ScaledLogits(int64_t layer) const;       // logits / temperature: [items, candidates]
  at::Tensor ScaledLogits() const;                    // of all layers: [layers, items, candidates]
  at::Tensor Tilted(const at::Tensor& logits) const;  // less multiplier * cost
  at::Tensor OfHeads(const at::Tensor& items) const;  // [..., items, n] -> [..., heads, n]
  Selection Select(const at::Tensor& logits, bool drawn) const;
  std::vector<int32_t> WidestLive(const at::Tensor& live) const;  // of each head of a layer
  void BeginSearchStep(const SelectionSchedule& schedule, int64_t step);
  void ChooseWeights();
  void DrawNoise(int64_t step);
  void Decide();
  WindowTable LikeliestTable(const at::Tensor& weights) const;
  WindowTable FullTable() const;
  WindowTable TableOf(const std::vector<int32_t>& index) const;

  LearnedOptions options_;
  ModelConfig model_;
  AttentionShape shape_;
  int32_t sinks_;
  std::unique_ptr<SelectionLogits> logits_;
  WindowBudget budget_;
  CandidateCosts costs_;
  int32_t heads_per_item_;  // that share a window
  double first_target_ = 0;

  // State.
  SelectionPhase phase_ = SelectionPhase::kWarmup;
  double temperature_;
  double target_cost_ = 0;
  double expected_cost_ = 0;   // of the last mixed step
  double multiplier_ = 0;      // log weight that a unit of cost takes away
  int64_t search_begin_ = -1;  // of the search that runs, whatever the run's length becomes
  int64_t search_end_ = -1;
  std::vector<int32_t> index_;  // [layers * heads] of the plan; empty: none yet
  int64_t plan_step_ = -1;      // when the search ended
  double duality_gap_ = 0;      // of the last decision

  // Of the step that runs or ran last.
  WindowTable computed_;                    // by Attend in training, where it mixed
  at::Tensor noise_;                        // [layers, items, candidates]; undefined: none
  std::optional<double> least_multiplier_;  // none: the target is met from both sides
  // Of all layers, until EndBackward: its weights gather the gradients of the micro-batches.
  Selection step_;
  at::Tensor differentiable_weights_;  // the same, in the graph of the logits
  bool tracking_ = false;
  bool decided_ = false;
  bool snapshot_ = false;
  int64_t moved_ = 0;
};

}  // namespace aah

#endif  // AAH_MODEL_LEARNED_ATTENTION_H_
