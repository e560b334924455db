#ifndef AAH_LAB_PLAN_TEXT_H_
#define AAH_LAB_PLAN_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "aah/window_budget.h"
#include "aah/window_plan.h"

namespace aah {

// By what the cost of a plan is measured: its budget, at `length` tokens where given, or visible
// pairs where it has none. Throws aah::Error, `name` in front, for a plan without a budget where
// there is no length either, and for a length below 1 or too long to count.
WindowBudget PlanMeasure(const WindowPlan& plan, std::optional<int64_t> length,
                         std::string_view name);

// The value in words: "0.248 of full attention's visible pairs at 1,024 tokens".
std::string CostText(double ratio, const WindowBudget& measure);

struct PlanTextStyle {
  bool colour = false;
  std::optional<int64_t> length;  // tokens to measure costs at; the budget's where absent
};

// For people: model, budget, predictions and provenance, realised costs, the windows of layers and
// heads as a heat map. Lines that end in '\n'; text of the file cannot steer a terminal. `name` is
// the file. Costs are left out where neither plan nor style gives a length.
std::string WindowPlanReport(const WindowPlan& plan, std::string_view name,
                             const PlanTextStyle& style);

}  // namespace aah

#endif  // AAH_LAB_PLAN_TEXT_H_
