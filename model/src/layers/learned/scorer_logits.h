#ifndef AAH_MODEL_SRC_LAYERS_LEARNED_SCORER_LOGITS_H_
#define AAH_MODEL_SRC_LAYERS_LEARNED_SCORER_LOGITS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "aah/control_options.h"
#include "aah/controller.h"
#include "aah/head_features.h"
#include "aah/io/json.h"
#include "aah/model/selection_logits.h"
#include "aah/window_budget.h"
#include "layers/controller_io.h"
#include "layers/learned/scorer_network.h"

namespace aah {

// The paper's scorers, trained: a head's logits are those that AAH gives its level-0 group, and
// what the method takes the argmax of, LearnedAttention mixes by. Heads of a group share a window
// until the knapsack, which may have to part them to keep the budget.
//
//   step before a mixed one, when due   q, k and v, and the statistics of the heads, are summed
//   mixed step begins                   core's Controller groups the heads by those sums; the
//                                       groups' inputs stay until it groups again
//   Layer                               the scorers' logits of these inputs, with gradient
//
// The grouping is due in the first mixed step and then where control_interval steps have passed:
// throughout the search, and after it in tracking steps alone. It is the regime's, all of the
// method but its hard end: the parent constraint, the averaging of windows and the ramp have no
// soft counterpart and are left out; upper levels act through the inputs that compare a group with
// its parent.
//
// Differences to the untrained controller: windows are known before a step begins, so that features
// are those of the step before, all its micro-batches together. Entropy, norm and usage are those
// of full attention, in every phase, by a forward pass of its own in each measured step: mixed
// attention has no entropy that its pass could give, and so the inputs mean the same in the search
// and after it.
//
// Before the first grouping, which needs one step of warm-up at least, all logits are 0. Items that
// are key/value heads have the mean logits of their query heads.
class ScorerLogits final : public SelectionLogits {
 public:
  // `control.windows` are the candidates, warmup_steps and what follows a decision unused. Throws
  // aah::Error as CheckControlOptions, and for a regime that scores no windows.
  ScorerLogits(const ControlOptions& control, const AttentionShape& shape, int64_t context,
               int32_t sinks, WindowShare share, double learning_rate);

  const char* name() const override { return "aah_learned"; }
  void BeginStep(const StepPosition& position, MixedSteps mixed) override;
  void Observe(const AttentionInputs& inputs) override;
  at::Tensor Layer(int64_t layer) const override;
  std::vector<OwnParameter> parameters() override;

  PolicyState Save() const override;
  void Restore(const PolicyState& state) override;

  // What a layer's scorers are told, and the group of each head; no rows before the first grouping.
  const GroupInputs& inputs(int64_t layer) const { return LayerAt(layer).inputs; }
  const std::vector<int32_t>& group_of_head(int64_t layer) const {
    return LayerAt(layer).group_of_head;
  }

 private:
  struct LayerState {
    Controller controller;
    ProjectionSums projections;  // gathered for the next grouping
    StatisticSums statistics;
    GroupInputs inputs;
    std::vector<int32_t> group_of_head;  // among those of `inputs`
  };

  const LayerState& LayerAt(int64_t layer) const { return layers_[static_cast<size_t>(layer)]; }
  void Regroup(int64_t step, int64_t layer);
  void Measure(const AttentionInputs& inputs, LayerState& layer) const;
  LayerState ReadLayer(size_t index, const Json& json, StateReader& reader) const;

  ControlOptions control_;
  AttentionShape shape_;
  int64_t context_;
  int32_t sinks_;
  WindowShare share_;
  double learning_rate_;
  ScorerNetwork network_;
  std::vector<LayerState> layers_;
  bool measuring_ = false;  // in this step
};

}  // namespace aah

#endif  // AAH_MODEL_SRC_LAYERS_LEARNED_SCORER_LOGITS_H_
