#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "aah/attention.h"
#include "aah/error.h"
#include "aah/float16.h"
#include "aah/instruction_set.h"
#include "aah/parallel.h"
#include "aah/scratch.h"
#include "tests/core/attention_case.h"

namespace aah {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct ForwardResult {
  CaseTensor out;
  std::vector<float> log_sum_exp;
  std::vector<float> entropy;
  std::vector<float> norm;
  std::vector<float> usage;
};

ForwardResult Forward(const AttentionCase& c, int workers = 1, bool statistics = true) {
  const auto heads = static_cast<size_t>(c.shape.heads);
  ForwardResult r;
  r.out = CaseTensor(c.QueryShape(), c.layout);
  r.log_sum_exp.resize(static_cast<size_t>(c.shape.batch * c.shape.queries) * heads);
  HeadStatistics wanted;
  if (statistics) {
    for (std::vector<float>* values : {&r.entropy, &r.norm, &r.usage}) values->resize(heads);
    wanted = {r.entropy, r.norm, r.usage};
  }
  const std::unique_ptr<Parallel> pool = MakeThreadPool(workers);
  AttentionForward<float>(c.query.view(), c.key.view(), c.value.view(), c.visibility(), c.options,
                          r.out.view(),
                          View3<float>::Contiguous(r.log_sum_exp.data(),
                                                   {c.shape.batch, c.shape.heads, c.shape.queries}),
                          wanted, *pool);
  return r;
}

void ExpectAgrees(const AttentionCase& c, const ForwardResult& r) {
  const AttentionReference reference = ReferenceOf(c);
  const AttentionTolerance tolerance = ToleranceOf(c, reference);
  EXPECT_LE(MaxAbsDifference(std::as_const(r.out).view(), reference.out), tolerance.out);
  EXPECT_LE(MaxAbsDifference(r.log_sum_exp, reference.log_sum_exp), tolerance.log_sum_exp);
  EXPECT_LE(MaxAbsDifference(r.entropy, reference.entropy), tolerance.entropy);
  EXPECT_LE(MaxAbsDifference(r.norm, reference.norm), tolerance.norm);
  EXPECT_LE(MaxAbsDifference(r.usage, reference.usage), tolerance.usage);
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(
      a, b, {}, [](float x) { return std::bit_cast<uint32_t>(x); },
      [](float x) { return std::bit_cast<uint32_t>(x); });
}

bool SameBits(const ForwardResult& a, const ForwardResult& b) {
  return SameBits(a.out.memory(), b.out.memory()) && SameBits(a.log_sum_exp, b.log_sum_exp) &&
         SameBits(a.entropy, b.entropy) && SameBits(a.norm, b.norm) && SameBits(a.usage, b.usage);
}

// Runs a test body on every instruction set, and lifts the restriction afterwards.
template <typename Body>
void OnEveryInstructionSet(const Body& body) {
  for (const std::string& name : SupportedInstructionSets()) {
    SCOPED_TRACE(name);
    RestrictInstructionSet(name);
    body();
  }
  RestrictInstructionSet("");
}

// Long enough for several tiles, query blocks and decode pieces, which drawn cases rarely are.
std::vector<AttentionCase> LongCases() {
  std::vector<AttentionCase> cases;
  cases.push_back(AttentionCase({1, 6, 2, 700, 700, 32}, {1, 30, 255, 257, 600, 5000}, 1));
  cases.push_back(AttentionCase({1, 4, 1, 150, 1100, 16}, {90, 256, 700, 1100}, 2));
  cases.back().sinks = 5;
  cases.push_back(AttentionCase({2, 2, 1, 400, 600, 64}, {70, 600}, 3, Layout::kTokenMajor));
  cases.back().sinks = 40;
  cases.back().key_begin = {0, 35};
  cases.back().key_length = {520, 600};
  cases.push_back(AttentionCase({2, 6, 2, 1, 2000, 24}, {1, 100, 600, 1999, 2000, 9000}, 4));
  cases.back().sinks = 7;
  cases.back().key_begin = {3, 530};
  cases.back().key_length = {2000, 1400};
  cases.push_back(AttentionCase({1, 2, 2, 1, 1300, 128}, {1024, 1300}, 5, Layout::kOddRows));
  cases.back().options.softcap = 3;
  // Ever rising scores: every tile moves the reference of the running softmax.
  cases.push_back(AttentionCase({1, 1, 1, 600, 600, 8}, {600}, 6));
  for (int64_t j = 0; j < 600; ++j) {
    *cases.back().key.view().At(0, 0, j) = 0.2F * static_cast<float>(j);
    *cases.back().query.view().At(0, 0, j) = 2;
  }
  return cases;
}

TEST(AttentionForward, AgreesWithTheDefinitionOnDrawnCases) {
  for (uint64_t seed = 0; seed < 160; ++seed) {
    const AttentionCase c = AttentionCase::Draw(seed);
    SCOPED_TRACE(c.Describe());
    OnEveryInstructionSet([&] { ExpectAgrees(c, Forward(c)); });
    if (HasFailure()) return;
  }
}

TEST(AttentionForward, AgreesWithTheDefinitionOverManyTiles) {
  for (const AttentionCase& c : LongCases()) {
    SCOPED_TRACE(c.Describe());
    OnEveryInstructionSet([&] { ExpectAgrees(c, Forward(c, 2)); });
  }
}

TEST(AttentionForward, IsTheSameToTheBitForAnyNumberOfWorkers) {
  for (const AttentionCase& c : LongCases()) {
    SCOPED_TRACE(c.Describe());
    OnEveryInstructionSet([&] {
      const ForwardResult one = Forward(c, 1);
      for (const int workers : {1, 2, 3}) EXPECT_TRUE(SameBits(one, Forward(c, workers)));
    });
  }
}

TEST(AttentionForward, StatisticsDoNotChangeTheResult) {
  for (const AttentionCase& c : LongCases()) {
    const ForwardResult with = Forward(c);
    const ForwardResult without = Forward(c, 1, false);
    EXPECT_TRUE(SameBits(with.out.memory(), without.out.memory()));
    EXPECT_TRUE(SameBits(with.log_sum_exp, without.log_sum_exp));
  }
}

TEST(AttentionForward, AWindowOfOneReturnsTheValueItself) {
  const AttentionCase c({2, 2, 2, 130, 130, 40}, {1, 1});
  OnEveryInstructionSet([&] {
    const ForwardResult r = Forward(c);
    EXPECT_EQ(MaxAbsDifference(std::as_const(r.out).view(), c.value.Dense()), 0);
    for (size_t h = 0; h < 2; ++h) EXPECT_EQ(r.entropy[h], 0);
  });
}

TEST(AttentionForward, NeverReadsAKeyOutsideEveryWindow) {
  for (uint64_t seed = 0; seed < 120; ++seed) {
    AttentionCase c = AttentionCase::Draw(seed);
    if (seed >= 60) {  // chunks: most keys lie outside
      c = AttentionCase({2, 2, 1, 20, 400, 16}, {1 + static_cast<int32_t>(seed) % 50, 9}, seed);
      c.sinks = static_cast<int32_t>(seed % 3) * 3;
      c.key_begin = {0, 17};
      c.key_length = {400, 350};
    }
    SCOPED_TRACE(c.Describe());
    const AttentionReference reference = ReferenceOf(c);
    const AttentionTolerance tolerance = ToleranceOf(c, reference);
    c.PoisonHiddenKeys(std::numeric_limits<float>::quiet_NaN());
    OnEveryInstructionSet([&] {
      const ForwardResult r = Forward(c);
      EXPECT_LE(MaxAbsDifference(std::as_const(r.out).view(), reference.out), tolerance.out);
      EXPECT_LE(MaxAbsDifference(r.log_sum_exp, reference.log_sum_exp), tolerance.log_sum_exp);
    });
    if (HasFailure()) return;
  }
}

TEST(AttentionForward, ANotANumberThatIsSeenShows) {
  for (const int64_t queries : {1, 50}) {
    for (const float softcap : {0.0F, 2.0F}) {
      AttentionCase c({1, 1, 1, queries, 50, 16}, {50});
      c.options.softcap = softcap;
      *c.key.view().At(0, 0, 20, 3) = std::numeric_limits<float>::quiet_NaN();
      OnEveryInstructionSet([&] {
        const ForwardResult r = Forward(c);
        EXPECT_TRUE(std::isnan(*std::as_const(r.out).view().At(0, 0, queries - 1)));
        EXPECT_TRUE(std::isnan(r.log_sum_exp.back()));
      });
    }
  }
}

TEST(AttentionForward, TakesBroadcastAndReversedViews) {
  const AttentionCase c({2, 2, 2, 40, 40, 16}, {7, 40});
  ConstView4<float> key = c.key.view();
  key.strides[0] = 0;  // both sequences share the keys of the first
  ConstView4<float> query = c.query.view();
  query.data = query.At(0, 1);  // the heads in reverse
  query.strides[1] = -query.strides[1];
  AttentionCase dense = c;
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t h = 0; h < 2; ++h) {
      for (int64_t t = 0; t < 40; ++t) {
        std::copy_n(key.At(b, h, t), 16, dense.key.view().At(b, h, t));
        std::copy_n(query.At(b, h, t), 16, dense.query.view().At(b, h, t));
      }
    }
  }
  const ForwardResult expected = Forward(dense, 1, false);
  ForwardResult r = Forward(c, 1, false);
  SerialParallel serial;
  AttentionForward<float>(query, key, c.value.view(), c.visibility(), c.options, r.out.view(),
                          View3<float>::Contiguous(r.log_sum_exp.data(), {2, 2, 40}), {}, serial);
  EXPECT_TRUE(SameBits(r, expected));
}

