#include "aah/model/allocation_measures.h"

#include <cstdint>
#include <vector>

#include "aah/error.h"
#include "aah/window_budget.h"

namespace aah {
namespace {

void CheckHasHeads(const WindowTable& windows) {
  AAH_CHECK(!windows.empty() && !windows.front().empty(),
            "windows: expected those of at least one layer of one head, got none");
}

double HeadCount(const WindowTable& windows) {
  CheckHasHeads(windows);
  return static_cast<double>(windows.size()) * static_cast<double>(windows.front().size());
}

// Neither kind of cost depends on key/value heads or their size.
double Cost(const WindowTable& windows, int32_t sinks, BudgetKind kind, int64_t context) {
  CheckHasHeads(windows);
  const auto heads = static_cast<int32_t>(windows.front().size());
  return CostRatio(windows,
                   {.layers = static_cast<int32_t>(windows.size()),
                    .heads = heads,
                    .kv_heads = heads,
                    .head_dim = 1},
                   sinks, {.kind = kind, .length = context});
}

}  // namespace

double AllocatedContextRatio(const WindowTable& windows, int32_t sinks, int64_t context) {
  return Cost(windows, sinks, BudgetKind::kAllocatedContext, context);
}

double VisiblePairRatio(const WindowTable& windows, int32_t sinks, int64_t context) {
  return Cost(windows, sinks, BudgetKind::kPairs, context);
}

double ForwardFlopsPerToken(const ModelConfig& model, const WindowTable& windows, int32_t sinks) {
  const auto width = static_cast<double>(model.width);
  const auto mlp = static_cast<double>(model.mlp_width_or_default());
  const auto head_dim = static_cast<double>(model.head_dim());
  const double kv_width = static_cast<double>(model.kv_heads_or_default()) * head_dim;
  // Full attention shows a token (context + 1) / 2 keys on average.
  const double attention = 4 * head_dim * HeadCount(windows) *
                           (static_cast<double>(model.context) + 1) / 2 *
                           VisiblePairRatio(windows, sinks, model.context);
  const double layer = 2 * width * (2 * width + 2 * kv_width) + 4 * width * mlp;
  return attention + static_cast<double>(model.layers) * layer +
         2 * width * static_cast<double>(model.vocabulary);
}

}  // namespace aah
