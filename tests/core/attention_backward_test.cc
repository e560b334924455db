#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "aah/attention.h"
#include "aah/error.h"
#include "aah/instruction_set.h"
#include "aah/parallel.h"
#include "aah/scratch.h"
#include "tests/core/attention_case.h"

namespace aah {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// What a forward pass would have left, rounded to float.
struct Saved {
  Saved(const AttentionCase& c, const AttentionReference& reference)
      : out(c.QueryShape(), c.layout),
        log_sum_exp(reference.log_sum_exp.begin(), reference.log_sum_exp.end()) {
    const std::array<int64_t, 4> shape = c.QueryShape();
    auto next = reference.out.begin();
    for (int64_t b = 0; b < shape[0]; ++b) {
      for (int64_t h = 0; h < shape[1]; ++h) {
        for (int64_t i = 0; i < shape[2]; ++i) {
          float* row = out.view().At(b, h, i);
          for (int64_t d = 0; d < shape[3]; ++d) row[d] = static_cast<float>(*next++);
        }
      }
    }
  }

  ConstView3<float> log_sum_exp_view(const AttentionCase& c) const {
    return ConstView3<float>::Contiguous(log_sum_exp.data(),
                                         {c.shape.batch, c.shape.heads, c.shape.queries});
  }

  CaseTensor out;
  std::vector<float> log_sum_exp;
};

struct Gradients {
  explicit Gradients(const AttentionCase& c)
      : query(c.QueryShape(), c.layout),
        key(c.KeyShape(), c.layout),
        value(c.KeyShape(), c.layout) {}

  bool SameBits(const Gradients& other) const {
    const auto same = [](const CaseTensor& a, const CaseTensor& b) {
      return std::memcmp(a.memory().data(), b.memory().data(), a.memory().size_bytes()) == 0;
    };
    return same(query, other.query) && same(key, other.key) && same(value, other.value);
  }

  CaseTensor query;
  CaseTensor key;
  CaseTensor value;
};

Gradients RunBackward(const AttentionCase& c, const Saved& saved, Parallel& parallel) {
  Gradients g(c);
  AttentionBackward(c.query.view(), c.key.view(), c.value.view(), saved.out.view(),
                    saved.log_sum_exp_view(c), c.grad_out.view(), c.visibility(), c.options,
                    g.query.view(), g.key.view(), g.value.view(), parallel);
  return g;
}

void ExpectAgreement(const AttentionCase& c, const AttentionReference& reference,
                     const Gradients& g) {
  const AttentionTolerance tolerance = ToleranceOf(c, reference);
  EXPECT_LE(MaxAbsDifference(g.query.view(), reference.grad_query), tolerance.grad_query);
  EXPECT_LE(MaxAbsDifference(g.key.view(), reference.grad_key), tolerance.grad_key);
  EXPECT_LE(MaxAbsDifference(g.value.view(), reference.grad_value), tolerance.grad_value);
}

class AttentionBackwardTest : public ::testing::Test {
 protected:
  ~AttentionBackwardTest() override { RestrictInstructionSet(""); }

  SerialParallel serial_;
};

TEST_F(AttentionBackwardTest, AgreesWithTheDefinitionOnDrawnCases) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const AttentionCase c = AttentionCase::Draw(seed);
    SCOPED_TRACE(c.Describe());
    const AttentionReference reference = ReferenceOf(c);
    const Saved saved(c, reference);
    for (const std::string& name : SupportedInstructionSets()) {
      SCOPED_TRACE(name);
      RestrictInstructionSet(name);
      ExpectAgreement(c, reference, RunBackward(c, saved, serial_));
    }
  }
}

// Long enough for several segments of keys, whose grad_query must come together.
TEST_F(AttentionBackwardTest, AgreesWhereKeysAreCutIntoSegments) {
  AttentionCase c({1, 2, 1, 1500, 1500, 8}, {1500, 333}, 7);
  c.sinks = 3;
  const AttentionReference reference = ReferenceOf(c);
  ExpectAgreement(c, reference, RunBackward(c, Saved(c, reference), serial_));
}

