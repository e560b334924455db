#include "aah/model/cost_multiplier.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <optional>

namespace aah {
namespace {

CandidateCosts Costs(int64_t largest_of = 1) {
  return {.cost = torch::tensor({0.1, 0.3, 1.0}, at::kDouble), .largest_of = largest_of};
}

at::Tensor Logits() {
  at::manual_seed(7);
  return at::randn({6, 3}, at::kDouble);
}

at::Tensor Within(const at::Tensor& logits, const CandidateCosts& costs, double target,
                  std::optional<double> least = {}) {
  return (logits - CostMultiplier(logits, costs, target, least) * costs.cost).softmax(-1);
}

TEST(ExpectedCost, IsTheMeanOverItemsOrThatOfTheLargestOfThem) {
  const at::Tensor weights =
      torch::tensor({0.5, 0.5, 0.0, 0.2, 0.0, 0.8}, at::kDouble).view({2, 3});
  EXPECT_NEAR(ExpectedCost(weights, Costs()).item<double>(), (0.2 + 0.82) / 2, 1e-15);
  // The larger of the two: 0.1 with 0.5 * 0.2, 0.3 with 0.5 * 0.2, else 1.
  EXPECT_NEAR(ExpectedCost(weights, Costs(2)).item<double>(), 0.01 + 0.03 + 0.8, 1e-15);
}

TEST(CostMultiplier, MeetsEveryCostBetweenTheLeastAndTheGreatest) {
  for (const int64_t largest_of : {1, 2, 3}) {
    const CandidateCosts costs = Costs(largest_of);
    for (const double target : {0.101, 0.2, 0.5, 0.9, 0.999}) {
      for (const double scale : {0.0, 1.0, 100.0}) {
        const at::Tensor weights = Within(scale * Logits(), costs, target);
        EXPECT_NEAR(ExpectedCost(weights, costs).item<double>(), target, 1e-9)
            << largest_of << " " << scale;
      }
    }
  }
}

TEST(CostMultiplier, BeyondWhatCandidatesCostTakesTheNearest) {
  EXPECT_NEAR(ExpectedCost(Within(Logits(), Costs(), 0.01), Costs()).item<double>(), 0.1, 1e-12);
  EXPECT_NEAR(ExpectedCost(Within(Logits(), Costs(), 2), Costs()).item<double>(), 1, 1e-12);
}

TEST(CostMultiplier, StaysAtTheLeastWhereThatIsEnough) {
  const double own = ExpectedCost(Logits().softmax(-1), Costs()).item<double>();
  EXPECT_EQ(CostMultiplier(Logits(), Costs(), own + 0.01, 0).item<double>(), 0);
  EXPECT_GT(CostMultiplier(Logits(), Costs(), own - 0.01, 0).item<double>(), 0);
  EXPECT_LT(CostMultiplier(Logits(), Costs(), own + 0.01).item<double>(), 0);
}

TEST(CostMultiplier, OneCandidateCostsWhatItCosts) {
  const CandidateCosts one = {.cost = torch::ones({1}, at::kDouble)};
  const at::Tensor logits = torch::zeros({4, 1}, at::kDouble).requires_grad_();
  for (const double target : {0.5, 1.0}) {
    const at::Tensor multiplier = CostMultiplier(logits, one, target);
    EXPECT_EQ(multiplier.item<double>(), 0);
    EXPECT_FALSE(multiplier.requires_grad());
  }
  EXPECT_EQ(CostMultiplier(logits, one, 0.5, 0).item<double>(), 0);
}

// Costs may be shares of something far larger: what is found scales with them.
TEST(CostMultiplier, DoesNotDependOnTheUnitOfCost) {
  const CandidateCosts small = {.cost = 1e-7 * Costs().cost};
  const at::Tensor logits = Logits().requires_grad_();
  const at::Tensor multiplier = CostMultiplier(logits, Costs(), 0.3);
  const at::Tensor scaled = CostMultiplier(logits, small, 0.3e-7);
  EXPECT_NEAR(scaled.item<double>() * 1e-7, multiplier.item<double>(), 1e-8);
  multiplier.backward();
  const at::Tensor gradient = logits.grad().clone();
  logits.mutable_grad() = at::Tensor();
  scaled.backward();
  EXPECT_TRUE((logits.grad() * 1e-7).allclose(gradient, 1e-6, 1e-9));
}

// Of all weights of the same cost, the tilted ones are the nearest to those of the logits.
TEST(CostMultiplier, WeightsAreTheProjectionOfTheLogits) {
  const at::Tensor own = Logits().softmax(-1);
  const at::Tensor nearest = Within(Logits(), Costs(), 0.3);
  const auto divergence = [&](const at::Tensor& weights) {
    return (weights * (weights / own).log()).sum().item<double>();
  };
  at::manual_seed(8);
  for (int trial = 0; trial < 20; ++trial) {
    const at::Tensor other = Within(Logits() + 0.3 * at::randn({6, 3}, at::kDouble), Costs(), 0.3);
    EXPECT_GT(divergence(other), divergence(nearest));
  }
}

TEST(CostMultiplier, GradientsAreThoseAtFixedCost) {
  for (const int64_t largest_of : {1, 2}) {
    const CandidateCosts costs = Costs(largest_of);
    at::manual_seed(5);
    const at::Tensor value = at::randn({6, 3}, at::kDouble);
    const auto loss = [&](const at::Tensor& logits) {
      return (Within(logits, costs, 0.4) * value).sum();
    };
    const at::Tensor logits = Logits().requires_grad_();
    loss(logits).backward();
    constexpr double kStep = 1e-4;  // the multiplier is known to 1e-10, so its slope to 1e-6
    for (int64_t i = 0; i < logits.numel(); ++i) {
      const at::Tensor above = Logits();
      const at::Tensor below = Logits();
      above.view({-1})[i] += kStep;
      below.view({-1})[i] -= kStep;
      const double slope = (loss(above) - loss(below)).item<double>() / (2 * kStep);
      EXPECT_NEAR(logits.grad().view({-1})[i].item<double>(), slope, 2e-6);
    }
  }
}

TEST(CostMultiplier, AtTheLeastItHasNoGradient) {
  const at::Tensor logits = Logits().requires_grad_();
  EXPECT_FALSE(CostMultiplier(logits, Costs(), 1, 0).requires_grad());
  EXPECT_TRUE(CostMultiplier(logits, Costs(), 0.15, 0).requires_grad());
}

}  // namespace
}  // namespace aah
