#ifndef AAH_MODEL_SRC_LAYERS_LEARNED_SCORER_NETWORK_H_
#define AAH_MODEL_SRC_LAYERS_LEARNED_SCORER_NETWORK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "aah/control_options.h"
#include "aah/hierarchy.h"
#include "aah/window_decision.h"

namespace aah {

// The groups of one level of a hierarchy, as scorers see them.
struct GroupInputs {
  at::Tensor rows;              // [groups, ControllerInputSize], float32
  std::vector<int32_t> family;  // [groups] the parent; 0 at the top, where all are siblings
};
GroupInputs GroupInputsOf(const Hierarchy& hierarchy, int32_t level, ControllerInput input);

// core's scorers (aah/window_decision.h) of all layers as a differentiable function: what
// DecideWindows gives as logits, before the parent constraint. The weights lie in float32 leaves
// that both sides read: core through weights(), so it sees every update.
class ScorerNetwork {
 public:
  // Initialised as MakeScorers; `options.windows` are the candidates. REQUIRES: CheckControlOptions
  // has passed, and the regime's windows are scored.
  ScorerNetwork(const ControlOptions& options, int64_t layers);

  // [groups, candidates], float32, in double inside as core computes them.
  at::Tensor Logits(int64_t layer, const GroupInputs& groups) const;

  // Valid while this object lives.
  ScorerWeights weights(int64_t layer) const;

  // Linear layers of all layers together: weight [layers, outputs, inputs], bias [layers, outputs].
  struct Parameter {
    std::string name;  // base.0.weight, base.0.bias, base.1.weight, ..., siblings.0.weight, ...
    at::Tensor value;
  };
  const std::vector<Parameter>& parameters() const { return parameters_; }

 private:
  // A weight and a bias of `parameters_` after the other, per linear layer.
  struct Range {
    size_t begin = 0;
    size_t end = 0;
  };

  Range Add(const char* name, std::vector<OwnedMlp> layers);
  at::Tensor Run(const Range& mlp, int64_t layer, const at::Tensor& rows) const;
  MlpWeights WeightsOf(const Range& mlp, int64_t layer) const;
  at::Tensor ScorePairs(int64_t layer, const GroupInputs& groups, const at::Tensor& logits) const;

  DecisionOptions decision_;
  std::vector<Parameter> parameters_;
  Range base_;
  Range siblings_;
};

}  // namespace aah

#endif  // AAH_MODEL_SRC_LAYERS_LEARNED_SCORER_NETWORK_H_
