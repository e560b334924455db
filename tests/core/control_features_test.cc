#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "aah/error.h"
#include "aah/head_features.h"
#include "aah/parallel.h"
#include "aah/random.h"
#include "aah/tensor_view.h"

namespace aah {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// q, k, v of one layer as slices of one buffer [batch][tokens][(heads + 2 kv_heads) * head_dim],
// the way a fused projection leaves them.
struct Projections {
  Projections(uint64_t seed, int64_t batch_size, int64_t token_count, int32_t head_count,
              int32_t kv_head_count, int64_t dim)
      : batch(batch_size),
        tokens(token_count),
        heads(head_count),
        kv_heads(kv_head_count),
        head_dim(dim) {
    Random random(seed);
    buffer.resize(static_cast<size_t>(batch * tokens * width()));
    for (float& x : buffer) x = static_cast<float>(4 * random.Uniform() - 1.5);
  }

  int64_t width() const { return (heads + 2 * kv_heads) * head_dim; }
  ConstView4<float> View(int64_t first_head, int64_t count) const {
    return {buffer.data() + first_head * head_dim,
            {batch, count, tokens, head_dim},
            {tokens * width(), head_dim, width(), 1}};
  }
  ConstView4<float> query() const { return View(0, heads); }
  ConstView4<float> key() const { return View(heads, kv_heads); }
  ConstView4<float> value() const { return View(heads + kv_heads, kv_heads); }

  ProjectionSums Sums(Parallel& parallel) const {
    ProjectionSums sums(heads, kv_heads);
    sums.AddBatch(query(), key(), value(), parallel);
    return sums;
  }
  ProjectionSums Sums() const {
    SerialParallel serial;
    return Sums(serial);
  }

  int64_t batch;
  int64_t tokens;
  int32_t heads;
  int32_t kv_heads;
  int64_t head_dim;
  std::vector<float> buffer;
};

void AppendHead(ConstView4<float> view, int64_t head, std::vector<double>& numbers) {
  for (int64_t b = 0; b < view.shape[0]; ++b) {
    for (int64_t t = 0; t < view.shape[2]; ++t) {
      for (int64_t d = 0; d < view.shape[3]; ++d) numbers.push_back(*view.At(b, head, t, d));
    }
  }
}

// Mean absolute value and Bessel's standard deviation as the formulas read, in two passes.
std::array<double, 2> MeanAndDeviation(const std::vector<double>& numbers) {
  const auto n = static_cast<double>(numbers.size());
  double absolute = 0;
  double mean = 0;
  double squares = 0;
  for (const double x : numbers) absolute += std::fabs(x) / n;
  for (const double x : numbers) mean += x / n;
  for (const double x : numbers) squares += (x - mean) * (x - mean);
  return {absolute, numbers.size() < 2 ? 0 : std::sqrt(squares / (n - 1))};
}

std::array<double, kFeatureCount> SimpleFeatures(const Projections& p,
                                                 const std::vector<float>& statistics,
                                                 const std::vector<int32_t>& group) {
  std::array<std::vector<double>, 3> numbers;
  std::array<double, kFeatureCount> features = {};
  for (const int32_t head : group) {
    const int32_t kv_head = head / (p.heads / p.kv_heads);
    AppendHead(p.query(), head, numbers[0]);
    AppendHead(p.key(), kv_head, numbers[1]);
    AppendHead(p.value(), kv_head, numbers[2]);
    for (size_t i = 0; i < 3; ++i) {
      features[6 + i] +=
          double{statistics[i * static_cast<size_t>(p.heads) + static_cast<size_t>(head)]} /
          static_cast<double>(group.size());
    }
  }
  for (size_t i = 0; i < 3; ++i) {
    const auto [mean, deviation] = MeanAndDeviation(numbers[i]);
    features[2 * i] = mean;
    features[2 * i + 1] = deviation;
  }
  return features;
}

std::vector<float> DrawStatistics(Random& random, int32_t heads) {
  std::vector<float> statistics(3 * static_cast<size_t>(heads));
  for (float& x : statistics) x = static_cast<float>(random.Uniform());
  return statistics;
}

TEST(HeadFeatures, AgreeWithTheFormulasOnDrawnShapes) {
  Random random(1);
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const auto kv_heads = static_cast<int32_t>(1 + random.Below(4));
    const auto heads = kv_heads * static_cast<int32_t>(1 + random.Below(3));
    const int64_t tokens = seed == 0 ? 1 : 1 + static_cast<int64_t>(random.Below(40));
    const Projections p(seed, 1 + static_cast<int64_t>(random.Below(3)), tokens, heads, kv_heads,
                        seed == 0 ? 1 : 1 + static_cast<int64_t>(random.Below(20)));
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::vector<float> statistics = DrawStatistics(random, heads);
    Groups groups = SingletonGroups(heads);
    std::vector<int32_t> all;
    for (int32_t head = heads; head-- > 0;) all.push_back(head);
    groups.push_back(all);
    const std::vector<FeatureRow> rows = GroupFeatures(p.Sums(), statistics, groups);
    ASSERT_EQ(rows.size(), groups.size());
    for (size_t group = 0; group < groups.size(); ++group) {
      const auto expected = SimpleFeatures(p, statistics, groups[group]);
      for (size_t i = 0; i < kFeatureCount; ++i) {
        // One rounding to float; sums of double are far below it.
        EXPECT_NEAR(rows[group][i], expected[i], 1e-7 * (1 + expected[i])) << FeatureNames()[i];
      }
    }
  }
}

