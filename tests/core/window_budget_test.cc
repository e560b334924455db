#include "aah/window_budget.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "aah/error.h"
#include "aah/random.h"
#include "tests/io/error_of.h"

namespace aah {
namespace {

constexpr AttentionShape kShape = {.layers = 2, .heads = 4, .kv_heads = 2, .head_dim = 64};

WindowBudget Budget(BudgetKind kind, double value, int64_t length) {
  return {.kind = kind, .value = value, .length = length, .element = CacheElement::kFloat16};
}

TEST(CostRatio, CountsPairsTokensAndBytes) {
  const WindowTable windows = {{1, 2, 3, 4}, {10, 20, kUnlimitedWindow, 1}};
  // Length 10, full: 55 pairs a head. A window w shows w (w + 1) / 2 + (10 - w) w.
  const double pairs = 10 + 19 + 27 + 34 + 55 + 55 + 55 + 10;
  EXPECT_DOUBLE_EQ(CostRatio(windows, kShape, 0, Budget(BudgetKind::kPairs, 1, 10)),
                   pairs / (8 * 55));
  EXPECT_DOUBLE_EQ(CostRatio(windows, kShape, 0, Budget(BudgetKind::kAllocatedContext, 1, 10)),
                   (1 + 2 + 3 + 4 + 10 + 10 + 10 + 1) / 80.0);
  EXPECT_DOUBLE_EQ(CostRatio(windows, kShape, 2, Budget(BudgetKind::kAllocatedContext, 1, 10)),
                   (3 + 4 + 5 + 6 + 10 + 10 + 10 + 3) / 80.0);
  // The larger window of each pair of query heads is what their key/value head holds.
  EXPECT_DOUBLE_EQ(CostRatio(windows, kShape, 1, Budget(BudgetKind::kCacheBytes, 1, 10)),
                   (3 + 5 + 10 + 10) / 40.0);
}

TEST(CostRatio, MeasuresEveryElementAgainstAFullFp16Cache) {
  const WindowTable full(2, std::vector<int32_t>(4, kUnlimitedWindow));
  WindowBudget budget = Budget(BudgetKind::kCacheBytes, 1, 1000);
  EXPECT_EQ(CostRatio(full, kShape, 4, budget), 1);
  budget.element = CacheElement::kBfloat16;
  EXPECT_EQ(CostRatio(full, kShape, 4, budget), 1);
  budget.element = CacheElement::kFloat32;
  EXPECT_EQ(CostRatio(full, kShape, 4, budget), 2);
  budget.element = CacheElement::kQ8;
  EXPECT_EQ(CostRatio(full, kShape, 4, budget), 34.0 / 64);
}

TEST(CostRatio, RefusesWhatDoesNotFit) {
  const auto refusal = [](const WindowTable& windows, int32_t sinks) {
    return ErrorOf([&] { CostRatio(windows, kShape, sinks, Budget(BudgetKind::kPairs, 1, 10)); });
  };
  EXPECT_EQ(refusal({{1, 1, 1, 1}}, 0), "windows has 1 layers: expected 2");
  EXPECT_EQ(refusal({{1, 1, 1, 1}, {1, 1}}, 0), "windows of layer 1 has 2 heads: expected 4");
  EXPECT_EQ(
      refusal({{1, 1, 1, 1}, {1, 1, 0, 1}}, 0),
      "windows of layer 1: a window is 0, it counts the query's own key, so it is at least 1");
  EXPECT_EQ(refusal({}, -1), "sinks is -1: expected 0 or more");
}

TEST(WindowBudget, RefusesWhatIsNoBudget) {
  for (const double value : {0.0, -0.5, 1.0001, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(CheckWindowBudget(Budget(BudgetKind::kPairs, value, 10), kShape), Error) << value;
  }
  EXPECT_EQ(ErrorOf([] { CheckWindowBudget(Budget(BudgetKind::kPairs, 1.5, 10), kShape); }),
            "the budget is 1.5: expected a share of full attention's cost, above 0 and at most 1");
  EXPECT_EQ(ErrorOf([] { CheckWindowBudget(Budget(BudgetKind::kPairs, 1, 0), kShape); }),
            "the budget's length is 0: expected 1 token or more");
  EXPECT_THROW(CheckWindowBudget(Budget(BudgetKind::kPairs, 1, int64_t{1} << 40), kShape), Error);
  WindowBudget q8 = Budget(BudgetKind::kCacheBytes, 1, 10);
  q8.element = CacheElement::kQ8;
  EXPECT_EQ(ErrorOf([&] { CheckWindowBudget(q8, {1, 1, 1, 80}); }),
            "a q8_0 cache stores blocks of 32: expected a head_dim that 32 divides, got 80, choose "
            "another element");
  EXPECT_EQ(ErrorOf([] { CheckAttentionShape({2, 6, 4, 64}); }),
            "expected key/value heads that divide the 6 heads, got 4");
}

TEST(WindowBudget, HasNamesForItsChoices) {
  for (const BudgetKind kind :
       {BudgetKind::kPairs, BudgetKind::kAllocatedContext, BudgetKind::kCacheBytes}) {
    EXPECT_EQ(ParseBudgetKind(BudgetKindName(kind)), kind);
  }
  EXPECT_EQ(BudgetKindName(BudgetKind::kCacheBytes), "kv_bytes");
  EXPECT_EQ(ParseCacheElement("q8_0"), CacheElement::kQ8);
  EXPECT_EQ(ParseWindowShare("kv_head"), WindowShare::kKvHead);
  EXPECT_EQ(ErrorOf([] { ParseBudgetKind("pair"); }),
            "unknown budget kind 'pair' (did you mean 'pairs'?)");
}

TEST(BudgetUnits, AreTheMostWhoseRatioKeepsTheBudget) {
  Random random(6);
  for (int trial = 0; trial < 200; ++trial) {
    const auto length = static_cast<int64_t>(1 + random.Below(5000));
    // Round figures, whose products with the whole are rounded either way.
    const double value = static_cast<double>(1 + random.Below(100)) / 100;
    const int64_t units = BudgetUnits(Budget(BudgetKind::kPairs, value, length), kShape);
    const auto full = static_cast<double>(8 * (length * (length + 1) / 2));
    EXPECT_LE(static_cast<double>(units) / full, value);
    EXPECT_GT(static_cast<double>(units + 1) / full, value);
  }
  EXPECT_EQ(BudgetUnits(Budget(BudgetKind::kAllocatedContext, 0.29, 25), {1, 4, 4, 8}), 29);
  EXPECT_EQ(BudgetUnits(Budget(BudgetKind::kCacheBytes, 1, 100), kShape), 100 * 2 * 64 * 2 * 4);
}

// The least loss of all choices that keep the budget, by trying every one.
double LeastByTrial(const std::vector<double>& loss, const std::vector<int32_t>& candidates,
                    const AttentionShape& shape, int32_t sinks, const WindowBudget& budget,
                    int32_t together) {
  const int32_t items = shape.layers * shape.heads / together;
  const auto base = static_cast<int64_t>(candidates.size());
  int64_t choices = 1;
  for (int32_t n = 0; n < items; ++n) choices *= base;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t choice = 0; choice < choices; ++choice) {
    WindowTable windows(static_cast<size_t>(shape.layers));
    double sum = 0;
    int64_t rest = choice;
    for (int32_t item = 0; item < items; ++item, rest /= base) {
      for (int32_t head = item * together; head < (item + 1) * together; ++head) {
        windows[static_cast<size_t>(head / shape.heads)].push_back(
            candidates[static_cast<size_t>(rest % base)]);
        sum += loss[static_cast<size_t>(head * base + rest % base)];
      }
    }
    if (sum < least && CostRatio(windows, shape, sinks, budget) <= budget.value) least = sum;
  }
  return least;
}

double LossOf(const std::vector<int32_t>& index, const std::vector<double>& loss,
              size_t candidates) {
  double sum = 0;
  for (size_t head = 0; head < index.size(); ++head) {
    sum += loss[head * candidates + static_cast<size_t>(index[head])];
  }
  return sum;
}

TEST(ChooseWindows, FindsTheBestAllocationOfEveryKind) {
  Random random(7);
  constexpr AttentionShape kSmall = {.layers = 2, .heads = 4, .kv_heads = 2, .head_dim = 32};
  const std::vector<int32_t> candidates = {2, 8, 32};
  for (int trial = 0; trial < 24; ++trial) {
    std::vector<double> loss;
    for (int n = 0; n < 24; ++n) loss.push_back(random.Uniform());
    const WindowBudget budget =
        Budget(static_cast<BudgetKind>(trial % 3), 0.3 + 0.6 * random.Uniform(), 32);
    WindowChoiceOptions options;
    options.share = trial % 2 == 0 ? WindowShare::kHead : WindowShare::kKvHead;
    const int32_t together = options.share == WindowShare::kHead ? 1 : 2;
    const WindowChoice choice = ChooseWindows(loss, candidates, kSmall, 1, budget, options);
    EXPECT_NEAR(LossOf(choice.index, loss, 3),
                LeastByTrial(loss, candidates, kSmall, 1, budget, together), 1e-9)
        << BudgetKindName(budget.kind) << ", share " << WindowShareName(options.share);
    EXPECT_NEAR(choice.knapsack.loss, LossOf(choice.index, loss, 3), 1e-9);
    EXPECT_EQ(choice.cost_ratio, CostRatio(choice.windows, kSmall, 1, budget));
    EXPECT_LE(choice.cost_ratio, budget.value);
    for (size_t head = 0; head < choice.index.size(); ++head) {
      EXPECT_EQ(choice.windows[head / 4][head % 4],
                candidates[static_cast<size_t>(choice.index[head])]);
      if (together == 2) {
        EXPECT_EQ(choice.index[head], choice.index[head / 2 * 2]);
      }
    }
  }
}

TEST(ChooseWindows, CountsTheHeadsThatMoved) {
  const std::vector<int32_t> candidates = {4, 16};
  const AttentionShape shape = {1, 3, 3, 8};
  const std::vector<double> loss = {1, 0, 1, 0, 1, 0};
  const std::vector<int32_t> current = {0, 1, 1};
  WindowChoiceOptions options;
  options.current = current;
  options.stickiness = 0.1;
  const WindowBudget most = Budget(BudgetKind::kAllocatedContext, 0.75, 16);
  const WindowChoice kept = ChooseWindows(loss, candidates, shape, 0, most, options);
  EXPECT_EQ(kept.index, current);
  EXPECT_EQ(kept.moved, 0);
  EXPECT_EQ(kept.windows, (WindowTable{{4, 16, 16}}));
  EXPECT_EQ(kept.cost_ratio, 0.75);
  const WindowBudget half = Budget(BudgetKind::kAllocatedContext, 0.5, 16);
  EXPECT_EQ(ChooseWindows(loss, candidates, shape, 0, half, options).moved, 1);
}

TEST(ChooseWindows, RefusesWhatCannotBeKept) {
  const auto refusal = [](const std::vector<double>& loss, const std::vector<int32_t>& candidates,
                          const std::vector<int32_t>& current) {
    WindowChoiceOptions options;
    options.current = current;
    return ErrorOf([&] {
      ChooseWindows(loss, candidates, {1, 2, 2, 8}, 0,
                    Budget(BudgetKind::kAllocatedContext, 0.25, 16), options);
    });
  };
  const std::vector<double> loss(4, 0.0);
  EXPECT_EQ(refusal(loss, {8, 16}, {}),
            "the budget of 0.25 allocated_context_ratio cannot be kept: the smallest window, 8 "
            "(sinks: 0), in every head costs 0.5 at length 16, give more or a smaller candidate");
  EXPECT_EQ(refusal(loss, {8, 8}, {}),
            "candidate window 1 is 8: expected windows of at least 1, each larger than the one "
            "before");
  EXPECT_EQ(refusal({0, 0, 0}, {8, 16}, {}),
            "losses of 3 head and window pairs: expected 2 heads times 2 candidates");
  EXPECT_EQ(refusal(loss, {}, {}), "there are no candidate windows: expected at least one");
  EXPECT_EQ(refusal({0, 0, 0, std::numeric_limits<double>::infinity()}, {8, 16}, {}),
            "the loss of a head and window is inf: expected a finite number");
  EXPECT_EQ(refusal(loss, {8, 16}, {0, 2}), "a current window has the index 2: expected 0 to 1");
}

}  // namespace
}  // namespace aah
