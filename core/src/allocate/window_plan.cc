#include "aah/window_plan.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "aah/error.h"
#include "aah/window_budget.h"

namespace aah {
namespace {

// Runs `check`; its refusals begin with the name.
template <typename Check>
void Named(std::string_view name, const Check& check) {
  try {
    check();
  } catch (const Error& error) {
    ThrowError(error.kind(), name, ": ", error.what());
  }
}

void CheckSame(std::string_view name, std::string_view what, int32_t planned, int32_t wanted) {
  AAH_CHECK(planned == wanted, name, ": the plan is for another model: expected ", wanted, " ",
            what, ", got ", planned, "; choose a plan made for this model");
}

void CheckSameText(std::string_view name, std::string_view what, const std::string& planned,
                   const std::string& wanted) {
  AAH_CHECK(planned.empty() || wanted.empty() || planned == wanted, name,
            ": the plan is for another model: expected the ", what, " '", wanted, "', got '",
            planned, "'; choose a plan made for this model");
}

// Of what messages show and tables print.
void CheckLabel(std::string_view name, std::string_view what, const std::string& label) {
  constexpr size_t kLongest = 256;
  const bool plain = std::none_of(label.begin(), label.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  AAH_CHECK(label.size() <= kLongest && plain, name, ": ", what, ": expected at most ", kLongest,
            " bytes of text without line breaks, got ", label.size(), " bytes",
            plain ? "" : " with control characters");
}

}  // namespace

void CheckWindowPlan(const WindowPlan& plan, std::string_view name) {
  const AttentionShape& shape = plan.model.shape;
  CheckLabel(name, "architecture", plan.model.architecture);
  CheckLabel(name, "fingerprint", plan.model.fingerprint);
  Named(name, [&] { CheckAttentionShape(shape); });
  AAH_CHECK(plan.sinks >= 0, name, ": sinks: expected 0 or more, got ", plan.sinks);
  AAH_CHECK(plan.windows.size() == static_cast<size_t>(shape.layers), name,
            ": windows: expected a list for each of ", shape.layers, " layers, got ",
            plan.windows.size());
  for (size_t layer = 0; layer < plan.windows.size(); ++layer) {
    const std::vector<int32_t>& row = plan.windows[layer];
    AAH_CHECK(row.size() == static_cast<size_t>(shape.heads), name, ": windows of layer ", layer,
              ": expected one for each of ", shape.heads, " heads, got ", row.size());
    for (size_t head = 0; head < row.size(); ++head) {
      AAH_CHECK(row[head] >= 1, name, ": window of layer ", layer, ", head ", head,
                ": expected 1 or more keys, got ", row[head]);
    }
  }
  if (plan.budget) Named(name, [&] { CheckWindowBudget(*plan.budget, shape); });
  for (const auto& [figure, value] : plan.predicted) {
    AAH_CHECK(std::isfinite(value), name, ": predicted '", figure,
              "': expected a finite number, got ", value);
  }
  AAH_CHECK(plan.provenance.tokens >= 0, name, ": tokens: expected 0 or more, got ",
            plan.provenance.tokens);
}

void CheckPlanFits(const WindowPlan& plan, const PlanModel& model, std::string_view name) {
  CheckSameText(name, "architecture", plan.model.architecture, model.architecture);
  CheckSame(name, "layers", plan.model.shape.layers, model.shape.layers);
  CheckSame(name, "heads", plan.model.shape.heads, model.shape.heads);
  CheckSame(name, "key/value heads", plan.model.shape.kv_heads, model.shape.kv_heads);
  CheckSame(name, "dimensions per head", plan.model.shape.head_dim, model.shape.head_dim);
  CheckSameText(name, "fingerprint", plan.model.fingerprint, model.fingerprint);
}

}  // namespace aah
