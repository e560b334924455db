#include "aah/lab/plan_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aah/error.h"
#include "aah/lab/plain_text.h"
#include "aah/lab/table.h"
#include "aah/lab/window_history.h"
#include "aah/window_budget.h"
#include "aah/window_plan.h"
#include "inspect/heat_map.h"

namespace aah {
namespace {

std::string Thousands(int64_t value) { return FormatThousands(static_cast<double>(value)); }

std::string KindText(const WindowBudget& measure) {
  switch (measure.kind) {
    case BudgetKind::kPairs:
      return "visible pairs";
    case BudgetKind::kAllocatedContext:
      return "allocated context";
    case BudgetKind::kCacheBytes:
      return "cache bytes (" + std::string(CacheElementName(measure.element)) + ")";
  }
  return "";
}

// Up to six decimals, none that say nothing: 0.25, 0.248031.
std::string Short(double value) {
  std::string text = FormatFixed(value, 6);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string Line(std::string_view label, const std::string& text) {
  constexpr size_t kLabelWidth = 13;
  std::string line(label);
  line.resize(std::max(line.size() + 1, kLabelWidth), ' ');
  return text.empty() ? "" : line + text + "\n";
}

std::string Joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  }
  return text;
}

std::string Provenance(const PlanProvenance& provenance) {
  const bool known = !provenance.method.empty() || !provenance.data.empty();
  std::vector<std::string> data = {PlainText(provenance.data)};
  if (provenance.tokens > 0) data.push_back(Thousands(provenance.tokens) + " tokens");
  std::vector<std::string> versions;
  for (const auto& [program, version] : provenance.versions) {
    versions.push_back(PlainText(program) + " " + PlainText(version));
  }
  return Line("method", PlainText(provenance.method)) + Line("data", Joined(data)) +
         Line("seed", known ? std::to_string(provenance.seed) : "") +
         Line("made with", Joined(versions));
}

std::string Heading(const WindowPlan& plan, std::string_view name, bool colour) {
  const AttentionShape& shape = plan.model.shape;
  std::string text = Title(PlainText(name), colour) + "\n";
  text += Line("model",
               Joined({plan.model.architecture,
                       std::to_string(shape.layers) + " layers of " + std::to_string(shape.heads) +
                           " heads (" + std::to_string(shape.kv_heads) + " key/value heads) of " +
                           std::to_string(shape.head_dim)}));
  text += Line("fingerprint", plan.model.fingerprint);
  text += Line("sinks", std::to_string(plan.sinks));
  if (plan.budget) text += Line("budget", CostText(plan.budget->value, *plan.budget));
  std::vector<std::string> predicted;
  for (const auto& [figure, value] : plan.predicted) {
    predicted.push_back(PlainText(figure) + " " + Short(value));
  }
  return text + Line("predicted", Joined(predicted)) + Provenance(plan.provenance);
}

std::string Costs(const WindowPlan& plan, const WindowBudget& measure, bool colour) {
  Table table({"of full attention", "cost"});
  for (const BudgetKind kind :
       {BudgetKind::kPairs, BudgetKind::kAllocatedContext, BudgetKind::kCacheBytes}) {
    WindowBudget one = measure;
    one.kind = kind;
    const double cost = CostRatio(plan.windows, plan.model.shape, plan.sinks, one);
    table.AddRow({KindText(one), FormatFixed(cost, 4)});
  }
  return "\n" + Title("Cost", colour) + " at " + Thousands(measure.length) + " tokens\n" +
         table.ToText();
}

// Windows beyond `length`, where there is one, are shown as it; else 0 stands for unlimited ones.
std::string Windows(const WindowPlan& plan, std::optional<int64_t> length, bool colour) {
  HeadMap map;
  bool unlimited = false;
  int low = kUnlimitedWindow;
  int high = 1;
  for (const std::vector<int32_t>& layer : plan.windows) {
    std::vector<int>& row = map.emplace_back();
    for (const int32_t window : layer) {
      const auto most = length ? std::min<int64_t>(*length, kUnlimitedWindow) : kUnlimitedWindow;
      const int shown = static_cast<int>(std::min<int64_t>(window, most));
      const bool all = !length && shown == kUnlimitedWindow;
      unlimited = unlimited || all;
      if (!all) low = std::min(low, shown);
      if (!all) high = std::max(high, shown);
      row.push_back(all ? 0 : shown);
    }
  }
  std::string text = "\n" + Title("Windows", colour) + ": the last tokens a head sees";
  if (length) text += ", of " + Thousands(*length);
  if (unlimited) text += " (0: all of them)";
  text += "\n";
  return text +
         HeatMapText(
             map,
             {.colour = colour, .logarithmic = true, .low = unlimited ? 0 : low, .high = high});
}

}  // namespace

WindowBudget PlanMeasure(const WindowPlan& plan, std::optional<int64_t> length,
                         std::string_view name) {
  AAH_CHECK(plan.budget || length, name, ": the plan has no budget that says at how many tokens ",
            "to measure its cost; give --length");
  WindowBudget measure = plan.budget.value_or(WindowBudget{});
  measure.length = length.value_or(measure.length);
  try {
    CheckWindowBudget(measure, plan.model.shape);
  } catch (const Error& error) {
    ThrowError(error.kind(), name, ": ", error.what());
  }
  return measure;
}

std::string CostText(double ratio, const WindowBudget& measure) {
  return Short(ratio) + " of full attention's " + KindText(measure) + " at " +
         Thousands(measure.length) + " tokens";
}

std::string WindowPlanReport(const WindowPlan& plan, std::string_view name,
                             const PlanTextStyle& style) {
  std::string text = Heading(plan, name, style.colour);
  std::optional<int64_t> length = style.length;
  if (!length && plan.budget) length = plan.budget->length;
  if (length) text += Costs(plan, PlanMeasure(plan, length, name), style.colour);
  return text + Windows(plan, length, style.colour);
}

}  // namespace aah
