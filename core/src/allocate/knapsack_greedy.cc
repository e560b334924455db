#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

#include "aah/error.h"
#include "allocate/knapsack_steps.h"

namespace aah::internal {
namespace {

// From one corner of an item's lower convex hull to the next.
struct HullStep {
  size_t item = 0;
  int32_t to = 0;
  int64_t cost = 0;   // added, > 0
  double saving = 0;  // of loss, > 0
  double slope() const { return saving / static_cast<double>(cost); }
};

double Slope(const KnapsackCandidate& from, const KnapsackCandidate& to) {
  return (from.loss - to.loss) / static_cast<double>(to.cost - from.cost);
}

// Indices of the corners by rising cost: the cheapest candidate first, slopes falling, all
// positive.
std::vector<int32_t> LowerHull(const std::vector<KnapsackCandidate>& candidates) {
  std::vector<int32_t> order(candidates.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [&](int32_t index) -> const KnapsackCandidate& {
    return candidates[static_cast<size_t>(index)];
  };
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return std::tuple(at(a).cost, at(a).loss, a) < std::tuple(at(b).cost, at(b).loss, b);
  });
  std::vector<int32_t> hull;
  for (const int32_t next : order) {
    if (!hull.empty() && at(next).loss >= at(hull.back()).loss) continue;
    while (hull.size() >= 2) {
      const KnapsackCandidate& last = at(hull.back());
      if (Slope(at(hull[hull.size() - 2]), last) > Slope(last, at(next))) break;
      hull.pop_back();
    }
    hull.push_back(next);
  }
  return hull;
}

// One item's change of candidate.
struct Move {
  size_t item = 0;
  int32_t to = 0;
  int64_t cost = 0;  // added
  double loss = 0;   // added
};

std::vector<Move> AllMoves(const KnapsackState& state) {
  std::vector<Move> moves;
  for (size_t item = 0; item < state.items.size(); ++item) {
    const KnapsackCandidate& chosen = state.Chosen(item);
    for (size_t n = 0; n < state.items[item].size(); ++n) {
      if (static_cast<size_t>(state.index[item]) == n) continue;
      const KnapsackCandidate& other = state.items[item][n];
      moves.push_back(
          {item, static_cast<int32_t>(n), other.cost - chosen.cost, other.loss - chosen.loss});
    }
  }
  return moves;
}

void Apply(KnapsackState& state, const Move& move) {
  state.index[move.item] = move.to;
  state.cost += move.cost;
}

// The one move that gains most within the budget left.
std::optional<Move> BestSingle(const KnapsackState& state, const std::vector<Move>& moves) {
  std::optional<Move> best;
  for (const Move& move : moves) {
    if (move.cost > state.budget - state.cost || move.loss >= -state.tolerance) continue;
    if (!best || std::tuple(move.loss, move.cost) < std::tuple(best->loss, best->cost)) best = move;
  }
  return best;
}

// For the first n of a list of giving moves: the one that loses least, and the one that does so
// among the other items.
struct LeastLosing {
  size_t first = 0;
  std::optional<size_t> second;
};

std::vector<LeastLosing> RunningLeast(const std::vector<Move>& giving) {
  std::vector<LeastLosing> least;
  for (size_t n = 0; n < giving.size(); ++n) {
    LeastLosing next = n == 0 ? LeastLosing{} : least.back();
    if (n > 0) {
      const bool same_item = giving[n].item == giving[next.first].item;
      if (giving[n].loss < giving[next.first].loss) {
        if (!same_item) next.second = next.first;
        next.first = n;
      } else if (!same_item && (!next.second || giving[n].loss < giving[*next.second].loss)) {
        next.second = n;
      }
    }
    least.push_back(next);
  }
  return least;
}

// The pair that gains most: one move gives up budget, which the other uses.
std::optional<std::array<Move, 2>> BestPair(const KnapsackState& state,
                                            const std::vector<Move>& moves) {
  std::vector<Move> giving;
  for (const Move& move : moves) {
    if (move.cost < 0) giving.push_back(move);
  }
  std::sort(giving.begin(), giving.end(), [](const Move& a, const Move& b) {
    return std::tuple(a.cost, a.item, a.to) < std::tuple(b.cost, b.item, b.to);
  });
  const std::vector<LeastLosing> least = RunningLeast(giving);

  std::optional<std::array<Move, 2>> best;
  double best_gain = state.tolerance;
  for (const Move& use : moves) {
    const int64_t spare = state.budget - state.cost;
    if (use.cost <= spare || -use.loss <= best_gain) continue;
    const auto enough = std::partition_point(giving.begin(), giving.end(), [&](const Move& give) {
      return give.cost + use.cost <= spare;
    });
    if (enough == giving.begin()) continue;
    const LeastLosing& found = least[static_cast<size_t>(enough - giving.begin()) - 1];
    std::optional<size_t> give = found.first;
    if (giving[found.first].item == use.item) give = found.second;
    if (!give || -(use.loss + giving[*give].loss) <= best_gain) continue;
    best_gain = -(use.loss + giving[*give].loss);
    best = {giving[*give], use};
  }
  return best;
}

}  // namespace

void TakeGreedySteps(KnapsackState& state) {
  std::vector<HullStep> steps;
  for (size_t item = 0; item < state.items.size(); ++item) {
    const std::vector<int32_t> hull = LowerHull(state.items[item]);
    state.index.push_back(hull.front());
    state.cost += state.Chosen(item).cost;
    for (size_t n = 1; n < hull.size(); ++n) {
      const auto& from = state.items[item][static_cast<size_t>(hull[n - 1])];
      const auto& to = state.items[item][static_cast<size_t>(hull[n])];
      steps.push_back({item, hull[n], to.cost - from.cost, from.loss - to.loss});
    }
  }
  AAH_CHECK(state.cost <= state.budget, "the budget is ", state.budget,
            " units: the cheapest candidate of every item costs ", state.cost,
            " together, give at least that much or cheaper candidates");
  // Slopes of one item differ, so this orders all steps.
  std::sort(steps.begin(), steps.end(), [](const HullStep& a, const HullStep& b) {
    return std::tuple(-a.slope(), a.item) < std::tuple(-b.slope(), b.item);
  });
  for (const HullStep& step : steps) {
    if (step.cost > state.budget - state.cost) {
      state.multiplier = step.slope();
      break;
    }
    state.index[step.item] = step.to;
    state.cost += step.cost;
  }
  state.relaxed = state.index;
  state.lower_bound =
      state.Loss() - state.multiplier * static_cast<double>(state.budget - state.cost);
}

void Exchange(KnapsackState& state) {
  const size_t limit = 4 * state.items.size();  // the search comes after
  for (size_t step = 0; step < limit; ++step) {
    if (state.Loss() - state.lower_bound <= state.tolerance) return;
    const std::vector<Move> moves = AllMoves(state);
    if (const auto single = BestSingle(state, moves)) {
      Apply(state, *single);
    } else if (const auto pair = BestPair(state, moves)) {
      for (const Move& move : *pair) Apply(state, move);
    } else {
      return;
    }
  }
}

}  // namespace aah::internal
