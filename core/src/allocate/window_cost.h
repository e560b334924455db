#ifndef AAH_ALLOCATE_WINDOW_COST_H_
#define AAH_ALLOCATE_WINDOW_COST_H_

#include <cstdint>

#include "aah/window_budget.h"

namespace aah::internal {

// Units of one query head, or for kCacheBytes of one key/value head. REQUIRES: checked arguments.
int64_t WindowUnits(int32_t window, int32_t sinks, const AttentionShape& shape,
                    const WindowBudget& budget);

// Units of full attention, all heads and layers; for kCacheBytes with an fp16 cache.
int64_t FullUnits(const AttentionShape& shape, const WindowBudget& budget);

void CheckSinks(int32_t sinks);

}  // namespace aah::internal

#endif  // AAH_ALLOCATE_WINDOW_COST_H_
