// Moving rows between storage formats and packed float. Compiled once per instruction set.

#if defined(AAH_SRC_ATTENTION_CPU_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AAH_SRC_ATTENTION_CPU_ROWS_INL_H_
#undef AAH_SRC_ATTENTION_CPU_ROWS_INL_H_
#else
#define AAH_SRC_ATTENTION_CPU_ROWS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "aah/float16.h"
#include "attention/cpu/forward.h"
#include "attention/cpu/matrix_tile-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace aah {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

// Highway's scalar conversions truncate; ours round.
using RowTag = hn::ScalableTag<float>;

inline float LoadElements(RowTag, const float* p) { return *p; }
template <typename Half>
float LoadElements(RowTag, const Half* p) {
  return ToFloat(*p);
}
template <typename Storage>
void LoadRow(const Storage* source, int64_t count, float scale, float* destination) {
  for (int64_t d = 0; d < count; ++d) {
    destination[d] = LoadElements(RowTag(), source + d) * scale;
  }
}

inline void StoreRow(const float* source, int64_t count, float* destination) {
  std::copy_n(source, count, destination);
}
inline void StoreRow(const float* source, int64_t count, Bfloat16* destination) {
  for (int64_t d = 0; d < count; ++d) destination[d] = ToBfloat16(source[d]);
}
inline void StoreRow(const float* source, int64_t count, Float16* destination) {
  for (int64_t d = 0; d < count; ++d) destination[d] = ToFloat16(source[d]);
}

#else

// Rows are multiples of 8, whatever the vectors' length.
using RowTag = hn::CappedTag<float, 8>;
constexpr int64_t kRowLanes = static_cast<int64_t>(hn::MaxLanes(RowTag()));

template <class D>
HWY_INLINE hn::Vec<D> LoadElements(D d, const float* p) {
  return hn::LoadU(d, p);
}
template <class D>
HWY_INLINE hn::Vec<D> LoadElements(D d, const Bfloat16* p) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::RebindToUnsigned<D> d32;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(
                            d32, hn::LoadU(d16, reinterpret_cast<const uint16_t*>(p)))));
}
template <class D>
HWY_INLINE hn::Vec<D> LoadElements(D d, const Float16* p) {
  const hn::Rebind<hwy::float16_t, D> d16;
  return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(p)));
}

template <typename Storage>
HWY_INLINE void LoadRow(const Storage* source, int64_t count, float scale, float* destination) {
  const RowTag d;
  const auto factor = hn::Set(d, scale);
  for (int64_t i = 0; i < count; i += kRowLanes) {
    hn::StoreU(hn::Mul(LoadElements(d, source + i), factor), d, destination + i);
  }
}

template <class D>
HWY_INLINE void StoreElements(D d, hn::Vec<D> v, float* p) {
  hn::StoreU(v, d, p);
}
template <class D>
HWY_INLINE void StoreElements(D d, hn::Vec<D> v, Bfloat16* p) {
  const hn::RebindToUnsigned<D> d32;
  const hn::RebindToSigned<D> di32;
  const hn::Rebind<uint16_t, D> d16;
  const auto bits = hn::BitCast(d32, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1u));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(d32, 0x7FFFu)));
  const auto quiet = hn::Or(bits, hn::Set(d32, 0x400000u));
  const auto kept = hn::IfThenElse(hn::RebindMask(d32, hn::IsNaN(v)), quiet, rounded);
  const auto high = hn::BitCast(di32, hn::ShiftRight<16>(kept));
  hn::StoreU(hn::DemoteTo(d16, high), d16, reinterpret_cast<uint16_t*>(p));
}
template <class D>
HWY_INLINE void StoreElements(D, hn::Vec<D> v, Float16* p) {
  const hn::Rebind<hwy::float16_t, D> d16;
  hn::StoreU(hn::DemoteTo(d16, v), d16, reinterpret_cast<hwy::float16_t*>(p));
}

template <typename Storage>
HWY_INLINE void StoreRow(const float* source, int64_t count, Storage* destination) {
  const RowTag d;
  for (int64_t i = 0; i < count; i += kRowLanes) {
    StoreElements(d, hn::LoadU(d, source + i), destination + i);
  }
}

// panel[i][j] = keys[j][i] for 4 x 4 elements.
template <typename Storage>
HWY_INLINE void TransposeFour(const Storage* keys, ptrdiff_t stride, float* panel) {
  const hn::FixedTag<float, 4> d;
  const auto k0 = LoadElements(d, keys);
  const auto k1 = LoadElements(d, keys + stride);
  const auto k2 = LoadElements(d, keys + 2 * stride);
  const auto k3 = LoadElements(d, keys + 3 * stride);
  const auto k02_low = hn::InterleaveLower(d, k0, k2);
  const auto k02_high = hn::InterleaveUpper(d, k0, k2);
  const auto k13_low = hn::InterleaveLower(d, k1, k3);
  const auto k13_high = hn::InterleaveUpper(d, k1, k3);
  hn::StoreU(hn::InterleaveLower(d, k02_low, k13_low), d, panel);
  hn::StoreU(hn::InterleaveUpper(d, k02_low, k13_low), d, panel + kPanelWidth);
  hn::StoreU(hn::InterleaveLower(d, k02_high, k13_high), d, panel + 2 * kPanelWidth);
  hn::StoreU(hn::InterleaveUpper(d, k02_high, k13_high), d, panel + 3 * kPanelWidth);
}

#endif  // HWY_TARGET == HWY_SCALAR

template <typename Storage>
void PackKeyPanelImpl(cpu::Rows<const Storage> keys, int64_t count, int64_t head_dim,
                      float* HWY_RESTRICT panel) {
  int64_t packed = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; packed + 4 <= count; packed += 4) {
    const Storage* first = keys.data + packed * keys.stride;
    for (int64_t i = 0; i < head_dim; i += 4) {
      TransposeFour(first + i, keys.stride, panel + i * kPanelWidth + packed);
    }
  }
#endif
  float row[256];
  for (; packed < kPanelWidth; ++packed) {
    if (packed < count) {
      LoadRow(keys.data + packed * keys.stride, head_dim, 1, row);
    } else {
      std::fill_n(row, head_dim, 0.0f);
    }
    for (int64_t i = 0; i < head_dim; ++i) panel[i * kPanelWidth + packed] = row[i];
  }
}

template <typename Storage>
void LoadRowsImpl(cpu::Rows<const Storage> rows, int64_t count, int64_t head_dim, float scale,
                  float* HWY_RESTRICT destination) {
  for (int64_t row = 0; row < count; ++row) {
    LoadRow(rows.data + row * rows.stride, head_dim, scale, destination + row * head_dim);
  }
}

template <typename Storage>
void StoreRowsImpl(const float* HWY_RESTRICT source, int64_t count, int64_t head_dim,
                   cpu::Rows<Storage> rows) {
  for (int64_t row = 0; row < count; ++row) {
    StoreRow(source + row * head_dim, head_dim, rows.data + row * rows.stride);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace aah
HWY_AFTER_NAMESPACE();

#endif  // AAH_SRC_ATTENTION_CPU_ROWS_INL_H_
