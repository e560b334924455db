#ifndef AAH_MODEL_ALLOCATION_MEASURES_H_
#define AAH_MODEL_ALLOCATION_MEASURES_H_

#include <cstdint>

#include "aah/model/config.h"
#include "aah/window_budget.h"

namespace aah {

// How much of full causal attention an allocation of windows is (METHOD.md section 7); `windows`
// [layers][heads], each >= 1; `context` >= 1 tokens. Both are 1 for full attention, and both are
// CostRatio's of window_budget.h, which throws where windows do not fit; aah::Error also where
// there are none.

// Sum over heads and layers of min(window + sinks, context), over heads * layers * context: the
// paper's figure.
double AllocatedContextRatio(const WindowTable& windows, int32_t sinks, int64_t context);

// Visible (query, key) pairs over those of full causal attention: what a kernel must compute.
double VisiblePairRatio(const WindowTable& windows, int32_t sinks, int64_t context);

// Estimated floating-point operations of a forward pass, per token of a full context:
//   attention  4 head_dim pairs / context, over heads and layers
//   layers     8 C^2 + 4 C F  (with fewer key/value heads 2 C (2 C + 2 kv_heads head_dim) + 4 C F)
//   head       2 C V
double ForwardFlopsPerToken(const ModelConfig& model, const WindowTable& windows, int32_t sinks);

}  // namespace aah

#endif  // AAH_MODEL_ALLOCATION_MEASURES_H_
