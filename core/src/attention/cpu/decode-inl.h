// One query against a run of keys, read as they are stored: nothing is packed, since every key
// serves once. Compiled once per instruction set.

#if defined(AAH_SRC_ATTENTION_CPU_DECODE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AAH_SRC_ATTENTION_CPU_DECODE_INL_H_
#undef AAH_SRC_ATTENTION_CPU_DECODE_INL_H_
#else
#define AAH_SRC_ATTENTION_CPU_DECODE_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "attention/cpu/forward-inl.h"
#include "attention/cpu/forward.h"
#include "attention/cpu/matrix_tile-inl.h"
#include "attention/cpu/rows-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace aah {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Keys per step: short enough for converted rows to stay in the first-level cache.
constexpr int64_t kDecodeChunk = 64;

// query . key for `kCount` neighbouring keys.
template <int kCount>
HWY_INLINE void DotRows(const float* query, const float* keys, ptrdiff_t stride, int64_t head_dim,
                        float* scores) {
  const FloatTag d;
  hn::Vec<FloatTag> sum[kCount];
  for (int key = 0; key < kCount; ++key) sum[key] = hn::Zero(d);
  int64_t i = 0;
  for (; i + kLanes <= head_dim; i += kLanes) {
    const auto q = hn::LoadU(d, query + i);
    for (int key = 0; key < kCount; ++key) {
      sum[key] = hn::MulAdd(q, hn::LoadU(d, keys + key * stride + i), sum[key]);
    }
  }
  for (int key = 0; key < kCount; ++key) scores[key] = hn::GetLane(hn::SumOfLanes(d, sum[key]));
  if constexpr (kLanes > 8) {  // head_dim is a multiple of 8
    const hn::CappedTag<float, 8> half;
    if (i == head_dim) return;
    for (int key = 0; key < kCount; ++key) {
      const auto product =
          hn::Mul(hn::LoadU(half, query + i), hn::LoadU(half, keys + key * stride + i));
      scores[key] += hn::GetLane(hn::SumOfLanes(half, product));
    }
  }
}

// Rows as float: where they lie, or converted into `buffer`.
template <typename Storage>
HWY_INLINE cpu::Rows<const float> FloatRows(cpu::Rows<const Storage> rows, int64_t begin,
                                            int64_t count, int64_t head_dim, float* buffer) {
  const Storage* first = rows.data + begin * rows.stride;
  if constexpr (std::is_same_v<Storage, float>) {
    return {first, rows.stride};
  } else {
    LoadRowsImpl<Storage>({first, rows.stride}, count, head_dim, 1, buffer);
    return {buffer, head_dim};
  }
}

template <typename Storage>
void DecodeSpanImpl(const float* query, int64_t head_dim, float score_cap,
                    const cpu::DecodeSpan<Storage>& span, cpu::DecodePartial& partial, float* out,
                    float* workspace) {
  float scores[kDecodeChunk + 16];
  // The rows of a block, with one row.
  RunningRows rows;
  rows.reference[0] =
      partial.sum == 0 ? -std::numeric_limits<float>::infinity() : partial.reference;
  rows.sum[0] = partial.sum;
  rows.weighted[0] = partial.weighted;
  rows.last[0] = partial.last;
  for (int64_t begin = 0; begin < span.span.size(); begin += kDecodeChunk) {
    const int64_t count = std::min(kDecodeChunk, span.span.size() - begin);
    const auto keys = FloatRows(span.keys, begin, count, head_dim, workspace);
    int64_t key = 0;
    for (; key + 4 <= count; key += 4) {
      DotRows<4>(query, keys.data + key * keys.stride, keys.stride, head_dim, scores + key);
    }
    for (; key < count; ++key) {
      DotRows<1>(query, keys.data + key * keys.stride, keys.stride, head_dim, scores + key);
    }
    StripColumns columns;
    columns.all = {0, count};
    columns.clear = {0, count / kLanes * kLanes};
    if (score_cap != 0) CapScores(score_cap, columns.padded(), scores);
    const float maximum = Maximum(columns, columns.all, scores);
    if (maximum > rows.reference[0] + kRescaleAbove ||
        rows.reference[0] == -std::numeric_limits<float>::infinity()) {
      Rescale<true>(maximum, head_dim, rows, 0, out);
    }
    Exponentiate<true>(columns, columns.all, scores, rows, 0);
    const auto values = FloatRows(span.values, begin, count, head_dim, workspace);
    Multiply<true>({scores, 0, 1}, RightOperand::RowMajor(values.data, values.stride),
                   {out, head_dim}, 1, head_dim, count);
  }
  partial = {rows.reference[0], rows.sum[0], rows.weighted[0], rows.last[0]};
}

}  // namespace HWY_NAMESPACE
}  // namespace aah
HWY_AFTER_NAMESPACE();

#endif  // AAH_SRC_ATTENTION_CPU_DECODE_INL_H_