// Rounds a tensor to a storage format, in place and into `stored` (the same memory layout).
template <typename Half, typename Convert>
std::vector<Half> RoundTensor(CaseTensor& tensor, const Convert& convert) {
  std::vector<Half> stored;
  for (float& x : tensor.memory()) {
    stored.push_back(convert(x));
    x = ToFloat(stored.back());
  }
  return stored;
}

// `unit`: unit roundoff of the storage format.
template <typename Half, typename Convert>
void ExpectHalfStorageAgrees(AttentionCase c, double unit, const Convert& convert) {
  const std::vector<Half> query = RoundTensor<Half>(c.query, convert);
  const std::vector<Half> key = RoundTensor<Half>(c.key, convert);
  const std::vector<Half> value = RoundTensor<Half>(c.value, convert);
  const AttentionReference reference = ReferenceOf(c);
  const AttentionTolerance tolerance = ToleranceOf(c, reference);
  const auto view = [](const std::vector<Half>& stored, CaseTensor& like) {
    return ConstView4<Half>{stored.data(), like.view().shape, like.view().strides};
  };
  std::vector<Half> out(query.size());
  std::vector<float> log_sum_exp(reference.log_sum_exp.size());
  SerialParallel serial;
  CaseTensor result(c.QueryShape(), c.layout);
  AttentionForward<Half>(
      view(query, c.query), view(key, c.key), view(value, c.value), c.visibility(), c.options,
      {out.data(), result.view().shape, result.view().strides},
      View3<float>::Contiguous(log_sum_exp.data(), {c.shape.batch, c.shape.heads, c.shape.queries}),
      {}, serial);
  for (size_t n = 0; n < out.size(); ++n) result.memory()[n] = ToFloat(out[n]);
  double most = 0;
  for (const double x : reference.out) most = std::max(most, std::abs(x));
  EXPECT_LE(MaxAbsDifference(std::as_const(result).view(), reference.out),
            tolerance.out + unit * (most + tolerance.out));
  EXPECT_LE(MaxAbsDifference(log_sum_exp, reference.log_sum_exp), tolerance.log_sum_exp);
}