TEST(HeadFeatures, AreTheSameToTheBitForAnyNumberOfWorkers) {
  const Projections p(3, 2, 2500, 4, 2, 24);
  const ProjectionSums expected = p.Sums();
  for (const int workers : {1, 2, 3, 7}) {
    const auto pool = MakeThreadPool(workers);
    const ProjectionSums sums = p.Sums(*pool);
    EXPECT_THAT(sums.values(), testing::ElementsAreArray(expected.values()));
  }
}

TEST(HeadFeatures, SumsOfMicroBatchesAreThoseOfTheWholeBatch) {
  const Projections whole(5, 4, 30, 3, 1, 8);
  Projections part = whole;
  part.batch = 2;
  ProjectionSums sums = part.Sums();
  part.buffer.erase(part.buffer.begin(), part.buffer.begin() + 2 * part.tokens * part.width());
  sums.Add(part.Sums());
  const std::vector<FeatureRow> rows = HeadFeatures(sums, {});
  const std::vector<FeatureRow> expected = HeadFeatures(whole.Sums(), {});
  for (size_t head = 0; head < rows.size(); ++head) {
    for (size_t i = 0; i < kFeatureCount; ++i) {
      EXPECT_FLOAT_EQ(rows[head][i], expected[head][i]) << FeatureNames()[i];
    }
  }
}

TEST(HeadFeatures, AConstantHeadFarFromZeroHasNoDeviation) {
  Projections p(1, 1, 64, 1, 1, 8);
  std::fill(p.buffer.begin(), p.buffer.end(), 1000.5F);
  const FeatureRow row = HeadFeatures(p.Sums(), {})[0];
  EXPECT_EQ(row[0], 1000.5F);
  EXPECT_NEAR(row[1], 0, 1e-4);
  EXPECT_EQ(row[6], 0);
}

TEST(HeadFeatures, RefusesWhatIsNotFinite) {
  Projections p(1, 1, 4, 2, 2, 8);
  p.buffer[8] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT([&] { HeadFeatures(p.Sums(), {}); },
              ThrowsMessage<Error>(HasSubstr("feature mean|q| of head 1 is nan")));
}

TEST(HeadFeatures, RefusesShapesThatDisagree) {
  const Projections p(1, 1, 4, 4, 2, 8);
  SerialParallel serial;
  ProjectionSums sums(4, 4);
  EXPECT_THAT([&] { sums.AddBatch(p.query(), p.key(), p.value(), serial); },
              ThrowsMessage<Error>(HasSubstr("expected 4 heads and 4 kv_heads, got 4 and 2")));
  EXPECT_THROW(ProjectionSums(4, 3), Error);
  EXPECT_THROW(sums.Add(p.Sums()), Error);
  EXPECT_THROW(GroupFeatures(p.Sums(), std::vector<float>(5), SingletonGroups(4)), Error);
}

TEST(StatisticSums, AverageOverPasses) {
  StatisticSums sums(2);
  EXPECT_THAT(sums.Means(), testing::Each(0.0F));
  sums.AddPass(std::vector<float>{1, 2}, std::vector<float>{3, 4}, std::vector<float>{5, 6});
  sums.AddPass(std::vector<float>{3, 2}, std::vector<float>{3, 0}, std::vector<float>{5, 8});
  EXPECT_THAT(sums.Means(), testing::ElementsAre(2, 2, 3, 2, 5, 7));
  EXPECT_THROW(sums.AddPass(std::vector<float>{1}, {}, {}), Error);
}

TEST(AverageFeatures, StartsAtTheFirstRowsAndMovesByOneMinusAlpha) {
  std::vector<FeatureRow> average;
  FeatureRow row = {};
  row[3] = 2;
  AverageFeatures(0.75, std::vector<FeatureRow>{row}, average);
  EXPECT_EQ(average[0][3], 2);
  row[3] = 6;
  AverageFeatures(0.75, std::vector<FeatureRow>{row}, average);
  EXPECT_EQ(average[0][3], 3);
}

}  // namespace
}  // namespace aah
