#ifndef AAH_MODEL_ALLOCATION_MEASURES_H_
#define AAH_MODEL_ALLOCATION_MEASURES_H_

#include <cstdint>
#include <vector>

namespace aah {

// How much of full causal attention an allocation of windows is (METHOD.md section 7); `windows`
// [layers][heads], each >= 1; `context` >= 1 tokens. Both are 1 for full attention.

// Sum over heads and layers of min(window + sinks, context), over heads * layers * context: the
// paper's figure.
double AllocatedContextRatio(const std::vector<std::vector<int32_t>>& windows, int32_t sinks,
                             int64_t context);

// Visible (query, key) pairs over those of full causal attention: what a kernel must compute.
double VisiblePairRatio(const std::vector<std::vector<int32_t>>& windows, int32_t sinks,
                        int64_t context);

}  // namespace aah

#endif  // AAH_MODEL_ALLOCATION_MEASURES_H_
