#include "aah/model/allocation_measures.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "aah/attention.h"

namespace aah {

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
  double pairs = 0;
  int64_t heads = 0;
  for (const std::vector<int32_t>& layer : windows) {
    for (const int32_t window : layer) {
      pairs += static_cast<double>(VisiblePairs(window, sinks, context, context));
      ++heads;
    }
  }
  const double full = static_cast<double>(context) * (static_cast<double>(context) + 1) / 2;
  return pairs / (static_cast<double>(heads) * full);
}

}  // namespace aah
