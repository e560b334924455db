#ifndef AAH_KNAPSACK_H_
#define AAH_KNAPSACK_H_

#include <cstdint>
#include <span>
#include <vector>

namespace aah {

// What one candidate of an item is worth: for a head and a window, the regret (or -log of the
// selection weight) and the price in units of the budget. Costs are whole numbers (visible pairs,
// bytes, nanoseconds), so that a budget is kept exactly.
struct KnapsackCandidate {
  double loss = 0;   // finite
  int64_t cost = 0;  // >= 0
};

struct KnapsackOptions {
  // The choice in force, [items], or empty. Every candidate but the current one of its item has
  // `stickiness` added to its loss: an item moves if that gains more, or if the budget makes it.
  std::span<const int32_t> current;
  double stickiness = 0;  // >= 0

  // Partial choices held while the optimum is looked for, 8 bytes each; 0: greedy and exchanges
  // alone. Where a search would need more, the most promising are kept and `proven` is false.
  int64_t max_states = int64_t{1} << 20;
};

struct KnapsackChoice {
  std::vector<int32_t> index;  // [items] into the item's candidates
  double loss = 0;             // of the candidates chosen, as given (no stickiness)
  int64_t cost = 0;            // never above the budget
  double objective = 0;        // loss plus stickiness paid: what was minimised
  double lower_bound = 0;      // no choice within the budget has a lower objective
  double multiplier = 0;       // loss that one more unit of budget saves, in the relaxed problem
  bool proven = false;         // the objective is the least possible, to rounding
  int64_t moved = 0;           // items not at their current candidate; 0 without `current`

  // How much better than this the optimum might be, >= 0. Where `proven`, it is what the relaxed
  // problem gains by splitting one item between two candidates.
  double duality_gap() const { return objective - lower_bound; }
};

// One candidate for each item, so that the sum of losses is least while the costs sum to at most
// `budget`: the multiple-choice knapsack. items: [items][candidates], any number of each but none
// of candidates.
//
// Lower convex hull of each item, greedy by slope (the Lagrangian solution), exchanges for the
// budget left, then dynamic programming over what the Lagrangian bound cannot decide (Kellerer,
// Pferschy, Pisinger: Knapsack Problems, ch. 11). The search takes at most max_states times the
// square of an item's candidates, usually far less.
//
// The same input gives the same choice, everywhere: equal slopes go to the earlier item, equal
// candidates to the cheaper one, then to the earlier one. A proven choice never gets worse as the
// budget grows.
//
// Throws aah::Error on an item without candidates, losses that are not finite, negative costs,
// `current` of another size, and on a budget below the least possible cost, which it names.
KnapsackChoice ChooseWithinBudget(std::span<const std::vector<KnapsackCandidate>> items,
                                  int64_t budget, const KnapsackOptions& options = {});

}  // namespace aah

#endif  // AAH_KNAPSACK_H_
