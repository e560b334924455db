#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "aah/attention.h"
#include "aah/random.h"
#include "tests/core/attention_case.h"

namespace aah {
namespace {

// sum(out * grad_out), of which the backward pass gives the gradients.
double Objective(const AttentionCase& c, const std::vector<double>& query,
                 const std::vector<double>& key, const std::vector<double>& value) {
  const CaseShape& s = c.shape;
  std::vector<double> out(query.size());
  std::vector<double> log_sum_exp(static_cast<size_t>(s.batch * s.heads * s.queries));
  using In = ConstView4<double>;
  ReferenceAttentionForward(
      In::Contiguous(query.data(), c.QueryShape()), In::Contiguous(key.data(), c.KeyShape()),
      In::Contiguous(value.data(), c.KeyShape()), c.visibility(), c.options,
      View4<double>::Contiguous(out.data(), c.QueryShape()),
      View3<double>::Contiguous(log_sum_exp.data(), {s.batch, s.heads, s.queries}), {}, {}, {});
  const std::vector<double> grad_out = c.grad_out.Dense();
  double sum = 0;
  for (size_t n = 0; n < out.size(); ++n) sum += out[n] * grad_out[n];
  return sum;
}

TEST(AttentionReference, GradientsAreTheCentralDifferences) {
  constexpr double kStep = 1e-5;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    AttentionCase c = AttentionCase::Draw(seed);
    if (c.shape.keys * c.shape.heads > 400) continue;  // the definition is slow
    SCOPED_TRACE(c.Describe());
    const AttentionReference r = ReferenceOf(c);
    std::vector<double> inputs[3] = {c.query.Dense(), c.key.Dense(), c.value.Dense()};
    const std::vector<double>* gradients[3] = {&r.grad_query, &r.grad_key, &r.grad_value};
    Random random(seed);
    for (int which = 0; which < 3; ++which) {
      for (int probe = 0; probe < 3; ++probe) {
        const size_t at = random.Below(inputs[which].size());
        double& x = inputs[which][at];
        const double kept = x;
        x = kept + kStep;
        const double above = Objective(c, inputs[0], inputs[1], inputs[2]);
        x = kept - kStep;
        const double below = Objective(c, inputs[0], inputs[1], inputs[2]);
        x = kept;
        // Truncation grows with the third derivative, that is with scale cubed; rounding is below.
        const double scale = std::max(1.0, std::abs(double{c.options.scale}));
        EXPECT_NEAR((above - below) / (2 * kStep), (*gradients[which])[at],
                    1e-7 * scale * scale * scale);
      }
    }
  }
}

TEST(AttentionReference, AWindowOfOneReturnsTheValueItself) {
  const AttentionCase c({1, 2, 2, 9, 9, 8}, {1, 1});
  const AttentionReference r = ReferenceOf(c);
  const std::vector<double> value = c.value.Dense();
  for (size_t n = 0; n < value.size(); ++n) EXPECT_DOUBLE_EQ(r.out[n], value[n]);
  EXPECT_DOUBLE_EQ(r.entropy[0], 0);
  EXPECT_NEAR(r.usage[1], 1.0 / 9, 1e-15);
}

TEST(AttentionReference, EqualKeysShareAttentionEqually) {
  AttentionCase c({1, 1, 1, 4, 4, 8}, {3});
  for (float& x : c.key.memory()) x = 0;
  const AttentionReference r = ReferenceOf(c);
  EXPECT_NEAR(r.log_sum_exp[3], std::log(3), 1e-15);
  // Rows see 1, 2, 3 and 3 keys.
  const double entropy = (std::log(2) + 2 * std::log(3)) / 4 / std::log(4);
  EXPECT_NEAR(r.entropy[0], entropy, 1e-15);
  EXPECT_NEAR(r.usage[0], 1.0 / 3 / 4, 1e-15);
}

TEST(AttentionReference, ARowThatSeesNothingIsZero) {
  AttentionCase c({1, 1, 1, 3, 3, 8}, {3});
  c.key_begin = {2};
  const AttentionReference r = ReferenceOf(c);
  EXPECT_EQ(r.log_sum_exp[1], -INFINITY);
  EXPECT_EQ(r.out[8], 0);
  EXPECT_EQ(r.grad_query[8], 0);
  EXPECT_EQ(r.grad_value[8], 0);
}

}  // namespace
}  // namespace aah
