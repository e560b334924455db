#ifndef AAH_ALLOCATE_KNAPSACK_STEPS_H_
#define AAH_ALLOCATE_KNAPSACK_STEPS_H_

#include <cstdint>
#include <vector>

#include "aah/knapsack.h"

// The steps of ChooseWithinBudget, each on the choice the one before it left.

namespace aah::internal {

struct KnapsackState {
  std::vector<std::vector<KnapsackCandidate>> items;  // stickiness included
  int64_t budget = 0;
  double tolerance = 0;  // differences of losses up to here are rounding
  int64_t max_states = 0;

  std::vector<int32_t> index;  // the choice so far, within the budget
  int64_t cost = 0;

  // Of the greedy steps: their choice, a minimum of loss + multiplier * cost for each item.
  std::vector<int32_t> relaxed;
  double lower_bound = 0;
  double multiplier = 0;

  const KnapsackCandidate& Chosen(size_t item) const {
    return items[item][static_cast<size_t>(index[item])];
  }
  // Sums over the items in their order, so that equal choices have equal sums.
  double Loss() const;
};

// The cheapest candidates, then the steps along the convex hulls by falling slope up to the first
// that does not fit. Sets lower_bound and multiplier. Throws where the cheapest do not fit.
void TakeGreedySteps(KnapsackState& state);

// Moves of one item, then of two (one gives up budget, one uses it), best first, while they gain.
void Exchange(KnapsackState& state);

// The optimum, by dynamic programming over the candidates that may still be part of one better than
// the choice so far. Returns whether the search was complete.
bool SearchOptimum(KnapsackState& state);

}  // namespace aah::internal

#endif  // AAH_ALLOCATE_KNAPSACK_STEPS_H_
