#include "aah/model/allocation_measures.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "aah/attention.h"

namespace aah {
namespace {

// Visible pairs of all heads of all layers.
double AllPairs(const std::vector<std::vector<int32_t>>& windows, int32_t sinks, int64_t context) {
  double pairs = 0;
  for (const std::vector<int32_t>& layer : windows) {
    for (const int32_t window : layer) {
      pairs += static_cast<double>(VisiblePairs(window, sinks, context, context));
    }
  }
  return pairs;
}

}  // namespace

double AllocatedContextRatio(const std::vector<std::vector<int32_t>>& windows, int32_t sinks,
                             int64_t context) {
  int64_t allocated = 0;
  int64_t heads = 0;
  for (const std::vector<int32_t>& layer : windows) {
    for (const int32_t window : layer) {
      allocated += std::min(int64_t{window} + sinks, context);
      ++heads;
    }
  }
  return static_cast<double>(allocated) /
         (static_cast<double>(heads) * static_cast<double>(context));
}

double VisiblePairRatio(const std::vector<std::vector<int32_t>>& windows, int32_t sinks,
                        int64_t context) {
  int64_t heads = 0;
  for (const std::vector<int32_t>& layer : windows) heads += static_cast<int64_t>(layer.size());
  const double full = static_cast<double>(context) * (static_cast<double>(context) + 1) / 2;
  return AllPairs(windows, sinks, context) / (static_cast<double>(heads) * full);
}

double ForwardFlopsPerToken(const ModelConfig& model,
                            const std::vector<std::vector<int32_t>>& windows, int32_t sinks) {
  const auto width = static_cast<double>(model.width);
  const auto mlp = static_cast<double>(model.mlp_width_or_default());
  const auto head_dim = static_cast<double>(model.head_dim());
  const double kv_width = static_cast<double>(model.kv_heads_or_default()) * head_dim;
  const double attention =
      4 * head_dim * AllPairs(windows, sinks, model.context) / static_cast<double>(model.context);
  const double layer = 2 * width * (2 * width + 2 * kv_width) + 4 * width * mlp;
  return attention + static_cast<double>(model.layers) * layer +
         2 * width * static_cast<double>(model.vocabulary);
}

}  // namespace aah
