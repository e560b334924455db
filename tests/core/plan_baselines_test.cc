#include "aah/plan_baselines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "aah/error.h"
#include "aah/random.h"
#include "aah/window_budget.h"
#include "aah/window_plan.h"
#include "tests/io/error_of.h"

namespace aah {
namespace {

WindowBudget At(BudgetKind kind) { return {.kind = kind, .value = 1, .length = 1024}; }

// Most heads narrow, a few wide, in groups of `together`.
WindowPlan Plan(const AttentionShape& shape, int32_t together, uint64_t seed) {
  WindowPlan plan;
  plan.model = {.architecture = "gpt2", .shape = shape, .fingerprint = "f00d"};
  plan.sinks = 4;
  constexpr int32_t kWindows[] = {16, 16, 16, 64, 64, 256, 1024, kUnlimitedWindow};
  Random random(seed);
  for (int32_t layer = 0; layer < shape.layers; ++layer) {
    std::vector<int32_t>& row = plan.windows.emplace_back();
    for (int32_t head = 0; head < shape.heads; ++head) {
      row.push_back(head % together == 0 ? kWindows[random.Below(8)] : row.back());
    }
  }
  plan.budget = At(BudgetKind::kPairs);
  plan.predicted = {{"pairs", 0.25}, {"loss", 3}};
  plan.provenance = {
      .data = "data/kjv", .tokens = 100, .method = "learned", .seed = 7, .versions = {}};
  return plan;
}

std::vector<int32_t> Sorted(const WindowTable& windows) {
  std::vector<int32_t> all;
  for (const auto& layer : windows) all.insert(all.end(), layer.begin(), layer.end());
  std::sort(all.begin(), all.end());
  return all;
}

constexpr AttentionShape kShape = {.layers = 6, .heads = 8, .kv_heads = 8, .head_dim = 64};
constexpr AttentionShape kShared = {.layers = 6, .heads = 8, .kv_heads = 2, .head_dim = 64};

TEST(ShuffledPlan, KeepsTheWindowsAndTheirCost) {
  const WindowPlan plan = Plan(kShape, 1, 1);
  const WindowPlan shuffled = ShuffledPlan(plan, 5);
  EXPECT_NE(shuffled.windows, plan.windows);
  EXPECT_EQ(Sorted(shuffled.windows), Sorted(plan.windows));
  for (const BudgetKind kind :
       {BudgetKind::kPairs, BudgetKind::kAllocatedContext, BudgetKind::kCacheBytes}) {
    EXPECT_EQ(CostRatio(shuffled.windows, kShape, 4, At(kind)),
              CostRatio(plan.windows, kShape, 4, At(kind)));
  }
  EXPECT_EQ(shuffled.model.fingerprint, "f00d");
  EXPECT_EQ(shuffled.sinks, 4);
  EXPECT_EQ(shuffled.provenance.method, "shuffled over heads, seed 5; the windows are by: learned");
  EXPECT_EQ(shuffled.provenance.data, "data/kjv");
  EXPECT_EQ(shuffled.provenance.seed, 5u);
  EXPECT_EQ(
      shuffled.predicted,
      (std::map<std::string, double>{{"pairs", CostRatio(plan.windows, kShape, 4, *plan.budget)}}));
  EXPECT_EQ(ShuffledPlan(plan, 5).windows, shuffled.windows);
  EXPECT_NE(ShuffledPlan(plan, 6).windows, shuffled.windows);
  CheckWindowPlan(shuffled, "shuffled");
}

TEST(ShuffledPlan, MovesWindowsBetweenLayersEquallyOften) {
  WindowPlan plan = Plan({3, 2, 2, 8}, 1, 1);
  plan.windows = {{1, 2}, {3, 4}, {5, 6}};
  std::vector<int> counts(6);
  constexpr int kSeeds = 6000;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    ++counts[static_cast<size_t>(ShuffledPlan(plan, seed).windows[1][0] - 1)];
  }
  for (const int count : counts) EXPECT_NEAR(count, kSeeds / 6, 150);  // 5 standard deviations
}

TEST(ShuffledPlan, KeepsSharedWindowsTogether) {
  const WindowPlan plan = Plan(kShared, 4, 2);
  ASSERT_EQ(PlanShare(plan), WindowShare::kKvHead);
  const WindowPlan shuffled = ShuffledPlan(plan, 5);
  EXPECT_EQ(PlanShare(shuffled), WindowShare::kKvHead);
  EXPECT_NE(shuffled.windows, plan.windows);
  EXPECT_EQ(Sorted(shuffled.windows), Sorted(plan.windows));
  EXPECT_EQ(CostRatio(shuffled.windows, kShared, 4, At(BudgetKind::kCacheBytes)),
            CostRatio(plan.windows, kShared, 4, At(BudgetKind::kCacheBytes)));
  EXPECT_TRUE(shuffled.provenance.method.starts_with("shuffled over key/value heads, seed 5"));

  const WindowPlan apart = Plan(kShared, 1, 2);
  ASSERT_EQ(PlanShare(apart), WindowShare::kHead);
  EXPECT_EQ(Sorted(ShuffledPlan(apart, 5).windows), Sorted(apart.windows));
}

TEST(RandomPlan, CostsWhatThePlanCosts) {
  const std::vector<int32_t> candidates = {16, 64, 256, 1024};
  for (uint64_t seed = 0; seed < 5; ++seed) {
    for (const BudgetKind kind :
         {BudgetKind::kPairs, BudgetKind::kAllocatedContext, BudgetKind::kCacheBytes}) {
      for (const int32_t together : {1, 4}) {
        const AttentionShape& shape = together == 1 ? kShape : kShared;
        const WindowPlan plan = Plan(shape, together, seed);
        const double cost = CostRatio(plan.windows, shape, 4, At(kind));
        const WindowPlan random = RandomPlan(plan, candidates, At(kind), seed);
        const double spent = CostRatio(random.windows, shape, 4, At(kind));
        EXPECT_LE(spent, cost);
        EXPECT_GE(spent, 0.9 * cost) << BudgetKindName(kind) << " " << together << " " << seed;
        EXPECT_EQ(random.predicted.at(std::string(BudgetKindName(kind))), spent);
        ASSERT_TRUE(random.budget.has_value());
        EXPECT_EQ(random.budget->value, cost);
        EXPECT_EQ(random.budget->kind, kind);
        for (const int32_t window : Sorted(random.windows)) {
          EXPECT_TRUE(std::binary_search(candidates.begin(), candidates.end(), window));
        }
        CheckWindowPlan(random, "random");
        EXPECT_EQ(PlanShare(random), PlanShare(plan));
      }
    }
  }
}

// Losses alone would leave most heads narrower than a plan that costs nearly everything.
TEST(RandomPlan, SpendsLargeBudgetsToo) {
  WindowPlan plan = Plan(kShape, 1, 3);
  for (auto& layer : plan.windows) layer.assign(layer.size(), 1024);
  plan.windows[0][0] = plan.windows[3][5] = plan.windows[5][7] = 64;
  const std::vector<int32_t> candidates = {16, 64, 256, 1024};
  const double cost = CostRatio(plan.windows, kShape, 4, *plan.budget);
  const WindowPlan random = RandomPlan(plan, candidates, *plan.budget, 1);
  const double spent = CostRatio(random.windows, kShape, 4, *plan.budget);
  EXPECT_LE(spent, cost);
  EXPECT_GE(spent, 0.99 * cost);
}

TEST(RandomPlan, IsItsSeeds) {
  const WindowPlan plan = Plan(kShape, 1, 3);
  const std::vector<int32_t> candidates = {8, 64, 1024};
  const WindowPlan random = RandomPlan(plan, candidates, *plan.budget, 9);
  EXPECT_EQ(RandomPlan(plan, candidates, *plan.budget, 9).windows, random.windows);
  EXPECT_NE(RandomPlan(plan, candidates, *plan.budget, 10).windows, random.windows);
  EXPECT_EQ(random.provenance.method,
            "random windows at the cost of another plan, candidates 8 64 1024, seed 9");
  EXPECT_EQ(random.provenance.seed, 9u);
  EXPECT_EQ(random.provenance.data, "");
  EXPECT_EQ(random.model.fingerprint, "f00d");
}

TEST(RandomPlan, MeasuresFullPrecisionCachesInHalfPrecision) {
  WindowPlan plan = Plan(kShape, 1, 3);
  for (auto& layer : plan.windows) layer.assign(layer.size(), 800);
  WindowBudget cost = At(BudgetKind::kCacheBytes);
  cost.element = CacheElement::kFloat32;
  const std::vector<int32_t> candidates = {16, 256, 1024};
  const WindowPlan random = RandomPlan(plan, candidates, cost, 1);
  EXPECT_EQ(random.budget->element, CacheElement::kFloat16);
  EXPECT_DOUBLE_EQ(random.budget->value, 804.0 / 1024);
  EXPECT_GE(CostRatio(random.windows, kShape, 4, *random.budget), 0.9 * random.budget->value);
}

TEST(RandomPlan, RefusesWhatCannotBe) {
  WindowPlan plan = Plan(kShape, 1, 3);
  const auto refusal = [&](const std::vector<int32_t>& candidates) {
    return ErrorOf([&] { RandomPlan(plan, candidates, *plan.budget, 1); });
  };
  EXPECT_EQ(refusal({64, 16}),
            "candidate window 1 is 16: expected windows of at least 1, each larger than the one "
            "before");
  EXPECT_EQ(refusal({0, 16}).substr(0, 23), "candidate window 0 is 0");
  EXPECT_EQ(refusal({}), "there are no candidate windows: expected at least one");
  // One candidate costs what it costs everywhere.
  for (auto& layer : plan.windows) layer.assign(layer.size(), 512);
  EXPECT_NE(refusal({16}).find("too little to be compared with it; add wider candidates"),
            std::string::npos);
  for (auto& layer : plan.windows) layer.assign(layer.size(), 8);
  EXPECT_NE(refusal({16, 64}).find("cannot be kept: the smallest window, 16"), std::string::npos);
}

}  // namespace
}  // namespace aah
