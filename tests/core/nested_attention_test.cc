#include "aah/nested_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "aah/attention.h"
#include "aah/error.h"
#include "aah/instruction_set.h"
#include "aah/parallel.h"
#include "aah/random.h"
#include "aah/scratch.h"
#include "tests/core/attention_case.h"

namespace aah {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// One call: tensors and options are those of `c`, whose windows are each head's widest live one.
struct NestedCase {
  NestedCase(AttentionCase attention_case, std::vector<int32_t> candidate_windows)
      : c(std::move(attention_case)), windows(std::move(candidate_windows)) {
    const auto entries = static_cast<size_t>(c.shape.heads) * windows.size();
    selection.assign(entries, 1 / static_cast<float>(windows.size()));
    SetWidest();
  }

  static NestedCase Draw(uint64_t seed);

  NestedVisibility visibility() const {
    return {windows, live, c.sinks, c.key_begin, c.key_length};
  }
  size_t Entry(int64_t head, size_t candidate) const {
    return static_cast<size_t>(head) * windows.size() + candidate;
  }
  bool IsLive(int64_t head, size_t candidate) const {
    return live.empty() || live[Entry(head, candidate)] != 0;
  }
  void SetWidest() {
    for (int64_t head = 0; head < c.shape.heads; ++head) {
      for (size_t n = 0; n < windows.size(); ++n) {
        if (IsLive(head, n)) c.windows[static_cast<size_t>(head)] = windows[n];
      }
    }
  }
  std::array<int64_t, 4> SlotShape() const {
    return {c.shape.batch, LiveCandidates(visibility(), c.shape.heads), c.shape.queries,
            c.shape.head_dim};
  }
  std::string Describe() const {
    std::ostringstream text;
    text << c.Describe() << ", candidates";
    for (const int32_t window : windows) text << ' ' << window;
    text << ", live";
    for (const uint8_t flag : live) text << ' ' << int{flag};
    text << ", selection";
    for (const float weight : selection) text << ' ' << weight;
    return text.str();
  }

  AttentionCase c;
  std::vector<int32_t> windows;
  std::vector<uint8_t> live;
  std::vector<float> selection;
};

// Ascending windows, most of them near each other and the block sizes.
std::vector<int32_t> DrawCandidates(Random& random, int64_t keys) {
  std::vector<int32_t> windows;
  const auto count = static_cast<int64_t>(1 + random.Below(6));
  int64_t window = 0;
  for (int64_t n = 0; n < count; ++n) {
    const auto most = static_cast<uint64_t>(random.Below(3) == 0 ? keys : 1 + keys / 4);
    window += static_cast<int64_t>(1 + random.Below(most));
    windows.push_back(static_cast<int32_t>(window));
  }
  return windows;
}

NestedCase NestedCase::Draw(uint64_t seed) {
  AttentionCase attention_case = AttentionCase::Draw(seed);
  Random random(seed + 1000);
  std::vector<int32_t> candidates = DrawCandidates(random, attention_case.shape.keys);
  NestedCase n(std::move(attention_case), std::move(candidates));
  for (float& weight : n.selection) {
    weight = random.Below(5) == 0 ? 0 : static_cast<float>(random.Uniform());
  }
  if (random.Below(2) == 0) {
    n.live.resize(n.selection.size());
    for (int64_t head = 0; head < n.c.shape.heads; ++head) {
      for (size_t i = 0; i < n.windows.size(); ++i) {
        n.live[n.Entry(head, i)] = static_cast<uint8_t>(random.Below(2));
      }
      n.live[n.Entry(head, random.Below(n.windows.size()))] = 1;
    }
    n.SetWidest();
  }
  return n;
}

struct NestedReference {
  explicit NestedReference(const NestedCase& n)
      : query(n.c.query.Dense()),
        key(n.c.key.Dense()),
        value(n.c.value.Dense()),
        grad_out(n.c.grad_out.Dense()),
        selection(n.selection.begin(), n.selection.end()),
        out(query.size()),
        grad_query(query.size()),
        grad_key(key.size()),
        grad_value(key.size()),
        grad_selection(selection.size()) {
    using In = ConstView4<double>;
    using Out = View4<double>;
    const std::array<int64_t, 4> slots = n.SlotShape();
    candidate_out.resize(static_cast<size_t>(slots[0] * slots[1] * slots[2] * slots[3]));
    log_sum_exp.resize(static_cast<size_t>(slots[0] * slots[1] * slots[2]));
    const In q = In::Contiguous(query.data(), n.c.QueryShape());
    const In k = In::Contiguous(key.data(), n.c.KeyShape());
    const In v = In::Contiguous(value.data(), n.c.KeyShape());
    const Out candidates = Out::Contiguous(candidate_out.data(), slots);
    ReferenceNestedAttentionForward(
        q, k, v, selection, n.visibility(), n.c.options,
        Out::Contiguous(out.data(), n.c.QueryShape()), candidates,
        View3<double>::Contiguous(log_sum_exp.data(), {slots[0], slots[1], slots[2]}));
    ReferenceNestedAttentionBackward(
        q, k, v, selection, candidates, In::Contiguous(grad_out.data(), n.c.QueryShape()),
        n.visibility(), n.c.options, Out::Contiguous(grad_query.data(), n.c.QueryShape()),
        Out::Contiguous(grad_key.data(), n.c.KeyShape()),
        Out::Contiguous(grad_value.data(), n.c.KeyShape()), grad_selection);
  }

