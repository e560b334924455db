#ifndef AAH_WINDOW_BUDGET_H_
#define AAH_WINDOW_BUDGET_H_

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "aah/knapsack.h"

// What an allocation of windows costs, and the windows that lose least for a given cost.

namespace aah {

// Sees everything at any length. Valid wherever a window is; ordinary windows may be as large.
inline constexpr int32_t kUnlimitedWindow = std::numeric_limits<int32_t>::max();

using WindowTable = std::vector<std::vector<int32_t>>;  // [layers][heads], each >= 1

struct AttentionShape {
  int32_t layers = 0;
  int32_t heads = 0;     // query heads per layer
  int32_t kv_heads = 0;  // divides heads; query head h reads key/value head h / (heads / kv_heads)
  int32_t head_dim = 0;
};

// Throws aah::Error unless all are >= 1 and kv_heads divides heads.
void CheckAttentionShape(const AttentionShape& shape);

enum class BudgetKind {
  kPairs,             // visible (query, key) pairs: what a kernel computes
  kAllocatedContext,  // min(window + sinks, length) of the query heads: the paper's figure
  kCacheBytes,        // keys and values held after `length` tokens
};

inline constexpr std::array<std::pair<std::string_view, BudgetKind>, 3> kBudgetKinds = {
    {{"pairs", BudgetKind::kPairs},
     {"allocated_context_ratio", BudgetKind::kAllocatedContext},
     {"kv_bytes", BudgetKind::kCacheBytes}}};

// How a cache stores keys and values: 4, 2, 2 bytes an element, or 34 per block of 32.
enum class CacheElement { kFloat32, kFloat16, kBfloat16, kQ8 };

inline constexpr std::array<std::pair<std::string_view, CacheElement>, 4> kCacheElements = {
    {{"fp32", CacheElement::kFloat32},
     {"fp16", CacheElement::kFloat16},
     {"bf16", CacheElement::kBfloat16},
     {"q8_0", CacheElement::kQ8}}};

// By the names above. Parsing throws aah::Error with the nearest name.
BudgetKind ParseBudgetKind(std::string_view name);
std::string_view BudgetKindName(BudgetKind kind);
CacheElement ParseCacheElement(std::string_view name);
std::string_view CacheElementName(CacheElement element);

// A share of what full attention costs at `length` tokens. For kCacheBytes full attention is that
// with an fp16 cache, whatever the cache's own element, and the query heads of a key/value head
// share a ring as large as their largest window needs.
struct WindowBudget {
  BudgetKind kind = BudgetKind::kPairs;
  double value = 1;                               // in (0, 1]
  int64_t length = 0;                             // tokens, >= 1
  CacheElement element = CacheElement::kFloat16;  // of kCacheBytes
};

// Throws aah::Error: value not in (0, 1], length < 1, q8_0 with a head_dim that blocks of 32 do not
// divide, a cost that does not fit in 63 bits.
void CheckWindowBudget(const WindowBudget& budget, const AttentionShape& shape);

// Realised cost of `windows` as a share of full attention's, exact but for one division; to be
// compared with budget.value, which is not otherwise used. Throws where shapes do not fit.
double CostRatio(const WindowTable& windows, const AttentionShape& shape, int32_t sinks,
                 const WindowBudget& budget);

// The most units (pairs, tokens, bytes) whose ratio to full attention's is at most budget.value.
int64_t BudgetUnits(const WindowBudget& budget, const AttentionShape& shape);

enum class WindowShare {
  kHead,    // each query head has its own window
  kKvHead,  // the query heads of a key/value head have the same
};

inline constexpr std::array<std::pair<std::string_view, WindowShare>, 2> kWindowShares = {
    {{"head", WindowShare::kHead}, {"kv_head", WindowShare::kKvHead}}};

// By the names above.
WindowShare ParseWindowShare(std::string_view name);
std::string_view WindowShareName(WindowShare share);

struct WindowChoiceOptions {
  WindowShare share = WindowShare::kHead;
  std::span<const int32_t> current;  // [layers * heads] candidate indices in force, or empty
  double stickiness = 0;             // >= 0, per item: KnapsackOptions
};

struct WindowChoice {
  std::vector<int32_t> index;  // [layers * heads] into the candidates
  WindowTable windows;         // [layers][heads]
  double cost_ratio = 0;       // CostRatio of the windows, at most budget.value
  int64_t moved = 0;           // heads that changed; 0 without `current`
  KnapsackChoice knapsack;     // losses, bound and gap; items are layer by layer
};

// The windows that lose least within a budget, by ChooseWithinBudget.
//
//   loss        [layers * heads, candidates]: regret of head and window, or -log of the selection
//               weight; finite. Query heads of one key/value head add up where they are one item.
//   candidates  windows, ascending, each >= 1
//
// An item is a query head, or a key/value head where `share` says so or the budget is its cache: an
// item of kCacheBytes with `share` kHead pays for its largest window, and each of its heads takes
// its best candidate within that.
//
// Throws aah::Error on shapes that do not fit, and on a budget too small for the smallest candidate
// everywhere, naming the least possible value.
WindowChoice ChooseWindows(std::span<const double> loss, std::span<const int32_t> candidates,
                           const AttentionShape& shape, int32_t sinks, const WindowBudget& budget,
                           const WindowChoiceOptions& options = {});

}  // namespace aah

#endif  // AAH_WINDOW_BUDGET_H_
