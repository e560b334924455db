#include "aah/io/window_plan_file.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aah/error.h"
#include "aah/io/file.h"
#include "aah/io/json.h"
#include "aah/nearest_name.h"
#include "aah/window_budget.h"
#include "aah/window_plan.h"

namespace aah {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kFormat = "aah-window-plan";
constexpr int64_t kMaxBytes = int64_t{64} << 20;
constexpr int32_t kMaxCount = 1 << 20;  // layers, heads, dimensions

void CheckKeys(const Json& object, std::string_view what, const std::vector<std::string>& known,
               std::string_view name) {
  AAH_CHECK(object.is_object(), name, ": ", what, ": expected an object, got ",
            DescribeJson(object));
  for (const auto& member : object.items()) {
    AAH_CHECK(std::find(known.begin(), known.end(), member.key()) != known.end(), name, ": ", what,
              ": unknown key ", DescribeJson(member.key()), NearestNameHint(member.key(), known));
  }
}

int32_t Whole(const Json& object, std::string_view key, int32_t least, int32_t most,
              std::string_view name) {
  const auto value = JsonMember<int64_t>(object, key, name);
  AAH_CHECK(value >= least && value <= most, name, ": '", key, "': expected ", least, " to ", most,
            ", got ", value);
  return static_cast<int32_t>(value);
}

PlanModel ParseModel(const Json& model, std::string_view name) {
  CheckKeys(model, "model",
            {"architecture", "layers", "heads", "kv_heads", "head_dim", "fingerprint"}, name);
  PlanModel result;
  result.architecture = JsonMember<std::string>(model, "architecture", name);
  result.shape.layers = Whole(model, "layers", 1, kMaxCount, name);
  result.shape.heads = Whole(model, "heads", 1, kMaxCount, name);
  result.shape.kv_heads = Whole(model, "kv_heads", 1, kMaxCount, name);
  result.shape.head_dim = Whole(model, "head_dim", 1, kMaxCount, name);
  result.fingerprint = JsonMember<std::string>(model, "fingerprint", name);
  return result;
}

int32_t ParseWindow(const Json& value, size_t layer, size_t head, std::string_view name) {
  constexpr int32_t kLargest = std::numeric_limits<int32_t>::max();
  const bool whole = value.is_number_integer();
  const bool fits = whole && value >= 0 && value <= kLargest;
  AAH_CHECK(fits, name, ": window of layer ", layer, ", head ", head,
            ": expected 1 or more keys (at most ", kLargest, "), or 0 for all of them, got ",
            DescribeJson(value));
  const auto window = value.get<int32_t>();
  return window == 0 ? kUnlimitedWindow : window;
}

// Sizes are compared before anything is allocated for them.
WindowTable ParseWindows(const Json& layers, const AttentionShape& shape, std::string_view name) {
  AAH_CHECK(layers.is_array(), name, ": windows: expected a list for each of ", shape.layers,
            " layers, got ", DescribeJson(layers));
  AAH_CHECK(layers.size() == static_cast<size_t>(shape.layers), name,
            ": windows: expected a list for each of ", shape.layers, " layers, got ",
            layers.size());
  WindowTable windows;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const Json& heads = layers[layer];
    AAH_CHECK(heads.is_array(), name, ": windows of layer ", layer, ": expected one for each of ",
              shape.heads, " heads, got ", DescribeJson(heads));
    AAH_CHECK(heads.size() == static_cast<size_t>(shape.heads), name, ": windows of layer ", layer,
              ": expected one for each of ", shape.heads, " heads, got ", heads.size());
    std::vector<int32_t>& row = windows.emplace_back();
    for (size_t head = 0; head < heads.size(); ++head) {
      row.push_back(ParseWindow(heads[head], layer, head, name));
    }
  }
  return windows;
}

// Runs `parse`; what it refuses begins with name and key.
template <typename Parse>
auto Named(std::string_view name, std::string_view key, const Parse& parse) {
  try {
    return parse();
  } catch (const Error& error) {
    ThrowError(error.kind(), name, ": '", key, "': ", error.what());
  }
}

WindowBudget ParseBudget(const Json& budget, std::string_view name) {
  CheckKeys(budget, "budget", {"kind", "value", "length", "element"}, name);
  WindowBudget result;
  const auto kind = JsonMember<std::string>(budget, "kind", name);
  result.kind = Named(name, "kind", [&] { return ParseBudgetKind(kind); });
  result.value = JsonMember<double>(budget, "value", name);
  result.length = JsonMember<int64_t>(budget, "length", name);
  if (budget.contains("element")) {
    AAH_CHECK(result.kind == BudgetKind::kCacheBytes, name,
              ": budget: 'element' is of a cache: expected it with the kind kv_bytes alone, got ",
              kind);
    const auto element = JsonMember<std::string>(budget, "element", name);
    result.element = Named(name, "element", [&] { return ParseCacheElement(element); });
  }
  return result;
}

