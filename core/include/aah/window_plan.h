#ifndef AAH_WINDOW_PLAN_H_
#define AAH_WINDOW_PLAN_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "aah/window_budget.h"

namespace aah {

// Which model a plan is made for.
struct PlanModel {
  std::string architecture;  // both texts: at most 256 bytes, no control characters
  AttentionShape shape;
  std::string fingerprint;  // of the weights; empty: any weights of this shape
};

// Where a plan comes from, in words and for people; empty or 0 where unknown.
struct PlanProvenance {
  std::string data;
  int64_t tokens = 0;  // >= 0
  std::string method;
  uint64_t seed = 0;
  std::map<std::string, std::string> versions;  // program or library -> version
};

// A window for every head of a model, chosen once and kept: what an allocator hands to training,
// evaluation and serving. As a file: aah/io/window_plan_file.h.
struct WindowPlan {
  PlanModel model;
  int32_t sinks = 0;                   // >= 0
  WindowTable windows;                 // [layers][heads], >= 1; kUnlimitedWindow sees everything
  std::optional<WindowBudget> budget;  // what was to be kept
  std::map<std::string, double> predicted;  // figures expected of it, by name; finite
  PlanProvenance provenance;
};

// Throws aah::Error unless the plan's parts fit each other. `name` begins every message: the file,
// or what else the plan came from.
void CheckWindowPlan(const WindowPlan& plan, std::string_view name);

// Throws aah::Error unless `plan` is for `model`: the same architecture, layers, heads, key/value
// heads, head_dim and fingerprint. Where either side leaves the architecture or the fingerprint
// empty, that one is not compared. Messages say what was expected and what came.
void CheckPlanFits(const WindowPlan& plan, const PlanModel& model, std::string_view name);

}  // namespace aah

#endif  // AAH_WINDOW_PLAN_H_