  std::vector<double> query;
  std::vector<double> key;
  std::vector<double> value;
  std::vector<double> grad_out;
  std::vector<double> selection;
  std::vector<double> out;
  std::vector<double> candidate_out;
  std::vector<double> log_sum_exp;
  std::vector<double> grad_query;
  std::vector<double> grad_key;
  std::vector<double> grad_value;
  std::vector<double> grad_selection;
};

// What the kernels make of a case, forward and then backward from their own results.
struct NestedResult {
  NestedResult(const NestedCase& n, Parallel& parallel)
      : out(n.c.QueryShape(), n.c.layout),
        candidate_out(n.SlotShape(), n.c.layout),
        log_sum_exp(static_cast<size_t>(n.c.shape.batch * n.SlotShape()[1] * n.c.shape.queries)),
        grad_query(n.c.QueryShape(), n.c.layout),
        grad_key(n.c.KeyShape(), n.c.layout),
        grad_value(n.c.KeyShape(), n.c.layout),
        grad_selection(n.selection.size()) {
    const auto sums = View3<float>::Contiguous(
        log_sum_exp.data(), {n.c.shape.batch, n.SlotShape()[1], n.c.shape.queries});
    NestedAttentionForward(n.c.query.view(), n.c.key.view(), n.c.value.view(), n.selection,
                           n.visibility(), n.c.options, out.view(), candidate_out.view(), sums,
                           parallel);
    NestedAttentionBackward(n.c.query.view(), n.c.key.view(), n.c.value.view(), n.selection,
                            candidate_out.view(), sums, n.c.grad_out.view(), n.visibility(),
                            n.c.options, grad_query.view(), grad_key.view(), grad_value.view(),
                            grad_selection, parallel);
  }

  bool SameBits(const NestedResult& other) const {
    const auto same = [](std::span<const float> a, std::span<const float> b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
    };
    return same(out.memory(), other.out.memory()) &&
           same(candidate_out.memory(), other.candidate_out.memory()) &&
           same(log_sum_exp, other.log_sum_exp) &&
           same(grad_query.memory(), other.grad_query.memory()) &&
           same(grad_key.memory(), other.grad_key.memory()) &&
           same(grad_value.memory(), other.grad_value.memory()) &&
           same(grad_selection, other.grad_selection);
  }

