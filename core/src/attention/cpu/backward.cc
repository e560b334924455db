#include "attention/cpu/backward.h"

#include <cstddef>
#include <cstdint>

// Highway compiles this file once per instruction set; the order of what follows is its own.
// clang-format off
#include "attention/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/backward.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "attention/cpu/backward-inl.h"
// clang-format on

#if HWY_ONCE

namespace aah {

HWY_EXPORT(RunTask);
HWY_EXPORT(PrepareRows);
HWY_EXPORT(DotRowsImpl);

int64_t BackwardKeyBlock(int64_t head_dim) { return head_dim <= 96 ? 192 : 96; }

size_t BackwardScratch(int64_t head_dim) {
  const int64_t block = BackwardKeyBlock(head_dim);
  constexpr int64_t kMostLanes = 16;
  return static_cast<size_t>(5 * block * head_dim + 2 * kBackwardQueryBlock * head_dim +
                             2 * kBackwardQueryBlock * (block + kMostLanes + 1));
}

void RunBackwardTask(const BackwardTask& task, float* scratch) {
  HWY_DYNAMIC_DISPATCH(RunTask)(task, scratch);
}

void PrepareBackwardRows(const BackwardRows& rows, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(PrepareRows)(rows, begin, end);
}

void DotRows(Rows<const float> a, Rows<const float> b, int64_t head_dim, int64_t begin, int64_t end,
             float* dots) {
  HWY_DYNAMIC_DISPATCH(DotRowsImpl)(a, b, head_dim, begin, end, dots);
}

}  // namespace aah

#endif  // HWY_ONCE
