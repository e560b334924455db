#include "allocate/window_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "aah/attention.h"
#include "aah/error.h"
#include "aah/window_budget.h"
#include "control/named_choice.h"

namespace aah {
namespace {

constexpr int64_t kQ8Block = 32;
constexpr int64_t kQ8BlockBytes = 34;  // and an fp16 scale

template <typename Value, size_t N>
std::string_view NameOf(Value value,
                        const std::array<std::pair<std::string_view, Value>, N>& table) {
  for (const auto& [name, known] : table) {
    if (known == value) return name;
  }
  return "?";
}

// Of the key and the value of one token in one key/value head.
int64_t TokenBytes(const AttentionShape& shape, CacheElement element) {
  switch (element) {
    case CacheElement::kFloat32:
      return int64_t{2} * shape.head_dim * 4;
    case CacheElement::kFloat16:
    case CacheElement::kBfloat16:
      return int64_t{2} * shape.head_dim * 2;
    case CacheElement::kQ8:
      return 2 * (shape.head_dim / kQ8Block) * kQ8BlockBytes;
  }
  return 0;
}

int64_t ShownTokens(int32_t window, int32_t sinks, int64_t length) {
  return std::min(int64_t{window} + sinks, length);
}

}  // namespace

BudgetKind ParseBudgetKind(std::string_view name) {
  return ParseChoice("budget kind", name, kBudgetKinds);
}
std::string_view BudgetKindName(BudgetKind kind) { return NameOf(kind, kBudgetKinds); }

CacheElement ParseCacheElement(std::string_view name) {
  return ParseChoice("cache element", name, kCacheElements);
}
std::string_view CacheElementName(CacheElement element) { return NameOf(element, kCacheElements); }

WindowShare ParseWindowShare(std::string_view name) {
  return ParseChoice("window share", name, kWindowShares);
}
std::string_view WindowShareName(WindowShare share) { return NameOf(share, kWindowShares); }

void CheckAttentionShape(const AttentionShape& shape) {
  AAH_CHECK(shape.layers >= 1 && shape.heads >= 1 && shape.kv_heads >= 1 && shape.head_dim >= 1,
            "expected at least one layer, head, key/value head and dimension, got ", shape.layers,
            " layers, ", shape.heads, " heads, ", shape.kv_heads, " key/value heads, head_dim ",
            shape.head_dim);
  AAH_CHECK(shape.heads % shape.kv_heads == 0, "expected key/value heads that divide the ",
            shape.heads, " heads, got ", shape.kv_heads);
}

void CheckWindowBudget(const WindowBudget& budget, const AttentionShape& shape) {
  CheckAttentionShape(shape);
  AAH_CHECK(budget.value > 0 && budget.value <= 1, "the budget is ", budget.value,
            ": expected a share of full attention's cost, above 0 and at most 1");
  AAH_CHECK(budget.length >= 1, "the budget's length is ", budget.length,
            ": expected 1 token or more");
  AAH_CHECK(budget.kind != BudgetKind::kCacheBytes || budget.element != CacheElement::kQ8 ||
                shape.head_dim % kQ8Block == 0,
            "a q8_0 cache stores blocks of 32: expected a head_dim that 32 divides, got ",
            shape.head_dim, ", choose another element");
  // Generous: twice the units of any kind, in a type that only rounds.
  const auto length = static_cast<double>(budget.length);
  const double per_head = std::max(length * length, length * 16 * shape.head_dim);
  AAH_CHECK(per_head * shape.heads * shape.layers < 0x1p62, "the budget's length is ",
            budget.length, ": its cost does not fit in 63 bits, choose a shorter one");
}

int64_t internal::WindowUnits(int32_t window, int32_t sinks, const AttentionShape& shape,
                              const WindowBudget& budget) {
  switch (budget.kind) {
    case BudgetKind::kPairs:
      return VisiblePairs(window, sinks, budget.length, budget.length);
    case BudgetKind::kAllocatedContext:
      return ShownTokens(window, sinks, budget.length);
    case BudgetKind::kCacheBytes:
      return ShownTokens(window, sinks, budget.length) * TokenBytes(shape, budget.element);
  }
  return 0;
}

int64_t internal::FullUnits(const AttentionShape& shape, const WindowBudget& budget) {
  WindowBudget full = budget;
  full.element = CacheElement::kFloat16;
  const int64_t per_head = WindowUnits(kUnlimitedWindow, 0, shape, full);
  const bool cache = budget.kind == BudgetKind::kCacheBytes;
  return per_head * (cache ? shape.kv_heads : shape.heads) * shape.layers;
}

void internal::CheckSinks(int32_t sinks) {
  AAH_CHECK(sinks >= 0, "sinks is ", sinks, ": expected 0 or more");
}

double CostRatio(const WindowTable& windows, const AttentionShape& shape, int32_t sinks,
                 const WindowBudget& budget) {
  CheckWindowBudget(budget, shape);
  internal::CheckSinks(sinks);
  AAH_CHECK(windows.size() == static_cast<size_t>(shape.layers), "windows has ", windows.size(),
            " layers: expected ", shape.layers);
  const bool cache = budget.kind == BudgetKind::kCacheBytes;
  const int32_t together = cache ? shape.heads / shape.kv_heads : 1;
  int64_t units = 0;
  for (size_t layer = 0; layer < windows.size(); ++layer) {
    const std::vector<int32_t>& row = windows[layer];
    AAH_CHECK(row.size() == static_cast<size_t>(shape.heads), "windows of layer ", layer, " has ",
              row.size(), " heads: expected ", shape.heads);
    for (auto head = row.begin(); head != row.end(); head += together) {
      const auto [least, most] = std::minmax_element(head, head + together);
      AAH_CHECK(*least >= 1, "windows of layer ", layer, ": a window is ", *least,
                ", it counts the query's own key, so it is at least 1");
      units += internal::WindowUnits(*most, sinks, shape, budget);
    }
  }
  return static_cast<double>(units) / static_cast<double>(internal::FullUnits(shape, budget));
}

int64_t BudgetUnits(const WindowBudget& budget, const AttentionShape& shape) {
  CheckWindowBudget(budget, shape);
  const int64_t full = internal::FullUnits(shape, budget);
  const auto ratio = [&](int64_t units) {
    return static_cast<double>(units) / static_cast<double>(full);
  };
  // The product is rounded; the ratio, as CostRatio computes it, decides.
  auto units = static_cast<int64_t>(std::floor(budget.value * static_cast<double>(full)));
  while (ratio(units) > budget.value) --units;
  while (units < full && ratio(units + 1) <= budget.value) ++units;
  return units;
}

}  // namespace aah
