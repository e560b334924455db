// The forward pass over nested windows: one running softmax over bands of keys, nearest first, and
// after each band a snapshot, which is the attention within that window.

#include "attention/cpu/nested_forward.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

// Highway compiles this file once per instruction set; the order of what follows is its own.
// clang-format off
#include "attention/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/nested_forward.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "attention/cpu/forward-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace aah {
namespace HWY_NAMESPACE {

// candidate = sums * inverse, mixed += weight * candidate; head_dim is a multiple of 8.
HWY_INLINE void MixRow(const float* HWY_RESTRICT sums, float inverse, float weight,
                       int64_t head_dim, float* HWY_RESTRICT candidate, float* HWY_RESTRICT mixed) {
  const hn::CappedTag<float, 8> d;
  const auto by_inverse = hn::Set(d, inverse);
  const auto by_weight = hn::Set(d, weight);
  for (int64_t i = 0; i < head_dim; i += static_cast<int64_t>(hn::MaxLanes(d))) {
    const auto out = hn::Mul(hn::LoadU(d, sums + i), by_inverse);
    hn::StoreU(out, d, candidate + i);
    hn::StoreU(hn::MulAdd(by_weight, out, hn::LoadU(d, mixed + i)), d, mixed + i);
  }
}

HWY_INLINE void Snapshot(const cpu::NestedForwardBlock& nested, const cpu::ForwardBand& band,
                         const RunningRows& rows) {
  const cpu::ForwardBlock& block = nested.block;
  const int64_t head_dim = block.head_dim;
  for (int64_t row = 0; row < block.query_end - block.query_begin; ++row) {
    float* candidate = band.out.data + row * band.out.stride;
    float* log_sum_exp = band.log_sum_exp + row * band.log_sum_exp_stride;
    if (SawNothing(rows, row)) {
      std::fill_n(candidate, head_dim, 0.0f);
      *log_sum_exp = -std::numeric_limits<float>::infinity();
      continue;
    }
    MixRow(block.out + row * head_dim, 1 / rows.sum[row], band.weight, head_dim, candidate,
           nested.mixed + row * head_dim);
    *log_sum_exp = LogSumExp(rows, row);
  }
}

void NestedForward(const cpu::NestedForwardBlock& nested) {
  RunningRows rows;
  StartRows(nested.block, rows);
  std::fill_n(nested.mixed,
              (nested.block.query_end - nested.block.query_begin) * nested.block.head_dim, 0.0f);
  for (const cpu::ForwardBand& band : nested.bands) {
    cpu::ForwardBlock block = nested.block;
    block.visibility = band.visibility;
    WalkKeys<false>(block, rows);
    Snapshot(nested, band, rows);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace aah
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aah {

HWY_EXPORT(NestedForward);

namespace cpu {

void RunNestedForwardBlock(const NestedForwardBlock& block) {
  HWY_DYNAMIC_DISPATCH(NestedForward)(block);
}

}  // namespace cpu
}  // namespace aah
#endif  // HWY_ONCE