  CaseTensor out;
  CaseTensor candidate_out;
  std::vector<float> log_sum_exp;
  CaseTensor grad_query;
  CaseTensor grad_key;
  CaseTensor grad_value;
  std::vector<float> grad_selection;
};

// Bounds from those of attention within each candidate's window: what is mixed errs as its parts.
// A band's constants add to a probability's error at most as much again as its log-sum-exp does.
struct NestedTolerance {
  explicit NestedTolerance(const NestedCase& n) {
    double grad_out_sum = 0;  // of one row
    const std::vector<double> grad_out = n.c.grad_out.Dense();
    const auto head_dim = static_cast<size_t>(n.c.shape.head_dim);
    for (size_t row = 0; row < grad_out.size(); row += head_dim) {
      double sum = 0;
      for (size_t d = row; d < row + head_dim; ++d) sum += std::abs(grad_out[d]);
      grad_out_sum = std::max(grad_out_sum, sum);
    }
    double most_value = 0;
    for (const double x : n.c.value.Dense()) {
      if (std::isfinite(x)) most_value = std::max(most_value, std::abs(x));
    }
    for (size_t candidate = 0; candidate < n.windows.size(); ++candidate) {
      double weight = 0;
      for (int64_t head = 0; head < n.c.shape.heads; ++head) {
        weight = std::max(weight, double{n.selection[n.Entry(head, candidate)]});
      }
      AttentionCase one = n.c;
      std::fill(one.windows.begin(), one.windows.end(), n.windows[candidate]);
      const AttentionTolerance t = ToleranceOf(one, ReferenceOf(one));
      out += weight * t.out;
      candidate_out = std::max(candidate_out, t.out);
      log_sum_exp = std::max(log_sum_exp, t.log_sum_exp);
      grad_query += 2 * weight * t.grad_query;
      grad_key += 2 * weight * t.grad_key;
      grad_value += 2 * weight * t.grad_value;
    }
    const auto rows = static_cast<double>(n.c.shape.batch * n.c.shape.queries);
    // Each row's out . grad_out errs by that of out, and by rounding; sums of rows are in double.
    grad_selection =
        rows * grad_out_sum * (candidate_out + most_value * 0x1p-22 * std::sqrt(double(head_dim)));
    const double smallest = 1e-35;  // what is flushed to nothing
    for (double* bound : {&out, &grad_query, &grad_key, &grad_value}) *bound += smallest;
  }

  double out = 0;
  double candidate_out = 0;
  double log_sum_exp = 0;
  double grad_query = 0;
  double grad_key = 0;
  double grad_value = 0;
  double grad_selection = 0;
};

void ExpectAgreement(const NestedReference& reference, const NestedTolerance& tolerance,
                     const NestedResult& r) {
  EXPECT_LE(MaxAbsDifference(r.out.view(), reference.out), tolerance.out);
  EXPECT_LE(MaxAbsDifference(r.candidate_out.view(), reference.candidate_out),
            tolerance.candidate_out);
  EXPECT_LE(MaxAbsDifference(r.log_sum_exp, reference.log_sum_exp), tolerance.log_sum_exp);
  EXPECT_LE(MaxAbsDifference(r.grad_query.view(), reference.grad_query), tolerance.grad_query);
  EXPECT_LE(MaxAbsDifference(r.grad_key.view(), reference.grad_key), tolerance.grad_key);
  EXPECT_LE(MaxAbsDifference(r.grad_value.view(), reference.grad_value), tolerance.grad_value);
  EXPECT_LE(MaxAbsDifference(r.grad_selection, reference.grad_selection), tolerance.grad_selection);
}

class NestedAttentionTest : public ::testing::Test {
 protected:
  ~NestedAttentionTest() override { RestrictInstructionSet(""); }

  void ExpectAgreesOnEveryInstructionSet(const NestedCase& n) {
    SCOPED_TRACE(n.Describe());
    const NestedReference reference(n);
    const NestedTolerance tolerance(n);
    for (const std::string& name : SupportedInstructionSets()) {
      SCOPED_TRACE(name);
      RestrictInstructionSet(name);
      ExpectAgreement(reference, tolerance, NestedResult(n, serial_));
    }
  }

  SerialParallel serial_;
};

TEST_F(NestedAttentionTest, AgreesWithTheDefinitionOnDrawnCases) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    ExpectAgreesOnEveryInstructionSet(NestedCase::Draw(seed));
  }
}

// Tiles that several boundaries cross, tiles within one band, several segments of keys.
TEST_F(NestedAttentionTest, AgreesOnALongSequence) {
  NestedCase n(AttentionCase({1, 2, 1, 1100, 1100, 16}, {1, 1}, 5), {9, 60, 200, 540, 2000});
  n.c.sinks = 3;
  n.selection = {0.1F, 0.2F, 0.3F, 0.25F, 0.15F, 0, 0.9F, 0, 0.1F, 0};
  ExpectAgreesOnEveryInstructionSet(n);
}

