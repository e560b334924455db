#include "aah/knapsack.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "aah/error.h"
#include "allocate/knapsack_steps.h"

namespace aah {
namespace {

using internal::KnapsackState;

void CheckItems(std::span<const std::vector<KnapsackCandidate>> items) {
  int64_t dearest = 0;  // of all items together: the sum must not overflow
  for (size_t item = 0; item < items.size(); ++item) {
    AAH_CHECK(!items[item].empty(), "knapsack: item ", item,
              " has no candidates: give every item at least one");
    int64_t most = 0;
    for (size_t n = 0; n < items[item].size(); ++n) {
      const KnapsackCandidate& candidate = items[item][n];
      AAH_CHECK(std::isfinite(candidate.loss), "knapsack: candidate ", n, " of item ", item,
                " has the loss ", candidate.loss, ": expected a finite number");
      AAH_CHECK(candidate.cost >= 0, "knapsack: candidate ", n, " of item ", item, " costs ",
                candidate.cost, ": expected 0 or more");
      most = std::max(most, candidate.cost);
    }
    AAH_CHECK(!__builtin_add_overflow(dearest, most, &dearest),
              "knapsack: the costs sum to more than 2^63 units: use a larger unit");
  }
}

void CheckOptions(const KnapsackOptions& options,
                  std::span<const std::vector<KnapsackCandidate>> items) {
  AAH_CHECK(std::isfinite(options.stickiness) && options.stickiness >= 0,
            "knapsack: stickiness is ", options.stickiness,
            ": expected a finite number of 0 or more");
  AAH_CHECK(options.max_states >= 0, "knapsack: max_states is ", options.max_states,
            ": expected 0 or more");
  if (options.current.empty()) return;
  AAH_CHECK(options.current.size() == items.size(), "knapsack: the current choice has ",
            options.current.size(), " items: expected ", items.size());
  for (size_t item = 0; item < items.size(); ++item) {
    const int32_t index = options.current[item];
    AAH_CHECK(index >= 0 && static_cast<size_t>(index) < items[item].size(),
              "knapsack: the current choice of item ", item, " is ", index, ": expected 0 to ",
              items[item].size() - 1);
  }
}

// The items with the stickiness in their losses.
KnapsackState MakeState(std::span<const std::vector<KnapsackCandidate>> items, int64_t budget,
                        const KnapsackOptions& options) {
  KnapsackState state;
  state.budget = budget;
  state.max_states = options.max_states;
  state.items.assign(items.begin(), items.end());
  double magnitude = 0;
  for (size_t item = 0; item < items.size(); ++item) {
    double largest = 0;
    for (size_t n = 0; n < items[item].size(); ++n) {
      double& loss = state.items[item][n].loss;
      if (!options.current.empty() && static_cast<size_t>(options.current[item]) != n) {
        loss += options.stickiness;
      }
      largest = std::max(largest, std::abs(loss));
    }
    magnitude += largest;
  }
  AAH_CHECK(std::isfinite(magnitude), "knapsack: the losses sum to infinity: scale them down");
  constexpr double kRounding = 1e-12;
  state.tolerance = kRounding * magnitude;
  return state;
}

}  // namespace

double internal::KnapsackState::Loss() const {
  double sum = 0;
  for (size_t item = 0; item < items.size(); ++item) sum += Chosen(item).loss;
  return sum;
}

KnapsackChoice ChooseWithinBudget(std::span<const std::vector<KnapsackCandidate>> items,
                                  int64_t budget, const KnapsackOptions& options) {
  CheckItems(items);
  CheckOptions(options, items);
  KnapsackState state = MakeState(items, budget, options);
  internal::TakeGreedySteps(state);
  internal::Exchange(state);
  const bool complete = internal::SearchOptimum(state);

  KnapsackChoice choice;
  choice.cost = state.cost;
  choice.objective = state.Loss();
  choice.lower_bound = std::min(state.lower_bound, choice.objective);
  choice.multiplier = state.multiplier;
  choice.proven = complete;
  for (size_t item = 0; item < items.size(); ++item) {
    choice.loss += items[item][static_cast<size_t>(state.index[item])].loss;
    if (!options.current.empty() && options.current[item] != state.index[item]) ++choice.moved;
  }
  choice.index = std::move(state.index);
  return choice;
}

}  // namespace aah
