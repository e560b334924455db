#ifndef AAH_PLAN_BASELINES_H_
#define AAH_PLAN_BASELINES_H_

#include <cstdint>
#include <span>

#include "aah/window_budget.h"
#include "aah/window_plan.h"

// What a window plan is to be compared with: the same windows in other heads, and any windows at
// the same cost. Both are plans for the same model, the same for the same seed everywhere; their
// provenance says what they are.

namespace aah {

// Whether the query heads of every key/value head have one window, and there are several of them:
// kKvHead. Else kHead.
WindowShare PlanShare(const WindowPlan& plan);

// The plan's windows dealt out anew over all heads of all layers, each order equally likely; where
// PlanShare is kKvHead, over key/value heads, so that these go on sharing. Visible pairs and
// allocated context stay what they were; cache bytes do where PlanShare is kKvHead or every query
// head has keys of its own.
WindowPlan ShuffledPlan(const WindowPlan& plan, uint64_t seed);

// Windows that cost what the plan's do, by the kind, length and element of `cost` (its value is not
// used), but are drawn from `candidates`: ChooseWindows with losses -log u, u uniform, one for each
// head and candidate, within the plan's own cost. Windows that these losses leave too cheap are
// made dearer by a reward for cost, the least of 0, 1/16, 1/8, ..., 2048 per full head that comes
// within 1% of the plan's cost; else the dearest choice found. Shared as PlanShare says. Its budget
// is the plan's cost; of an fp32 cache, which may cost more than full attention's fp16 one, in
// terms of an fp16 cache, which compare the same.
//
//   candidates  windows, ascending, each >= 1
//
// Throws aah::Error as ChooseWindows does: the plan costs less than the smallest candidate.
WindowPlan RandomPlan(const WindowPlan& plan, std::span<const int32_t> candidates,
                      const WindowBudget& cost, uint64_t seed);

}  // namespace aah

#endif  // AAH_PLAN_BASELINES_H_