TEST_F(NestedAttentionTest, TakesScoresOfFourHundred) {
  NestedCase n(AttentionCase({1, 2, 1, 150, 150, 16}, {1, 1}, 6), {4, 30, 150});
  n.c.options.scale = 25;
  n.selection = {0.5F, 0.25F, 0.25F, 1e-6F, 0.4F, 0.6F};
  ExpectAgreesOnEveryInstructionSet(n);
}

// Far keys that outweigh near ones by more than float can tell apart.
TEST_F(NestedAttentionTest, KeepsWhatANarrowWindowSeesBesideFarStrongKeys) {
  NestedCase n(AttentionCase({1, 1, 1, 64, 64, 8}, {1}, 7), {8, 64});
  for (int64_t j = 0; j < 64; ++j) {
    for (int64_t d = 0; d < 8; ++d) {
      n.c.query.view().At(0, 0, j)[d] = 1;
      n.c.key.view().At(0, 0, j)[d] = j < 8 ? 60.0F : 0.0F;
    }
  }
  const NestedResult r(n, serial_);
  // The last row's near window is uniform over 8 keys: log-sum-exp log 8, far one 8 * 60 / sqrt 8.
  EXPECT_NEAR(r.log_sum_exp[63], std::log(8.0), 1e-6);
  EXPECT_NEAR(r.log_sum_exp[64 + 63], 480 / std::sqrt(8.0) + std::log(8.0), 1e-4);
  ExpectAgreesOnEveryInstructionSet(n);
}

TEST_F(NestedAttentionTest, OneLiveCandidateIsAttentionWithItsWindow) {
  NestedCase n(AttentionCase({2, 4, 2, 130, 200, 16}, {1, 1, 1, 1}, 8), {5, 40, 200});
  n.c.sinks = 2;
  n.live = {0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0};
  n.selection.assign(12, std::numeric_limits<float>::quiet_NaN());  // not read where dead
  for (size_t i = 0; i < n.live.size(); ++i) {
    if (n.live[i] != 0) n.selection[i] = 1;
  }
  n.SetWidest();
  EXPECT_THAT(n.c.windows, testing::ElementsAre(40, 5, 200, 40));
  const NestedResult r(n, serial_);
  CaseTensor out(n.c.QueryShape(), n.c.layout);
  std::vector<float> log_sum_exp(r.log_sum_exp.size());
  AttentionForward<float>(n.c.query.view(), n.c.key.view(), n.c.value.view(), n.c.visibility(),
                          n.c.options, out.view(),
                          View3<float>::Contiguous(log_sum_exp.data(), {2, 4, 130}), {}, serial_);
  EXPECT_EQ(std::memcmp(out.memory().data(), r.out.memory().data(), out.memory().size_bytes()), 0);
  EXPECT_EQ(r.log_sum_exp, log_sum_exp);
  EXPECT_EQ(r.grad_selection[0], 0);
  EXPECT_NE(r.grad_selection[1], 0);
}

TEST_F(NestedAttentionTest, IsTheSameToTheBitForAnyNumberOfWorkers) {
  NestedCase n(AttentionCase({2, 4, 2, 777, 900, 16}, {1, 1, 1, 1}, 3, Layout::kTokenMajor),
               {1, 60, 400, 1000});
  n.c.sinks = 5;
  n.c.key_length = {900, 801};
  n.live = {1, 1, 1, 1, 0, 1, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0};
  n.SetWidest();
  const NestedResult first(n, serial_);
  for (const int workers : {1, 2, 3}) {
    const std::unique_ptr<Parallel> pool = MakeThreadPool(workers);
    for (int repeat = 0; repeat < 2; ++repeat) {
      EXPECT_TRUE(NestedResult(n, *pool).SameBits(first)) << workers << " workers";
    }
  }
}

