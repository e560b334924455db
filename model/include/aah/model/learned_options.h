#ifndef AAH_MODEL_LEARNED_OPTIONS_H_
#define AAH_MODEL_LEARNED_OPTIONS_H_

#include <cstdint>
#include <vector>

#include "aah/window_budget.h"

namespace aah {

// How the selection weights of a step are made from the logits.
enum class SelectionEstimator {
  kSoftmax,  // softmax(logits / temperature - multiplier * cost)
  // One candidate per head, drawn by adding Gumbel noise to logits - multiplier * cost; gradients
  // as if it were the softmax of that sum over the temperature. Straight-through, after Jang, Gu
  // and Poole (2017).
  kGumbel,
};

// Windows that gradients choose: variants `learned` and `aah_learned`. Fractions are of the whole
// run.
struct LearnedOptions {
  // Ascending, each >= 1, the last one at least the context. Empty: DefaultCandidates(context).
  std::vector<int32_t> candidates;

  double budget = 0.2;                                  // of full attention's cost, in (0, 1]
  BudgetKind budget_kind = BudgetKind::kPairs;          // what is counted
  int64_t budget_length = 0;                            // at how many tokens; 0: the context
  CacheElement cache_element = CacheElement::kFloat16;  // of kCacheBytes
  WindowShare share = WindowShare::kHead;
  SelectionEstimator estimator = SelectionEstimator::kSoftmax;

  double warmup = 0.05;      // full attention, logits untouched
  double search = 0.2;       // mixed outputs; then one window per head
  int64_t track_every = 20;  // afterwards every so many steps is a mixed one; 0: the plan stays
  double hysteresis = 0.5;   // what a head must gain in log weight to move, tracking

  double temperature = 1;          // at the begin of the search,
  double final_temperature = 0.3;  // and at its end
  double learning_rate = 0.05;     // of the logits: `learned`
  // Of the scorers' weights: `aah_learned`. As each of them moves many logits, these get about as
  // far as free ones do.
  double scorer_learning_rate = 0.01;
  double drop_below = 1e-4;  // candidates of less weight are left out of a step
  uint64_t seed = 0;         // of the noise
};

// What the options' budget is, for a model of `context` tokens.
WindowBudget BudgetOf(const LearnedOptions& options, int64_t context);

// 16, 32, 64, ... below the context, and the context.
std::vector<int32_t> DefaultCandidates(int64_t context);

}  // namespace aah

#endif  // AAH_MODEL_LEARNED_OPTIONS_H_
