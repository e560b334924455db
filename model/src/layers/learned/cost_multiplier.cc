#include "aah/model/cost_multiplier.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

namespace aah {
namespace {

// Both in units of the cost between the cheapest candidate and the dearest: the log weight beyond
// which nothing is left to the dearer of two, and the slope below which no multiplier matters.
constexpr double kGreatestMultiplier = 1e6;
constexpr double kLeastSlope = 1e-12;

// The bracket of a multiplier is halved until it is narrower than this share of it.
constexpr double kRelativeWidth = 1e-10;

// The probabilities of the largest of each row of items: [rows, items, candidates] ->
// [rows, candidates].
at::Tensor LargestOf(const at::Tensor& weights) {
  const at::Tensor up_to = weights.cumsum(-1).prod(1);
  return at::cat({up_to.narrow(-1, 0, 1), up_to.diff(1, -1)}, -1);
}

at::Tensor CostAt(const at::Tensor& logits, const CandidateCosts& costs,
                  const at::Tensor& multiplier) {
  return ExpectedCost((logits - multiplier * costs.cost).softmax(-1), costs);
}

at::Tensor Scalar(double value) { return at::scalar_tensor(value, at::kDouble); }

}  // namespace

at::Tensor ExpectedCost(const at::Tensor& weights, const CandidateCosts& costs) {
  if (costs.largest_of == 1) return weights.matmul(costs.cost).mean();
  return LargestOf(weights.view({-1, costs.largest_of, weights.size(-1)}))
      .matmul(costs.cost)
      .mean();
}

at::Tensor CostMultiplier(const at::Tensor& logits, const CandidateCosts& costs, double target,
                          std::optional<double> least) {
  const at::Tensor fixed = logits.detach();
  const double span = (costs.cost[-1] - costs.cost[0]).item<double>();
  if (span <= 0) return Scalar(least.value_or(0));
  // Falls with the multiplier: the dearer a candidate, the faster it loses weight.
  const auto exceeds = [&](double multiplier) {
    const c10::NoGradGuard no_grad;
    return CostAt(fixed, costs, Scalar(multiplier)).item<double>() > target;
  };
  if (least.has_value() && !exceeds(*least)) return Scalar(*least);
  double low = -1 / span;
  double high = 1 / span;
  while (!exceeds(low) && low * span > -kGreatestMultiplier) low *= 4;
  while (exceeds(high) && high * span < kGreatestMultiplier) high *= 4;
  while (high - low > kRelativeWidth * std::max(1 / span, std::max(high, -low))) {
    const double middle = low + (high - low) / 2;
    (exceeds(middle) ? low : high) = middle;
  }
  at::Tensor found = Scalar(high);
  if (!logits.requires_grad() || !c10::GradMode::is_enabled()) return found;
  const at::Tensor leaf = found.clone().requires_grad_();
  const at::Tensor slope = torch::autograd::grad({CostAt(fixed, costs, leaf)}, {leaf}).front();
  if (slope.item<double>() > -kLeastSlope * span * span) return found;
  // A step of Newton's method that goes nowhere, but whose derivative is that of the root.
  const at::Tensor cost = CostAt(logits, costs, found);
  return found - (cost - cost.detach()) / slope;
}

}  // namespace aah