TEST(AttentionForward, HalfStorageAgreesWithTheDefinition) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const AttentionCase c = AttentionCase::Draw(seed);
    SCOPED_TRACE(c.Describe());
    OnEveryInstructionSet([&] {
      ExpectHalfStorageAgrees<Bfloat16>(c, 0x1.0p-8, &ToBfloat16);
      ExpectHalfStorageAgrees<Float16>(c, 0x1.0p-11, &ToFloat16);
    });
    if (HasFailure()) return;
  }
}

TEST(AttentionForward, WorksInLittleMemory) {
  const AttentionCase c({1, 4, 4, 2048, 2048, 32}, {256, 512, 1024, 2048});
  const int64_t tensor_bytes = int64_t{4} * 2048 * 32 * 4;
  Forward(c, 2);
  Scratch::ResetHighWater();
  Forward(c, 2);
  EXPECT_LE(Scratch::HighWaterBytes(), 3 * tensor_bytes);
  EXPECT_EQ(Scratch::BytesInUse(), 0);
}

struct Refusal {
  const char* message;
  void (*spoil)(AttentionCase&);
};

TEST(AttentionForward, RefusesWhatItCannotRunWithOneLine) {
  const std::vector<Refusal> refusals = {
      {"windows[1] is 0: a window counts the query's own key, so it is at least 1",
       [](AttentionCase& c) { c.windows = {4, 0}; }},
      {"windows has 1 entries: expected one per query head, 2",
       [](AttentionCase& c) { c.windows = {4}; }},
      {"sinks is -1: expected 0 or more", [](AttentionCase& c) { c.sinks = -1; }},
      {"key_begin[1] is 11: expected 0 to the number of keys, 10",
       [](AttentionCase& c) { c.key_begin = {0, 11}; }},
      {"key_length[0] is -3: expected 0 to the number of keys, 10",
       [](AttentionCase& c) { c.key_length = {-3, 4}; }},
      {"key_length has 1 entries: expected one per sequence, 2, or none",
       [](AttentionCase& c) { c.key_length = {4}; }},
      {"softcap is -2: expected a finite number above 0, or 0 for none",
       [](AttentionCase& c) { c.options.softcap = -2; }},
      {"scale is inf: expected a finite number, or 0 for head_dim^-1/2",
       [](AttentionCase& c) { c.options.scale = std::numeric_limits<float>::infinity(); }},
      {"key has shape [2, 2, 10, 24]: expected [2, 2, 10, 16]",
       [](AttentionCase& c) { c.key = CaseTensor({2, 2, 10, 24}, c.layout); }},
      {"value has shape [2, 2, 9, 16]: expected [2, 2, 10, 16]",
       [](AttentionCase& c) { c.value = CaseTensor({2, 2, 9, 16}, c.layout); }},
      {"query has 11 tokens, key has 10: the queries are the last ones of the keys, so give at "
       "least as many keys",
       [](AttentionCase& c) { c.query = CaseTensor({2, 2, 11, 16}, c.layout); }},
      {"query has 3 heads, key has 2: the key/value heads must divide the query heads",
       [](AttentionCase& c) { c.query = CaseTensor({2, 3, 10, 16}, c.layout); }},
      {"out has shape [2, 2, 10, 16]: expected [2, 2, 8, 16]",
       [](AttentionCase& c) { c.query = CaseTensor({2, 2, 8, 16}, c.layout); }},
      {"query has shape [2, 2, 0, 16]: expected every size to be at least 1",
       [](AttentionCase& c) { c.query = CaseTensor({2, 2, 0, 16}, c.layout); }},
  };
  for (const Refusal& refusal : refusals) {
    AttentionCase c({2, 2, 2, 10, 10, 16}, {4, 10});
    const CaseShape shape = c.shape;
    refusal.spoil(c);
    c.shape = shape;
    EXPECT_THAT([&] { Forward(c); }, ThrowsMessage<Error>(std::string(refusal.message)));
  }
}

TEST(AttentionForward, RefusesHeadSizesAndStridesItHasNoKernelFor) {
  for (const int64_t head_dim : {4, 12, 264}) {
    const AttentionCase c({1, 1, 1, 3, 3, head_dim}, {2});
    EXPECT_THAT([&] { Forward(c); },
                ThrowsMessage<Error>("head_dim is " + std::to_string(head_dim) +
                                     ": expected a multiple of 8 from 8 to 256"));
  }
  const AttentionCase c({1, 1, 1, 8, 8, 8}, {2});
  ConstView4<float> query = c.query.view();
  std::swap(query.strides[2], query.strides[3]);
  CaseTensor out(c.QueryShape(), c.layout);
  std::vector<float> log_sum_exp(8);
  SerialParallel serial;
  EXPECT_THAT(
      [&] {
        AttentionForward<float>(query, c.key.view(), c.value.view(), c.visibility(), c.options,
                                out.view(), View3<float>::Contiguous(log_sum_exp.data(), {1, 1, 8}),
                                {}, serial);
      },
      ThrowsMessage<Error>(HasSubstr("query's last stride is 8: the elements of a row must be "
                                     "neighbours, so make the tensor contiguous")));
}

}  // namespace
}  // namespace aah
