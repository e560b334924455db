// The register micro-kernels under every matrix product of attention, forward and backward:
//
//     C[rows x columns]  = or +=  A[rows x depth] * B[depth x columns]
//
// A is read one element at a time and broadcast, so any strides do: A and A^T alike. B and C are
// read and written as vectors along their rows. Compiled once per instruction set.

#if defined(AAH_SRC_ATTENTION_CPU_MATRIX_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AAH_SRC_ATTENTION_CPU_MATRIX_TILE_INL_H_
#undef AAH_SRC_ATTENTION_CPU_MATRIX_TILE_INL_H_
#else
#define AAH_SRC_ATTENTION_CPU_MATRIX_TILE_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace aah {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(FloatTag()));

// One register block is kStripRows rows by kPanelWidth columns. With 32 vector registers 12 x 2
// accumulators, 2 vectors of B and a broadcast of A leave room to spare; with 16, 6 x 2 do.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int64_t kStripRows = 12;
#else
constexpr int64_t kStripRows = 6;
#endif
constexpr int64_t kPanelWidth = 2 * kLanes;

// Element (row, k) is data[row * row_stride + k * k_stride].
struct LeftOperand {
  const float* data;
  ptrdiff_t row_stride;
  ptrdiff_t k_stride;
};

// Element (k, column) is
//     data[column / kPanelWidth * panel_stride + k * k_stride + column % kPanelWidth].
// A row-major matrix has k_stride its row stride and panel_stride kPanelWidth; a matrix packed into
// panels of kPanelWidth columns has k_stride kPanelWidth and panel_stride depth * kPanelWidth.
struct RightOperand {
  const float* data;
  ptrdiff_t k_stride;
  ptrdiff_t panel_stride;

  static RightOperand RowMajor(const float* data, ptrdiff_t row_stride) {
    return {data, row_stride, kPanelWidth};
  }
  static RightOperand Panels(const float* data, ptrdiff_t depth) {
    return {data, kPanelWidth, depth * kPanelWidth};
  }
};

// Element (row, column) is data[row * row_stride + column].
struct Product {
  float* data;
  ptrdiff_t row_stride;
};

// kRows x (kVectors * lanes of d), all in registers.
template <bool kAccumulate, int kRows, int kVectors, class D>
HWY_INLINE void MultiplyRegisterBlock(D d, LeftOperand a, const float* HWY_RESTRICT b,
                                      ptrdiff_t b_stride, Product c, int64_t depth) {
  using V = hn::Vec<D>;
  constexpr ptrdiff_t kWidth = static_cast<ptrdiff_t>(hn::MaxLanes(d));
  // Three rows share a pointer: base, base + stride and base + 2 * stride are all addressing modes.
  constexpr int kGroups = (kRows + 2) / 3;
  const float* group[kGroups];
  V sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int g = 0; g < kGroups; ++g) group[g] = a.data + 3 * g * a.row_stride;
#pragma GCC unroll 16
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sum[row][v] =
          kAccumulate ? hn::LoadU(d, c.data + row * c.row_stride + v * kWidth) : hn::Zero(d);
    }
  }
  for (int64_t k = 0; k < depth; ++k) {
    V right[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, b + v * kWidth);
    b += b_stride;
#pragma GCC unroll 16
    for (int row = 0; row < kRows; ++row) {
      const V left = hn::Set(d, group[row / 3][(row % 3) * a.row_stride]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[row][v] = hn::MulAdd(left, right[v], sum[row][v]);
    }
#pragma GCC unroll 16
    for (int g = 0; g < kGroups; ++g) group[g] += a.k_stride;
  }
#pragma GCC unroll 16
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(sum[row][v], d, c.data + row * c.row_stride + v * kWidth);
    }
  }
}

// One panel of kVectors * lanes columns, any number of rows.
template <bool kAccumulate, int kVectors, class D>
HWY_NOINLINE void MultiplyPanel(D d, LeftOperand a, const float* HWY_RESTRICT b, ptrdiff_t b_stride,
                                Product c, int64_t rows, int64_t depth) {
  const auto advance = [&a, &c, &rows](int64_t count) {
    a.data += count * a.row_stride;
    c.data += count * c.row_stride;
    rows -= count;
  };
  for (; rows >= kStripRows; advance(kStripRows)) {
    MultiplyRegisterBlock<kAccumulate, kStripRows, kVectors>(d, a, b, b_stride, c, depth);
  }
  for (; rows >= 4; advance(4)) {
    MultiplyRegisterBlock<kAccumulate, 4, kVectors>(d, a, b, b_stride, c, depth);
  }
  if (rows >= 2) {
    MultiplyRegisterBlock<kAccumulate, 2, kVectors>(d, a, b, b_stride, c, depth);
    advance(2);
  }
  if (rows >= 1) MultiplyRegisterBlock<kAccumulate, 1, kVectors>(d, a, b, b_stride, c, depth);
}

// C = A * B, or C += A * B. `columns` is a multiple of 8; nothing beyond `rows`, `columns` and
// `depth` is read or written. A panel of B is used for all rows before the next.
template <bool kAccumulate>
HWY_INLINE void Multiply(LeftOperand a, RightOperand b, Product c, int64_t rows, int64_t columns,
                         int64_t depth) {
  const FloatTag d;
  for (; columns >= kPanelWidth; columns -= kPanelWidth) {
    MultiplyPanel<kAccumulate, 2>(d, a, b.data, b.k_stride, c, rows, depth);
    b.data += b.panel_stride;
    c.data += kPanelWidth;
  }
  if (columns >= kLanes) {
    MultiplyPanel<kAccumulate, 1>(d, a, b.data, b.k_stride, c, rows, depth);
    b.data += kLanes;
    c.data += kLanes;
    columns -= kLanes;
  }
  if constexpr (kLanes > 8) {
    if (columns > 0) {
      const hn::CappedTag<float, 8> half;
      MultiplyPanel<kAccumulate, 1>(half, a, b.data, b.k_stride, c, rows, depth);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace aah
HWY_AFTER_NAMESPACE();

#endif  // AAH_SRC_ATTENTION_CPU_MATRIX_TILE_INL_H_