TEST_F(NestedAttentionTest, WhatNobodySeesNeitherCountsNorGetsAGradient) {
  NestedCase n(AttentionCase({2, 2, 1, 50, 200, 16}, {1, 1}, 4), {7, 30, 90});
  n.c.key_begin = {160, 0};  // ten rows of sequence 0 see nothing
  n.c.key_length = {200, 170};
  const NestedReference reference(n);
  const NestedTolerance tolerance(n);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  n.c.PoisonHiddenKeys(nan);
  for (int64_t h = 0; h < 2; ++h) {
    for (int64_t i = 0; i < 10; ++i) {
      std::fill_n(n.c.query.view().At(0, h, i), 16, nan);
      std::fill_n(n.c.grad_out.view().At(0, h, i), 16, nan);
    }
  }
  for (const std::string& name : SupportedInstructionSets()) {
    SCOPED_TRACE(name);
    RestrictInstructionSet(name);
    const NestedResult r(n, serial_);
    ExpectAgreement(reference, tolerance, r);
    EXPECT_EQ(r.out.view().At(0, 1, 9)[3], 0);
    EXPECT_EQ(r.grad_query.view().At(0, 1, 9)[3], 0);
    EXPECT_EQ(r.grad_value.view().At(0, 0, 159)[3], 0);
  }
}

TEST_F(NestedAttentionTest, MemoryStaysWithinKTimesHeadDimAndTwo) {
  constexpr int64_t kTokens = 2000;
  NestedCase n(AttentionCase({1, 8, 8, kTokens, kTokens, 32}, std::vector<int32_t>(8, kTokens), 6),
               {100, 400, 1000, kTokens});
  const std::unique_ptr<Parallel> pool = MakeThreadPool(2);
  Scratch::ResetHighWater();
  const NestedResult r(n, *pool);
  const int64_t nested = Scratch::HighWaterBytes();
  std::vector<float> log_sum_exp(8 * kTokens);
  const auto sums = View3<float>::Contiguous(log_sum_exp.data(), {1, 8, kTokens});
  CaseTensor out(n.c.QueryShape(), n.c.layout);
  CaseTensor grad_query(n.c.QueryShape(), n.c.layout);
  CaseTensor grad_key(n.c.KeyShape(), n.c.layout);
  CaseTensor grad_value(n.c.KeyShape(), n.c.layout);
  Scratch::ResetHighWater();
  AttentionForward<float>(n.c.query.view(), n.c.key.view(), n.c.value.view(), n.c.visibility(),
                          n.c.options, out.view(), sums, {}, *pool);
  AttentionBackward(n.c.query.view(), n.c.key.view(), n.c.value.view(), out.view(), sums,
                    n.c.grad_out.view(), n.c.visibility(), n.c.options, grad_query.view(),
                    grad_key.view(), grad_value.view(), *pool);
  const int64_t plain = Scratch::HighWaterBytes();
  // Beside scratch: candidate_out and log_sum_exp in place of log_sum_exp.
  const auto extra_floats = nested / 4 + 8 * kTokens * 4 * (32 + 1) - plain / 4 - 8 * kTokens;
  EXPECT_LE(extra_floats, 8 * kTokens * 4 * (32 + 2));
}

TEST_F(NestedAttentionTest, RefusesWhatMakesNoSense) {
  const NestedCase good(AttentionCase({1, 2, 1, 20, 20, 8}, {1, 1}), {3, 9});
  const auto refuses = [&](const NestedCase& n, const char* message) {
    EXPECT_THAT([&] { NestedResult(n, serial_); }, ThrowsMessage<Error>(HasSubstr(message)));
  };
  NestedCase bad = good;
  bad.windows = {9, 9};
  refuses(bad, "windows[1] is 9, after 9: candidates must ascend, each wider than the one before");
  bad = good;
  bad.windows = {0, 9};
  refuses(bad, "windows[0] is 0: a window counts the query's own key, so it is at least 1");
  bad = good;
  bad.selection.pop_back();
  refuses(bad, "selection has 3 entries: expected one per query head and candidate, 2 * 2");
  bad = good;
  bad.selection[2] = -0.5F;
  refuses(bad, "selection[1][0] is -0.5: expected a finite weight of 0 or more");
  bad = good;
  bad.selection[1] = std::numeric_limits<float>::quiet_NaN();
  refuses(bad, "selection[0][1] is nan: expected a finite weight of 0 or more");
  bad = good;
  bad.live = {1, 1, 0, 0};
  refuses(bad, "live has no candidate for head 1: expected at least one per head");
  bad = good;
  bad.live = {1};
  refuses(bad, "live has 1 entries: expected one per query head and candidate, 2 * 2, or none");
  bad = good;
  bad.windows = {};
  bad.selection = {};
  refuses(bad, "windows is empty: expected at least one candidate");
}

}  // namespace
}  // namespace aah
