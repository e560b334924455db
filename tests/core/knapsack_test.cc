#include "aah/knapsack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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

using Items = std::vector<std::vector<KnapsackCandidate>>;

// The least loss within `budget`, item by item over all budgets: plain dynamic programming.
double LeastLoss(const Items& items, int64_t budget) {
  std::vector<double> least(static_cast<size_t>(budget) + 1, 0.0);
  for (const auto& item : items) {
    std::vector<double> next(least.size(), std::numeric_limits<double>::infinity());
    for (const KnapsackCandidate& candidate : item) {
      const auto cost = static_cast<size_t>(candidate.cost);
      for (size_t b = cost; b < least.size(); ++b) {
        next[b] = std::min(next[b], least[b - cost] + candidate.loss);
      }
    }
    least = next;
  }
  return least.back();
}

Items RandomItems(Random& random, size_t count, uint64_t largest_cost) {
  Items items(count);
  for (auto& item : items) {
    const size_t candidates = 1 + random.Below(6);
    for (size_t n = 0; n < candidates; ++n) {
      // Every third loss is coarse, so that ties occur.
      const bool coarse = random.Below(3) == 0;
      const double loss = coarse ? static_cast<double>(random.Below(4)) : 4 * random.Uniform() - 1;
      item.push_back({loss, static_cast<int64_t>(random.Below(largest_cost + 1))});
    }
  }
  return items;
}

// Losses that fall with the window, nearly nothing for most heads, as regrets of a model do.
Items RegretItems(Random& random, size_t count, size_t candidates) {
  Items items(count);
  for (auto& item : items) {
    const double need = std::pow(random.Uniform(), 4);
    const double decay = 0.2 + 2 * random.Uniform();
    for (size_t n = 0; n < candidates; ++n) {
      const double loss =
          n + 1 == candidates ? 0 : need * std::exp(-decay * static_cast<double>(n));
      const int64_t window = int64_t{1024} >> (candidates - 1 - n);
      item.push_back({loss, window * (2049 - window) / 2});
    }
  }
  return items;
}

int64_t CheapestTotal(const Items& items) {
  int64_t sum = 0;
  for (const auto& item : items) {
    int64_t least = item.front().cost;
    for (const KnapsackCandidate& candidate : item) least = std::min(least, candidate.cost);
    sum += least;
  }
  return sum;
}

// That the figures reported are those of the choice.
void ExpectConsistent(const KnapsackChoice& choice, const Items& items, int64_t budget) {
  ASSERT_EQ(choice.index.size(), items.size());
  double loss = 0;
  int64_t cost = 0;
  for (size_t item = 0; item < items.size(); ++item) {
    const auto& candidate = items[item].at(static_cast<size_t>(choice.index[item]));
    loss += candidate.loss;
    cost += candidate.cost;
  }
  EXPECT_EQ(choice.cost, cost);
  EXPECT_DOUBLE_EQ(choice.loss, loss);
  EXPECT_LE(choice.cost, budget);
  EXPECT_GE(choice.duality_gap(), 0);
}

TEST(Knapsack, FindsTheOptimumOfSmallProblems) {
  Random random(1);
  for (int trial = 0; trial < 300; ++trial) {
    const Items items = RandomItems(random, 1 + random.Below(9), 1 + random.Below(40));
    const int64_t budget = CheapestTotal(items) + static_cast<int64_t>(random.Below(60));
    const double optimum = LeastLoss(items, budget);
    const KnapsackChoice choice = ChooseWithinBudget(items, budget);
    ExpectConsistent(choice, items, budget);
    EXPECT_TRUE(choice.proven);
    EXPECT_NEAR(choice.loss, optimum, 1e-9) << "trial " << trial;
    EXPECT_LE(choice.lower_bound, optimum + 1e-9);
  }
}

TEST(Knapsack, GreedyAndExchangesAloneKeepTheBudgetAndTheBound) {
  Random random(2);
  KnapsackOptions options;
  options.max_states = 0;
  double excess = 0;
  double optima = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const Items items = RandomItems(random, 2 + random.Below(9), 30);
    const int64_t budget = CheapestTotal(items) + static_cast<int64_t>(random.Below(80));
    const double optimum = LeastLoss(items, budget);
    const KnapsackChoice choice = ChooseWithinBudget(items, budget, options);
    ExpectConsistent(choice, items, budget);
    EXPECT_GE(choice.loss, optimum - 1e-9);
    EXPECT_LE(choice.loss - optimum, choice.duality_gap() + 1e-9);
    if (choice.proven) {
      EXPECT_NEAR(choice.loss, optimum, 1e-9);
    }
    excess += choice.loss - optimum;
    optima += std::abs(optimum);
  }
  EXPECT_LT(excess, 0.02 * optima);
}

