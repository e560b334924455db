// Any text read as a window plan: refused with aah::Error, or a plan that writes and reads to the
// same text, and whose cost can be counted.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "aah/error.h"
#include "aah/io/window_plan_file.h"
#include "aah/window_budget.h"
#include "aah/window_plan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text;
  aah::WindowPlan plan;
  try {
    plan = aah::ParseWindowPlan({reinterpret_cast<const char*>(data), size}, "fuzz");
    text = aah::WindowPlanText(plan);
  } catch (const aah::Error&) {
    return 0;
  }
  // What was accepted once is accepted for good.
  if (aah::WindowPlanText(aah::ParseWindowPlan(text, "again")) != text) std::abort();
  if (plan.budget) {
    const double ratio = aah::CostRatio(plan.windows, plan.model.shape, plan.sinks, *plan.budget);
    if (!(ratio > 0 && ratio <= 2)) std::abort();
  }
  return 0;
}
