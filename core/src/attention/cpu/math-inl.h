// Elementary functions on vectors of float. Compiled once per instruction set.

#if defined(AAH_SRC_ATTENTION_CPU_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AAH_SRC_ATTENTION_CPU_MATH_INL_H_
#undef AAH_SRC_ATTENTION_CPU_MATH_INL_H_
#else
#define AAH_SRC_ATTENTION_CPU_MATH_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace aah {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 2^x for x <= 127, within 2 units in the last place; exactly 1 at 0. Below -126 the result is
// 2^-126, which no sum of ours tells from 0. NaN stays NaN. The polynomial is the minimax fit of
// (2^f - 1) / f for |f| <= 1/2 in relative error (9.2e-8), its constant term held at 1.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp2(D d, V x) {
  const hn::Repartition<int32_t, D> di;
  // Adding 1.5 * 2^23 leaves round(x) in the low bits of the sum.
  const V magic = hn::Set(d, 12582912.0f);
  const V least = hn::Set(d, -126.0f);
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  x = hn::Max(least, x);  // in this order a NaN passes; elsewhere Max drops it in any order
#else
  x = hn::IfThenElse(hn::Lt(x, least), least, x);
#endif
  const V shifted = hn::Add(x, magic);
  const V f = hn::Sub(x, hn::Sub(shifted, magic));
  V p = hn::MulAdd(hn::Set(d, 0.0013264728f), f, hn::Set(d, 0.009671513f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.055507336f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.24022242f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.693147f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
}

// tanh(x), within 4 units in the last place: a minimax polynomial in x^2 near 0, where the formula
// by the exponential would cancel, and that formula elsewhere. NaN stays NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Tanh(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V y = hn::Mul(x, x);
  V p = hn::MulAdd(hn::Set(d, -0.00565999f), y, hn::Set(d, 0.020590989f));
  p = hn::MulAdd(p, y, hn::Set(d, -0.053721067f));
  p = hn::MulAdd(p, y, hn::Set(d, 0.13331127f));
  p = hn::MulAdd(p, y, hn::Set(d, -0.3333326f));
  const V near = hn::MulAdd(hn::Mul(p, y), x, x);
  const V most = hn::Set(d, 16.0f);  // tanh is 1 from 9.1 on
  const V magnitude = hn::IfThenElse(hn::Gt(hn::Abs(x), most), most, hn::Abs(x));
  const V twice_log2e = hn::Set(d, 2.8853900817779268f);
  const V e = Exp2(d, hn::Mul(magnitude, twice_log2e));
  const V far = hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(e, one)));
  return hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0.625f)), near, hn::CopySign(far, x));
}

}  // namespace HWY_NAMESPACE
}  // namespace aah
HWY_AFTER_NAMESPACE();

#endif  // AAH_SRC_ATTENTION_CPU_MATH_INL_H_
