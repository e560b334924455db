// What a band of nested windows brings to the backward kernel. Compiled once per instruction set.

#if defined(AAH_SRC_ATTENTION_CPU_NESTED_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AAH_SRC_ATTENTION_CPU_NESTED_BACKWARD_INL_H_
#undef AAH_SRC_ATTENTION_CPU_NESTED_BACKWARD_INL_H_
#else
#define AAH_SRC_ATTENTION_CPU_NESTED_BACKWARD_INL_H_
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>

#include "attention/cpu/backward.h"
#include "attention/cpu/math-inl.h"
#include "attention/tile_walk.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace aah {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The weight of a band, and the mean over its candidates, for the rows from `row` on of one vector.
//
// With e_n = exp(L_b - L_n), at most 1, the band's probabilities are P = exp(s - L_b) c and its
// score gradients P (dP - m), where c = sum_n pi_n e_n and m = sum_n pi_n e_n D_n / c run over the
// candidates n from the band's own, b, on. Going from the widest inwards every step multiplies by
// one exponential, and m stays a mean of the D_n however small c gets.
template <class D>
HWY_INLINE void BandRows(D d, std::span<const CandidateRows> candidates, int64_t row,
                         float* HWY_RESTRICT weight, float* HWY_RESTRICT mean) {
  const auto to_base_2 = hn::Set(d, std::numbers::log2e_v<float>);
  const CandidateRows& widest = candidates.back();
  auto c = hn::Set(d, widest.weight);
  auto m = hn::LoadU(d, widest.out_dots + row);
  auto log_sum_exp = hn::Mul(hn::LoadU(d, widest.log_sum_exp + row), to_base_2);
  for (size_t n = candidates.size() - 1; n-- > 0;) {
    const CandidateRows& candidate = candidates[n];
    const auto own = hn::Set(d, candidate.weight);
    const auto inner = hn::Mul(hn::LoadU(d, candidate.log_sum_exp + row), to_base_2);
    c = hn::Mul(c, Exp2(d, hn::Sub(inner, log_sum_exp)));
    const auto sum = hn::Add(own, c);
    const auto total = hn::MulAdd(c, m, hn::Mul(own, hn::LoadU(d, candidate.out_dots + row)));
    m = hn::IfThenElseZero(hn::Gt(sum, hn::Set(d, kLeastBandWeight)), hn::Div(total, sum));
    c = sum;
    log_sum_exp = inner;
  }
  hn::StoreU(c, d, weight);
  hn::StoreU(m, d, mean);
}

// The constants of queries [queries.begin, queries.end) in the band whose candidates are given, as
// if it were attention of its own: its log-sum-exp is L_b - log c. Row 0 is that of queries.begin.
inline void BandConstants(std::span<const CandidateRows> candidates, Span queries, float scale,
                          const RowConstants& constants) {
  // No score comes near it, so that every probability of the row vanishes.
  constexpr float kNothing = 1e30F;
  const hn::ScalableTag<float> d;
  constexpr int64_t kStep = static_cast<int64_t>(hn::MaxLanes(d));
  int64_t row = 0;
  for (; row + kStep <= queries.size(); row += kStep) {
    BandRows(d, candidates, queries.begin + row, constants.log2_sum_exp + row,
             constants.delta + row);
  }
  for (; row < queries.size(); ++row) {
    BandRows(hn::CappedTag<float, 1>(), candidates, queries.begin + row,
             constants.log2_sum_exp + row, constants.delta + row);
  }
  const float* log_sum_exp = candidates.front().log_sum_exp + queries.begin;
  for (row = 0; row < queries.size(); ++row) {
    const float weight = constants.log2_sum_exp[row];
    // False for NaN too: a row that sees nothing.
    const bool counts = weight > kLeastBandWeight;
    constants.log2_sum_exp[row] =
        counts ? log_sum_exp[row] * std::numbers::log2e_v<float> - std::log2(weight) : kNothing;
    constants.delta[row] = counts ? scale * constants.delta[row] : 0;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace aah
HWY_AFTER_NAMESPACE();

#endif  // AAH_SRC_ATTENTION_CPU_NESTED_BACKWARD_INL_H_