// With room for a few partial choices only, the answer is no worse than without any, and says so.
TEST(Knapsack, ASearchCutShortIsNotCalledProven) {
  Random random(3);
  int cut = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const Items items = RandomItems(random, 30, 1000);
    const int64_t budget = CheapestTotal(items) + static_cast<int64_t>(random.Below(6000));
    KnapsackOptions none;
    none.max_states = 0;
    KnapsackOptions few;
    few.max_states = 40;
    const KnapsackChoice without = ChooseWithinBudget(items, budget, none);
    const KnapsackChoice some = ChooseWithinBudget(items, budget, few);
    const KnapsackChoice best = ChooseWithinBudget(items, budget);
    ExpectConsistent(some, items, budget);
    EXPECT_LE(some.loss, without.loss);
    EXPECT_TRUE(best.proven);
    EXPECT_LE(best.loss, some.loss + 1e-9);
    if (some.proven) {
      EXPECT_NEAR(some.loss, best.loss, 1e-9);
    }
    cut += some.proven ? 0 : 1;
  }
  EXPECT_GT(cut, 5);
}

TEST(Knapsack, ALargerBudgetIsNeverWorse) {
  Random random(4);
  for (const size_t heads : {6, 48, 384}) {
    const Items items = RegretItems(random, heads, 7);
    const int64_t cheapest = CheapestTotal(items);
    const int64_t all = static_cast<int64_t>(heads) * items[0].back().cost;
    double before = std::numeric_limits<double>::infinity();
    for (int step = 0; step <= 40; ++step) {
      const int64_t budget = cheapest + (all - cheapest) * step / 40;
      const KnapsackChoice choice = ChooseWithinBudget(items, budget);
      ExpectConsistent(choice, items, budget);
      EXPECT_TRUE(choice.proven) << heads << " heads, step " << step;
      EXPECT_LE(choice.loss, before + 1e-9);
      before = choice.loss;
    }
    EXPECT_EQ(before, 0);
  }
}

TEST(Knapsack, ALargeModelIsChosenWithASmallGap) {
  Random random(5);
  const Items items = RegretItems(random, 2048, 8);
  const int64_t budget = static_cast<int64_t>(items.size()) * items[0].back().cost / 5;
  const KnapsackChoice choice = ChooseWithinBudget(items, budget);
  ExpectConsistent(choice, items, budget);
  EXPECT_LT(choice.duality_gap(), 1e-4 * choice.loss);
}

TEST(Knapsack, TiesGoToTheEarlierItemAndTheCheaperCandidate) {
  const Items items(4, {{1, 0}, {1, 0}, {0, 5}, {0, 7}, {0, 5}});
  EXPECT_EQ(ChooseWithinBudget(items, 10).index, (std::vector<int32_t>{2, 2, 0, 0}));
  EXPECT_EQ(ChooseWithinBudget(items, 1000).index, (std::vector<int32_t>{2, 2, 2, 2}));
  EXPECT_EQ(ChooseWithinBudget(items, 0).index, (std::vector<int32_t>{0, 0, 0, 0}));
}

