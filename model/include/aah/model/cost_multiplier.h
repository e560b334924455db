#ifndef AAH_MODEL_COST_MULTIPLIER_H_
#define AAH_MODEL_COST_MULTIPLIER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace aah {

// What the candidates of an item, a head or a key/value head, cost.
struct CandidateCosts {
  at::Tensor cost;  // [candidates], float64, never falling: shares of a full cost
  int64_t largest_of =
      1;  // so many consecutive items pay together for the largest window of theirs
};

// Mean over the items, which choose independently: [items, candidates], float64 -> scalar.
at::Tensor ExpectedCost(const at::Tensor& weights, const CandidateCosts& costs);

// The multiplier by which softmax(logits - multiplier * cost) has the expected cost `target`, or
// `least`, where that one is already enough. Of all weights of that cost these are the nearest to
// softmax(logits) in Kullback-Leibler divergence.
//
// logits: [items, candidates], float64. Returns a float64 scalar, differentiable in the logits by
// the implicit function theorem, so that gradients through the weights are those at fixed cost; at
// `least`, and where no multiplier meets the target, a constant.
at::Tensor CostMultiplier(const at::Tensor& logits, const CandidateCosts& costs, double target,
                          std::optional<double> least = {});

}  // namespace aah

#endif  // AAH_MODEL_COST_MULTIPLIER_H_