PlanProvenance ParseProvenance(const Json& provenance, std::string_view name) {
  CheckKeys(provenance, "provenance", {"data", "tokens", "method", "seed", "versions"}, name);
  PlanProvenance result;
  result.data = JsonMemberOr<std::string>(provenance, "data", "", name);
  result.tokens = JsonMemberOr<int64_t>(provenance, "tokens", 0, name);
  result.method = JsonMemberOr<std::string>(provenance, "method", "", name);
  if (const auto seed = provenance.find("seed"); seed != provenance.end()) {
    AAH_CHECK(seed->is_number_unsigned(), name,
              ": 'seed': expected a whole number of 0 or more, below 2^64, got ",
              DescribeJson(*seed));
    result.seed = seed->get<uint64_t>();
  }
  if (const auto versions = provenance.find("versions"); versions != provenance.end()) {
    AAH_CHECK(versions->is_object(), name, ": 'versions': expected an object of texts, got ",
              DescribeJson(*versions));
    for (const auto& member : versions->items()) {
      result.versions[member.key()] = JsonMember<std::string>(*versions, member.key(), name);
    }
  }
  return result;
}

OrderedJson BudgetJson(const WindowBudget& budget) {
  OrderedJson result = {
      {"kind", BudgetKindName(budget.kind)}, {"value", budget.value}, {"length", budget.length}};
  if (budget.kind == BudgetKind::kCacheBytes) result["element"] = CacheElementName(budget.element);
  return result;
}

OrderedJson ProvenanceJson(const PlanProvenance& provenance) {
  return {{"data", provenance.data},
          {"tokens", provenance.tokens},
          {"method", provenance.method},
          {"seed", provenance.seed},
          {"versions", OrderedJson(provenance.versions)}};
}

std::string WindowsText(const WindowTable& windows) {
  std::string text = "[";
  for (size_t layer = 0; layer < windows.size(); ++layer) {
    text += layer == 0 ? "\n    [" : ",\n    [";
    for (size_t head = 0; head < windows[layer].size(); ++head) {
      const int32_t window = windows[layer][head];
      if (head > 0) text += ", ";
      text += std::to_string(window == kUnlimitedWindow ? 0 : window);
    }
    text += "]";
  }
  return text + "\n  ]";
}

// On one line. Bytes that are not UTF-8, in a path say, become replacement characters.
std::string Dump(const OrderedJson& value) {
  return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace

WindowPlan ParseWindowPlan(std::string_view text, std::string_view name) {
  const Json json = ParseJson(text, name);
  const auto format = JsonMember<std::string>(json, "format", name);
  AAH_CHECK(format == kFormat, name, ": expected the format '", kFormat, "', got ",
            DescribeJson(format), ": this is no window plan");
  const auto version = JsonMember<int64_t>(json, "version", name);
  AAH_CHECK(version == kWindowPlanVersion, name, ": expected version ", kWindowPlanVersion,
            " of the format, got ", version, ": it was written by another aah, use that one");
  CheckKeys(json, "the plan",
            {"format", "version", "model", "sinks", "windows", "budget", "predicted", "provenance"},
            name);
  WindowPlan plan;
  plan.model = ParseModel(JsonAt(json, "model", name), name);
  plan.sinks = Whole(json, "sinks", 0, std::numeric_limits<int32_t>::max(), name);
  plan.windows = ParseWindows(JsonAt(json, "windows", name), plan.model.shape, name);
  if (json.contains("budget")) plan.budget = ParseBudget(json["budget"], name);
  if (const auto predicted = json.find("predicted"); predicted != json.end()) {
    AAH_CHECK(predicted->is_object(), name, ": 'predicted': expected an object of numbers, got ",
              DescribeJson(*predicted));
    for (const auto& member : predicted->items()) {
      plan.predicted[member.key()] = JsonMember<double>(*predicted, member.key(), name);
    }
  }
  if (json.contains("provenance")) plan.provenance = ParseProvenance(json["provenance"], name);
  CheckWindowPlan(plan, name);
  return plan;
}

WindowPlan ReadWindowPlan(const std::filesystem::path& path) {
  return ParseWindowPlan(ReadFile(path, kMaxBytes), path.string());
}

WindowPlan ReadWindowPlan(const std::filesystem::path& path, const PlanModel& model) {
  WindowPlan plan = ReadWindowPlan(path);
  CheckPlanFits(plan, model, path.string());
  return plan;
}

std::string WindowPlanText(const WindowPlan& plan) {
  CheckWindowPlan(plan, "window plan");
  const AttentionShape& shape = plan.model.shape;
  const OrderedJson model = {{"architecture", plan.model.architecture},
                             {"layers", shape.layers},
                             {"heads", shape.heads},
                             {"kv_heads", shape.kv_heads},
                             {"head_dim", shape.head_dim},
                             {"fingerprint", plan.model.fingerprint}};
  std::string text = "{\n  \"format\": \"" + std::string(kFormat) +
                     "\",\n  \"version\": " + std::to_string(kWindowPlanVersion);
  text += ",\n  \"model\": " + Dump(model);
  text += ",\n  \"sinks\": " + std::to_string(plan.sinks);
  text += ",\n  \"windows\": " + WindowsText(plan.windows);
  if (plan.budget) text += ",\n  \"budget\": " + Dump(BudgetJson(*plan.budget));
  text += ",\n  \"predicted\": " + Dump(OrderedJson(plan.predicted));
  text += ",\n  \"provenance\": " + Dump(ProvenanceJson(plan.provenance));
  return text + "\n}\n";
}

void WriteWindowPlan(const std::filesystem::path& path, const WindowPlan& plan) {
  WriteFileAtomically(path, WindowPlanText(plan));
}

}  // namespace aah
