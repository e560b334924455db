#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "aah/error.h"
#include "aah/knapsack.h"
#include "aah/window_budget.h"
#include "allocate/window_cost.h"

namespace aah {
namespace {

// The knapsack of one call: items of `together` query heads each, one after another.
class WindowChooser {
 public:
  WindowChooser(std::span<const double> loss, std::span<const int32_t> candidates,
                const AttentionShape& shape, int32_t sinks, const WindowBudget& budget,
                const WindowChoiceOptions& options)
      : loss_(loss),
        candidates_(candidates),
        shape_(shape),
        sinks_(sinks),
        budget_(budget),
        options_(options) {
    CheckArguments();
    const bool cache = budget.kind == BudgetKind::kCacheBytes;
    own_within_ = cache && options.share == WindowShare::kHead;
    if (cache || options.share == WindowShare::kKvHead) together_ = shape.heads / shape.kv_heads;
    for (const int32_t window : candidates) {
      const int64_t units = internal::WindowUnits(window, sinks, shape, budget);
      costs_.push_back(cache ? units : units * together_);
    }
  }

  WindowChoice Choose() {
    const std::vector<std::vector<KnapsackCandidate>> items = Items();
    const int64_t units = BudgetUnits(budget_, shape_);
    const int64_t least = costs_.front() * static_cast<int64_t>(items.size());
    const double least_value =
        static_cast<double>(least) / static_cast<double>(internal::FullUnits(shape_, budget_));
    AAH_CHECK(least <= units, "the budget of ", budget_.value, " ", BudgetKindName(budget_.kind),
              " cannot be kept: the smallest window, ", candidates_.front(), " (sinks: ", sinks_,
              "), in every head costs ", least_value, " at length ", budget_.length,
              ", give more or a smaller candidate");
    const std::vector<int32_t> current = CurrentItems();

    WindowChoice choice;
    KnapsackOptions options;
    options.current = current;
    options.stickiness = options_.stickiness;
    choice.knapsack = ChooseWithinBudget(items, units, options);
    for (int64_t head = 0; head < Heads(); ++head) {
      const int32_t item = choice.knapsack.index[static_cast<size_t>(head / together_)];
      choice.index.push_back(own_within_ ? BestWithin(head, item) : item);
    }
    if (!options_.current.empty()) {
      for (size_t head = 0; head < choice.index.size(); ++head) {
        if (choice.index[head] != options_.current[head]) ++choice.moved;
      }
    }
    choice.windows = Windows(choice.index);
    choice.cost_ratio = CostRatio(choice.windows, shape_, sinks_, budget_);
    return choice;
  }

 private:
  int64_t Heads() const { return int64_t{shape_.layers} * shape_.heads; }
  double Loss(int64_t head, size_t n) const {
    return loss_[static_cast<size_t>(head) * candidates_.size() + n];
  }

  void CheckArguments() const {
    CheckWindowBudget(budget_, shape_);
    internal::CheckSinks(sinks_);
    AAH_CHECK(!candidates_.empty(), "there are no candidate windows: expected at least one");
    for (size_t n = 0; n < candidates_.size(); ++n) {
      AAH_CHECK(candidates_[n] >= 1 && (n == 0 || candidates_[n] > candidates_[n - 1]),
                "candidate window ", n, " is ", candidates_[n],
                ": expected windows of at least 1, each larger than the one before");
    }
    const auto heads = static_cast<size_t>(Heads());
    const bool fits =
        loss_.size() % candidates_.size() == 0 && loss_.size() / candidates_.size() == heads;
    AAH_CHECK(fits, "losses of ", loss_.size(), " head and window pairs: expected ", heads,
              " heads times ", candidates_.size(), " candidates");
    for (const double loss : loss_) {
      AAH_CHECK(std::isfinite(loss), "the loss of a head and window is ", loss,
                ": expected a finite number");
    }
    AAH_CHECK(options_.current.empty() || options_.current.size() == heads, "the current windows ",
              "are of ", options_.current.size(), " heads: expected ", heads);
    for (const int32_t index : options_.current) {
      AAH_CHECK(index >= 0 && static_cast<size_t>(index) < candidates_.size(),
                "a current window has the index ", index, ": expected 0 to ",
                candidates_.size() - 1);
    }
  }

  // The head's best candidate up to `most`; the smaller one where two are equal.
  int32_t BestWithin(int64_t head, int32_t most) const {
    int32_t best = 0;
    for (int32_t n = 1; n <= most; ++n) {
      if (Loss(head, static_cast<size_t>(n)) < Loss(head, static_cast<size_t>(best))) best = n;
    }
    return best;
  }

  std::vector<std::vector<KnapsackCandidate>> Items() const {
    std::vector<std::vector<KnapsackCandidate>> items;
    for (int64_t first = 0; first < Heads(); first += together_) {
      std::vector<KnapsackCandidate>& item = items.emplace_back();
      for (size_t n = 0; n < candidates_.size(); ++n) {
        double sum = 0;
        for (int64_t head = first; head < first + together_; ++head) {
          const int32_t own = static_cast<int32_t>(n);
          sum += Loss(head, static_cast<size_t>(own_within_ ? BestWithin(head, own) : own));
        }
        item.push_back({sum, costs_[n]});
      }
    }
    return items;
  }

  // The largest of the heads of an item.
  std::vector<int32_t> CurrentItems() const {
    std::vector<int32_t> current;
    for (auto head = options_.current.begin(); head != options_.current.end(); head += together_) {
      current.push_back(*std::max_element(head, head + together_));
    }
    return current;
  }

  WindowTable Windows(const std::vector<int32_t>& index) const {
    WindowTable windows(static_cast<size_t>(shape_.layers));
    for (size_t head = 0; head < index.size(); ++head) {
      windows[head / static_cast<size_t>(shape_.heads)].push_back(
          candidates_[static_cast<size_t>(index[head])]);
    }
    return windows;
  }

  std::span<const double> loss_;
  std::span<const int32_t> candidates_;
  const AttentionShape& shape_;
  int32_t sinks_;
  const WindowBudget& budget_;
  const WindowChoiceOptions& options_;
  bool own_within_ = false;  // heads of an item may take less than it pays for
  int32_t together_ = 1;     // query heads of an item
  std::vector<int64_t> costs_;
};

}  // namespace

WindowChoice ChooseWindows(std::span<const double> loss, std::span<const int32_t> candidates,
                           const AttentionShape& shape, int32_t sinks, const WindowBudget& budget,
                           const WindowChoiceOptions& options) {
  return WindowChooser(loss, candidates, shape, sinks, budget, options).Choose();
}

}  // namespace aah