TEST(Knapsack, ReportsTheRelaxedProblem) {
  // The relaxed problem takes half of the second item: 0 + 0.5 * 8.
  const Items items = {{{10, 0}, {0, 10}}, {{8, 0}, {0, 10}}};
  const KnapsackChoice choice = ChooseWithinBudget(items, 15);
  EXPECT_EQ(choice.index, (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(choice.loss, 8);
  EXPECT_EQ(choice.cost, 10);
  EXPECT_DOUBLE_EQ(choice.lower_bound, 4);
  EXPECT_DOUBLE_EQ(choice.multiplier, 0.8);
  EXPECT_DOUBLE_EQ(choice.duality_gap(), 4);
  EXPECT_TRUE(choice.proven);
}

// The hull leaves the middle candidate out; only an exchange or the search finds it.
TEST(Knapsack, UsesTheBudgetThatGreedyLeaves) {
  const Items items = {{{10, 0}, {9, 6}, {0, 10}}, {{4, 0}, {0, 3}}};
  for (const int64_t states : {int64_t{0}, int64_t{1000}}) {
    KnapsackOptions options;
    options.max_states = states;
    const KnapsackChoice choice = ChooseWithinBudget(items, 9, options);
    EXPECT_EQ(choice.index, (std::vector<int32_t>{1, 1}));
    EXPECT_EQ(choice.loss, 9);
  }
}

TEST(Knapsack, StaysWhereItIsUnlessMovingGainsMore) {
  const Items items(2, {{1, 0}, {0, 5}});
  const std::vector<int32_t> current = {0, 1};
  KnapsackOptions options;
  options.current = current;
  options.stickiness = 0.25;
  const KnapsackChoice kept = ChooseWithinBudget(items, 5, options);
  EXPECT_EQ(kept.index, current);
  EXPECT_EQ(kept.moved, 0);
  EXPECT_EQ(kept.loss, 1);
  EXPECT_EQ(kept.objective, 1);
  EXPECT_EQ(ChooseWithinBudget(items, 5).index, (std::vector<int32_t>{1, 0}));

  // Both moves together cost 0.5: they are made for a gain of 0.6, not for one of 0.4.
  const Items small = {{{0.4, 0}, {0, 5}}, {{0, 0}, {0, 5}}};
  EXPECT_EQ(ChooseWithinBudget(small, 5, options).index, current);
  const Items large = {{{0.6, 0}, {0, 5}}, {{0, 0}, {0, 5}}};
  const KnapsackChoice moved = ChooseWithinBudget(large, 5, options);
  EXPECT_EQ(moved.index, (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(moved.moved, 2);
  EXPECT_EQ(moved.loss, 0);
  EXPECT_EQ(moved.objective, 0.5);
  // A smaller budget moves it whatever it costs.
  EXPECT_EQ(ChooseWithinBudget(items, 4, options).index, (std::vector<int32_t>{0, 0}));
}

TEST(Knapsack, NothingToChooseCostsNothing) {
  const KnapsackChoice choice = ChooseWithinBudget({}, 0);
  EXPECT_TRUE(choice.index.empty());
  EXPECT_EQ(choice.cost, 0);
  EXPECT_TRUE(choice.proven);
}

TEST(Knapsack, RefusesWhatCannotBeChosen) {
  const auto refusal = [](const Items& items) {
    return ErrorOf([&] { ChooseWithinBudget(items, 1); });
  };
  const Items items = {{{1, 3}, {0, 5}}, {{1, 4}}};
  EXPECT_EQ(ErrorOf([&] { ChooseWithinBudget(items, 6); }),
            "the budget is 6 units: the cheapest candidate of every item costs 7 together, give at "
            "least that much or cheaper candidates");
  EXPECT_EQ(ChooseWithinBudget(items, 7).cost, 7);
  EXPECT_THROW(ChooseWithinBudget(items, -1), Error);
  EXPECT_EQ(refusal({{{0, 0}}, {}}),
            "knapsack: item 1 has no candidates: give every item at least one");
  EXPECT_EQ(refusal({{{0, 0}, {std::numeric_limits<double>::infinity(), 1}}}),
            "knapsack: candidate 1 of item 0 has the loss inf: expected a finite number");
  EXPECT_EQ(refusal({{{0, -2}}}), "knapsack: candidate 0 of item 0 costs -2: expected 0 or more");
  EXPECT_EQ(refusal({{{0, std::numeric_limits<int64_t>::max()}}, {{0, 1}}}),
            "knapsack: the costs sum to more than 2^63 units: use a larger unit");
  EXPECT_EQ(refusal({{{1e308, 0}}, {{1e308, 1}}}),
            "knapsack: the losses sum to infinity: scale them down");
}

TEST(Knapsack, RefusesACurrentChoiceOfAnotherProblem) {
  const Items items = {{{1, 3}, {0, 5}}, {{1, 4}}};
  KnapsackOptions options;
  const std::vector<int32_t> few = {0};
  options.current = few;
  EXPECT_EQ(ErrorOf([&] { ChooseWithinBudget(items, 9, options); }),
            "knapsack: the current choice has 1 items: expected 2");
  const std::vector<int32_t> outside = {0, 1};
  options.current = outside;
  EXPECT_EQ(ErrorOf([&] { ChooseWithinBudget(items, 9, options); }),
            "knapsack: the current choice of item 1 is 1: expected 0 to 0");
  options.current = {};
  options.stickiness = -1;
  EXPECT_EQ(ErrorOf([&] { ChooseWithinBudget(items, 9, options); }),
            "knapsack: stickiness is -1: expected a finite number of 0 or more");
}

}  // namespace
}  // namespace aah