TEST_F(AttentionBackwardTest, IsTheSameToTheBitForAnyNumberOfWorkers) {
  AttentionCase c({2, 4, 2, 777, 1000, 16}, {1, 60, 400, 1000}, 3, Layout::kTokenMajor);
  c.sinks = 5;
  c.key_length = {1000, 901};
  const Saved saved(c, ReferenceOf(c));
  const Gradients first = RunBackward(c, saved, serial_);
  for (const int workers : {1, 2, 3}) {
    const std::unique_ptr<Parallel> pool = MakeThreadPool(workers);
    for (int repeat = 0; repeat < 3; ++repeat) {
      EXPECT_TRUE(RunBackward(c, saved, *pool).SameBits(first)) << workers << " workers";
    }
  }
}

TEST_F(AttentionBackwardTest, KeysNobodySeesGetNoGradientAndGiveNone) {
  AttentionCase c({2, 2, 1, 50, 200, 16}, {7, 90}, 4);
  c.key_begin = {30, 0};
  c.key_length = {200, 170};
  const AttentionReference reference = ReferenceOf(c);
  const Saved saved(c, reference);
  c.PoisonHiddenKeys(std::numeric_limits<float>::quiet_NaN());
  for (const std::string& name : SupportedInstructionSets()) {
    SCOPED_TRACE(name);
    RestrictInstructionSet(name);
    const Gradients g = RunBackward(c, saved, serial_);
    ExpectAgreement(c, reference, g);
    // The first key that a query of sequence 0 sees is 200 - 50 - 90 + 1.
    for (int64_t j = 0; j < 61; ++j) {
      for (int64_t d = 0; d < 16; ++d) {
        ASSERT_EQ(g.key.view().At(0, 0, j)[d], 0) << j;
        ASSERT_EQ(g.value.view().At(0, 0, j)[d], 0) << j;
      }
    }
  }
}

TEST_F(AttentionBackwardTest, RowsThatSeeNothingAreZeroAndGiveNothing) {
  AttentionCase c({1, 2, 2, 40, 40, 8}, {5, 40}, 5);
  c.key_begin = {17};
  const AttentionReference reference = ReferenceOf(c);
  const Saved saved(c, reference);
  for (int64_t h = 0; h < 2; ++h) {
    for (int64_t i = 0; i < 17; ++i) {
      std::fill_n(c.query.view().At(0, h, i), 8, std::numeric_limits<float>::quiet_NaN());
      std::fill_n(c.grad_out.view().At(0, h, i), 8, std::numeric_limits<float>::quiet_NaN());
    }
  }
  const Gradients g = RunBackward(c, saved, serial_);
  ExpectAgreement(c, reference, g);
  EXPECT_EQ(g.query.view().At(0, 1, 16)[3], 0);
}

TEST_F(AttentionBackwardTest, ScratchStaysBelowTheTensors) {
  const int64_t tokens = 3000;
  AttentionCase c({1, 8, 8, tokens, tokens, 64}, std::vector<int32_t>(8, 1), 6);
  const Saved saved(c, ReferenceOf(c));
  c.windows.assign(8, static_cast<int32_t>(tokens));  // the result is of no matter here
  Scratch::ResetHighWater();
  RunBackward(c, saved, serial_);
  EXPECT_LE(Scratch::HighWaterBytes(), 8 * 8 * tokens * 64 * int64_t{sizeof(float)});
  EXPECT_EQ(Scratch::BytesInUse(), 0);
}

TEST_F(AttentionBackwardTest, RefusesAGradientOfAnotherShape) {
  const AttentionCase c({1, 2, 1, 4, 4, 8}, {4, 4});
  const AttentionCase other({1, 2, 1, 3, 3, 8}, {3, 3});
  const Saved saved(c, ReferenceOf(c));
  Gradients g(other);
  EXPECT_THAT(
      [&] {
        AttentionBackward(c.query.view(), c.key.view(), c.value.view(), saved.out.view(),
                          saved.log_sum_exp_view(c), c.grad_out.view(), c.visibility(), c.options,
                          g.query.view(), g.key.view(), g.value.view(), serial_);
      },
      ThrowsMessage<Error>("grad_query has shape [1, 2, 3, 8]: expected [1, 2, 4, 8]"));
}

TEST_F(AttentionBackwardTest, RefusesAHeadDimThatTheKernelsDoNotTake) {
  const AttentionCase c({1, 1, 1, 2, 2, 12}, {2});
  const Saved saved(c, ReferenceOf(c));
  EXPECT_THAT([&] { RunBackward(c, saved, serial_); },
              ThrowsMessage<Error>(HasSubstr("head_dim is 12: expected a multiple of 8")));
}

}  // namespace
}  // namespace aah
