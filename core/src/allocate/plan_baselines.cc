#include "aah/plan_baselines.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "aah/error.h"
#include "aah/random.h"
#include "aah/window_budget.h"
#include "aah/window_plan.h"
#include "allocate/window_cost.h"

namespace aah {
namespace {

// Query heads that are dealt and drawn as one.
int32_t Together(const WindowPlan& plan) {
  const AttentionShape& shape = plan.model.shape;
  return PlanShare(plan) == WindowShare::kKvHead ? shape.heads / shape.kv_heads : 1;
}

std::string SeedText(uint64_t seed) { return "seed " + std::to_string(seed); }

}  // namespace

WindowShare PlanShare(const WindowPlan& plan) {
  const AttentionShape& shape = plan.model.shape;
  const auto together = static_cast<size_t>(shape.heads / shape.kv_heads);
  if (together == 1) return WindowShare::kHead;
  for (const std::vector<int32_t>& layer : plan.windows) {
    for (size_t head = 0; head < layer.size(); ++head) {
      if (layer[head] != layer[head / together * together]) return WindowShare::kHead;
    }
  }
  return WindowShare::kKvHead;
}

WindowPlan ShuffledPlan(const WindowPlan& plan, uint64_t seed) {
  CheckWindowPlan(plan, "the plan to shuffle");
  const auto together = static_cast<size_t>(Together(plan));
  std::vector<int32_t> dealt;
  for (const std::vector<int32_t>& layer : plan.windows) {
    for (size_t head = 0; head < layer.size(); head += together) dealt.push_back(layer[head]);
  }
  Random random(seed);
  random.Shuffle(std::span(dealt));

  WindowPlan result = plan;
  auto next = dealt.begin();
  for (std::vector<int32_t>& layer : result.windows) {
    for (size_t head = 0; head < layer.size(); ++head) {
      layer[head] = *next;
      if ((head + 1) % together == 0) ++next;
    }
  }
  result.predicted.clear();
  if (plan.budget) {
    result.predicted[std::string(BudgetKindName(plan.budget->kind))] =
        CostRatio(result.windows, result.model.shape, result.sinks, *plan.budget);
  }
  result.provenance.method = std::string("shuffled over ") +
                             (together == 1 ? "heads, " : "key/value heads, ") + SeedText(seed);
  if (!plan.provenance.method.empty()) {
    result.provenance.method += "; the windows are by: " + plan.provenance.method;
  }
  result.provenance.seed = seed;
  return result;
}

WindowPlan RandomPlan(const WindowPlan& plan, std::span<const int32_t> candidates,
                      const WindowBudget& cost, uint64_t seed) {
  CheckWindowPlan(plan, "the plan to match");
  const AttentionShape& shape = plan.model.shape;
  WindowBudget budget = cost;
  budget.value = 1;
  double ratio = CostRatio(plan.windows, shape, plan.sinks, budget);
  if (ratio > 1) {
    budget.element = CacheElement::kFloat16;
    ratio = CostRatio(plan.windows, shape, plan.sinks, budget);
  }
  budget.value = ratio;
  const auto heads = static_cast<size_t>(shape.layers) * static_cast<size_t>(shape.heads);
  std::vector<double> share;  // of a head that sees everything
  for (const int32_t window : candidates) {
    const auto units = [&](int32_t seen) {
      return static_cast<double>(internal::WindowUnits(seen, plan.sinks, shape, budget));
    };
    share.push_back(window < 1 ? 0 : units(window) / units(kUnlimitedWindow));
  }
  Random random(seed);
  std::vector<double> drawn(heads * candidates.size());
  for (double& loss : drawn) loss = -std::log(1 - random.Uniform());

  constexpr double kClose = 0.99;
  constexpr double kNear = 0.9;  // few heads with few candidates may not come closer
  constexpr double kLeastReward = 1.0 / 16;
  constexpr double kGreatestReward = 2048;
  WindowChoice best;
  for (double reward = 0; reward <= kGreatestReward;
       reward = reward == 0 ? kLeastReward : 2 * reward) {
    std::vector<double> loss = drawn;
    for (size_t i = 0; i < loss.size(); ++i) loss[i] -= reward * share[i % share.size()];
    WindowChoice choice = ChooseWindows(loss, candidates, shape, plan.sinks, budget,
                                        {.share = PlanShare(plan), .current = {}});
    if (choice.cost_ratio > best.cost_ratio) best = std::move(choice);
    if (best.cost_ratio >= kClose * budget.value) break;
  }
  AAH_CHECK(best.cost_ratio >= kNear * budget.value, "the candidates' windows cost ",
            best.cost_ratio, " of full attention at most within the plan's cost, ", budget.value,
            ": too little to be compared with it; add wider candidates");

  WindowPlan result;
  result.model = plan.model;
  result.sinks = plan.sinks;
  result.windows = std::move(best.windows);
  result.budget = budget;
  result.predicted[std::string(BudgetKindName(budget.kind))] = best.cost_ratio;
  result.provenance.method = "random windows at the cost of another plan, candidates";
  for (const int32_t window : candidates) {
    result.provenance.method += " " + std::to_string(window);
  }
  result.provenance.method += ", " + SeedText(seed);
  result.provenance.seed = seed;
  return result;
}

}  // namespace aah
