#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <tuple>
#include <utility>
#include <vector>

#include "allocate/knapsack_steps.h"

// A choice's loss is lower_bound + its penalties + multiplier * the budget it leaves, where a
// candidate's penalty, >= 0, is what it has above its item's least loss + multiplier * cost. So a
// candidate whose penalty alone reaches the gap between the best choice known and the bound is in
// no better choice; and so for partial choices. What is left is small wherever the gap is.

namespace aah::internal {
namespace {

// A candidate or a partial choice, relative to the relaxed choice.
struct Partial {
  int64_t cost = 0;
  double loss = 0;
  int32_t parent = 0;     // into the states of the item before
  int32_t candidate = 0;  // of the item
};

bool Cheaper(const Partial& a, const Partial& b) {
  return std::tuple(a.cost, a.loss) < std::tuple(b.cost, b.loss);
}

struct OpenItem {
  size_t item = 0;
  std::vector<Partial> candidates;  // more than one
  int64_t least_cost = 0;
  int64_t most_cost = 0;
};

constexpr size_t kWidest = size_t{1} << 26;  // a parent is an int32_t, before the cut too

// The way back from a state: where it came from, and by which candidate.
struct Step {
  int32_t parent = 0;
  int32_t candidate = 0;
};

class Search {
 public:
  explicit Search(KnapsackState& state)
      : state_(state), gap_(state.Loss() - state.lower_bound - state.tolerance) {
    spare_ = state.budget;
    for (size_t item = 0; item < state.items.size(); ++item) spare_ -= Relaxed(item).cost;
  }

  bool Run() {
    if (gap_ <= 0) return true;
    if (state_.max_states == 0) return false;
    if (!Reduce()) return true;
    const size_t share = static_cast<size_t>(state_.max_states) / std::max<size_t>(open_.size(), 1);
    width_ = std::clamp<size_t>(share, 1, kWidest);
    std::vector<Partial> states = {fixed_};
    for (size_t n = 0; n < open_.size(); ++n) {
      states = Extend(states, n);
      if (states.empty()) return complete_;
    }
    Take(states);
    return complete_;
  }

 private:
  const KnapsackCandidate& Relaxed(size_t item) const {
    return state_.items[item][static_cast<size_t>(state_.relaxed[item])];
  }
  double Penalty(const Partial& partial) const {
    return partial.loss + state_.multiplier * static_cast<double>(partial.cost);
  }

  // Sorts the candidates out; items left with one are fixed. False: no better choice exists.
  bool Reduce() {
    for (size_t item = 0; item < state_.items.size(); ++item) {
      OpenItem open = {.item = item, .candidates = {}};
      for (size_t n = 0; n < state_.items[item].size(); ++n) {
        const KnapsackCandidate& candidate = state_.items[item][n];
        const Partial relative = {candidate.cost - Relaxed(item).cost,
                                  candidate.loss - Relaxed(item).loss, 0, static_cast<int32_t>(n)};
        if (Penalty(relative) < gap_) open.candidates.push_back(relative);
      }
      if (open.candidates.empty()) return false;
      std::sort(open.candidates.begin(), open.candidates.end(),
                [](const Partial& a, const Partial& b) {
                  return std::tuple(a.cost, a.loss, a.candidate) <
                         std::tuple(b.cost, b.loss, b.candidate);
                });
      DropDominated(open.candidates);
      open.least_cost = open.candidates.front().cost;
      open.most_cost = open.candidates.back().cost;
      if (open.candidates.size() > 1) {
        open_.push_back(std::move(open));
      } else {
        fixed_.cost += open.candidates.front().cost;
        fixed_.loss += open.candidates.front().loss;
        found_.emplace_back(item, open.candidates.front().candidate);
      }
    }
    least_after_.assign(open_.size() + 1, 0);
    most_after_.assign(open_.size() + 1, 0);
    for (size_t n = open_.size(); n-- > 0;) {
      least_after_[n] = least_after_[n + 1] + open_[n].least_cost;
      most_after_[n] = most_after_[n + 1] + open_[n].most_cost;
    }
    return true;
  }

  // REQUIRES: sorted by Cheaper. Keeps those that lose less than every cheaper one.
  static void DropDominated(std::vector<Partial>& partials) {
    size_t kept = 0;
    for (const Partial& partial : partials) {
      if (kept == 0 || partial.loss < partials[kept - 1].loss) partials[kept++] = partial;
    }
    partials.resize(kept);
  }

  // What a choice that extends `partial` by the open items from `next` on has at least above the
  // bound.
  double Bound(const Partial& partial, size_t next) const {
    const int64_t unused = spare_ - partial.cost - most_after_[next];
    return Penalty(partial) + state_.multiplier * static_cast<double>(std::max<int64_t>(unused, 0));
  }

  std::vector<Partial> Extend(const std::vector<Partial>& states, size_t n) {
    std::vector<Partial> all;
    std::vector<Partial> moved;
    std::vector<Partial> merged;
    for (const Partial& candidate : open_[n].candidates) {
      moved.clear();
      for (size_t parent = 0; parent < states.size(); ++parent) {
        const Partial next = {states[parent].cost + candidate.cost,
                              states[parent].loss + candidate.loss, static_cast<int32_t>(parent),
                              candidate.candidate};
        if (next.cost + least_after_[n + 1] > spare_ || Bound(next, n + 1) >= gap_) continue;
        moved.push_back(next);
      }
      merged.clear();
      std::merge(all.begin(), all.end(), moved.begin(), moved.end(), std::back_inserter(merged),
                 Cheaper);
      DropDominated(merged);
      std::swap(all, merged);
    }
    if (all.size() > width_) KeepPromising(all, n + 1);
    std::vector<Step> steps;
    steps.reserve(all.size());
    for (const Partial& partial : all) steps.push_back({partial.parent, partial.candidate});
    steps_.push_back(std::move(steps));
    return all;
  }

  void KeepPromising(std::vector<Partial>& states, size_t next) {
    complete_ = false;
    const auto end = states.begin() + static_cast<std::ptrdiff_t>(width_);
    std::nth_element(states.begin(), end, states.end(), [&](const Partial& a, const Partial& b) {
      return std::tuple(Bound(a, next), a.cost) < std::tuple(Bound(b, next), b.cost);
    });
    states.resize(width_);
    std::sort(states.begin(), states.end(), Cheaper);
  }

  // The best of the whole choices, which is better than the one known.
  void Take(const std::vector<Partial>& states) {
    // Dominated ones are gone: the last has the least loss.
    size_t at = states.size() - 1;
    const int64_t cost = states[at].cost;
    for (size_t n = open_.size(); n-- > 0;) {
      const Step& step = steps_[n][at];
      found_.emplace_back(open_[n].item, step.candidate);
      at = static_cast<size_t>(step.parent);
    }
    for (const auto& [item, candidate] : found_) state_.index[item] = candidate;
    state_.cost = state_.budget - spare_ + cost;
  }

  KnapsackState& state_;
  double gap_;         // a choice at least this far above the bound is no better
  int64_t spare_ = 0;  // what the relaxed choice leaves of the budget
  Partial fixed_;      // sum over the items that are fixed
  std::vector<OpenItem> open_;
  std::vector<int64_t> least_after_;  // sums over the open items from one on
  std::vector<int64_t> most_after_;
  std::vector<std::vector<Step>> steps_;  // [open items][states]
  std::vector<std::pair<size_t, int32_t>> found_;
  size_t width_ = 1;
  bool complete_ = true;
};

}  // namespace

bool SearchOptimum(KnapsackState& state) { return Search(state).Run(); }

}  // namespace aah::internal
