// Clustering and hierarchies against models so simple that they can be read beside METHOD
// section 4.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "aah/error.h"
#include "aah/grouping.h"
#include "aah/hierarchy.h"
#include "aah/random.h"

namespace aah {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using Vector = std::vector<double>;

constexpr std::array<SimilarityMetric, 4> kMetrics = {
    SimilarityMetric::kCosine, SimilarityMetric::kCenteredCosine, SimilarityMetric::kL2,
    SimilarityMetric::kCosineNormDifference};

double Dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Vector Unit(Vector v) {
  const double norm = std::max(std::sqrt(Dot(v, v)), 1e-6);
  for (double& x : v) x /= norm;
  return v;
}

Vector Minus(Vector a, const Vector& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}

Vector MeanOf(const std::vector<Vector>& rows, const std::vector<int32_t>& members) {
  Vector mean(kFeatureCount, 0.0);
  for (const int32_t member : members) {
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += rows[static_cast<size_t>(member)][i];
  }
  for (double& x : mean) x /= static_cast<double>(members.size());
  return mean;
}

// Everything recomputed from the definition whenever it is needed.
class SimpleClustering {
 public:
  SimpleClustering(const std::vector<FeatureRow>& rows, const ClusteringOptions& options)
      : options_(options) {
    std::vector<int32_t> all;
    for (const FeatureRow& row : rows) {
      all.push_back(static_cast<int32_t>(raw_.size()));
      raw_.emplace_back(row.begin(), row.end());
    }
    const Vector center = MeanOf(raw_, all);
    for (const Vector& row : raw_) {
      switch (options.metric) {
        case SimilarityMetric::kL2:
          score_.push_back(row);
          break;
        case SimilarityMetric::kCenteredCosine:
          score_.push_back(Unit(Minus(row, center)));
          break;
        default:
          score_.push_back(Unit(row));
      }
    }
  }

  Groups Run() const {
    Groups groups;
    for (int32_t item = 0; item < static_cast<int32_t>(raw_.size()); ++item) {
      std::vector<double> similarity;
      for (const auto& group : groups) similarity.push_back(Similarity(group, {item}));
      const auto best = std::max_element(similarity.begin(), similarity.end());
      if (best != similarity.end() && *best >= options_.threshold) {
        groups[static_cast<size_t>(best - similarity.begin())].push_back(item);
      } else {
        groups.push_back({item});
      }
    }
    if (raw_.size() >= 2 && groups.size() == 1 && options_.split_single_group) return Split();
    return Merge(groups);
  }

 private:
  double Similarity(const std::vector<int32_t>& a, const std::vector<int32_t>& b) const {
    Vector x = MeanOf(score_, a);
    Vector y = MeanOf(score_, b);
    if (options_.metric == SimilarityMetric::kL2) {
      return -std::sqrt(Dot(Minus(x, y), Minus(x, y)));
    }
    // A single item's score row is its own centroid.
    if (a.size() > 1) x = Unit(x);
    if (b.size() > 1) y = Unit(y);
    const double cosine = Dot(x, y);
    if (options_.metric != SimilarityMetric::kCosineNormDifference) return cosine;
    const double p = std::sqrt(Dot(MeanOf(raw_, a), MeanOf(raw_, a)));
    const double q = std::sqrt(Dot(MeanOf(raw_, b), MeanOf(raw_, b)));
    return cosine - options_.norm_difference_scale * std::fabs(p - q) / std::max({p, q, 1e-6});
  }

  Groups Split() const {
    const auto n = static_cast<int32_t>(raw_.size());
    std::array<int32_t, 2> anchors = {0, 1};
    double least = std::numeric_limits<double>::infinity();
    for (int32_t a = 0; a < n; ++a) {
      for (int32_t b = a + 1; b < n; ++b) {
        double similarity = Similarity({a}, {b});
        if (options_.metric == SimilarityMetric::kCosine && !options_.previous.empty() &&
            options_.previous[static_cast<size_t>(a)] ==
                options_.previous[static_cast<size_t>(b)]) {
          similarity = std::min(1.0, similarity + options_.churn_bonus);
        }
        if (similarity >= least) continue;
        least = similarity;
        anchors = {a, b};
      }
    }
    Groups groups = {{anchors[0]}, {anchors[1]}};
    for (int32_t item = 0; item < n; ++item) {
      if (item == anchors[0] || item == anchors[1]) continue;
      const Vector& row = score_[static_cast<size_t>(item)];
      const double lead = Dot(row, score_[static_cast<size_t>(anchors[0])]) -
                          Dot(row, score_[static_cast<size_t>(anchors[1])]);
      bool first = lead > 0;
      if (std::fabs(lead) <= 1e-8) first = groups[0].size() <= groups[1].size();
      groups[first ? 0 : 1].push_back(item);
    }
    return groups;
  }

  Groups Merge(Groups groups) const {
    const auto minimum = static_cast<size_t>(options_.min_group_size);
    const Groups before = groups;
    std::vector<Vector> means;
    for (const auto& group : groups) means.push_back(MeanOf(score_, group));
    for (size_t g = 0; g < groups.size(); ++g) {
      if (before[g].size() >= minimum || groups[g].size() >= minimum) continue;
      size_t nearest = g;
      for (size_t other = 0; other < groups.size(); ++other) {
        if (other == g) continue;
        if (nearest == g || Dot(means[other], means[g]) > Dot(means[nearest], means[g])) {
          nearest = other;
        }
      }
      const auto filled = std::count_if(groups.begin(), groups.end(),
                                        [](const auto& group) { return !group.empty(); });
      if (nearest == g || filled <= 2) continue;
      const double similarity = Dot(means[nearest], means[g]);
      if (similarity <= -1 || similarity < options_.threshold) continue;
      groups[nearest].insert(groups[nearest].end(), groups[g].begin(), groups[g].end());
      groups[g].clear();
      means[nearest] = MeanOf(score_, groups[nearest]);
    }
    std::erase_if(groups, [](const auto& group) { return group.empty(); });
    return groups;
  }

  ClusteringOptions options_;
  std::vector<Vector> raw_;
  std::vector<Vector> score_;
};

// Rows of several kinds: scattered, positive, near copies of a few, equal, zero.
std::vector<FeatureRow> DrawRows(Random& random, size_t n) {
  const uint64_t kind = random.Below(5);
  std::vector<FeatureRow> rows(n);
  std::array<FeatureRow, 3> centers = {};
  for (FeatureRow& center : centers) {
    for (float& x : center) x = static_cast<float>(2 * random.Uniform() - 1);
  }
  for (size_t row = 0; row < n; ++row) {
    for (size_t i = 0; i < kFeatureCount; ++i) {
      const auto x = static_cast<float>(random.Uniform());
      const std::array<float, 5> choices = {2 * x - 1, x, centers[row % 3][i] + 0.1F * x,
                                            centers[0][i], 0};
      rows[row][i] = choices[kind];
    }
  }
  return rows;
}

TEST(Cluster, AgreesWithTheSimpleModelForEveryMetric) {
  Random random(11);
  std::array<int, 4> origins = {};
  for (int repeat = 0; repeat < 3000; ++repeat) {
    const std::vector<FeatureRow> rows = DrawRows(random, 1 + random.Below(16));
    ClusteringOptions options;
    options.metric = kMetrics[random.Below(4)];
    options.threshold = std::array{-0.5, 0.2, 0.72, 0.97}[random.Below(4)];
    options.min_group_size = 1 + static_cast<int32_t>(random.Below(4));
    options.split_single_group = random.Below(2) == 0;
    std::vector<int32_t> previous;
    if (random.Below(2) == 0) {
      options.churn_bonus = 0.02;
      for (size_t i = 0; i < rows.size(); ++i) {
        previous.push_back(static_cast<int32_t>(random.Below(2)));
      }
      options.previous = previous;
    }
    SCOPED_TRACE("repeat " + std::to_string(repeat));
    const Grouping grouping = Cluster(rows, options);
    ASSERT_EQ(grouping.groups, SimpleClustering(rows, options).Run());
    ++origins[static_cast<size_t>(grouping.origin)];
  }
  for (const int count : origins) EXPECT_GT(count, 50);
}

TEST(Cluster, OneItemIsOneGroupThatIsNeverSplit) {
  ClusteringOptions options;
  options.split_single_group = true;
  const Grouping grouping = Cluster(std::vector<FeatureRow>(1), options);
  EXPECT_EQ(grouping.groups, (Groups{{0}}));
  EXPECT_EQ(grouping.origin, GroupingOrigin::kSingleItem);
}

TEST(Cluster, TwoEqualItemsAreSplitOnlyWhereAsked) {
  FeatureRow row;
  row.fill(0.5F);
  const std::vector<FeatureRow> rows = {row, row};
  ClusteringOptions options;
  EXPECT_EQ(Cluster(rows, options).groups, (Groups{{0, 1}}));
  options.split_single_group = true;
  EXPECT_EQ(Cluster(rows, options).groups, (Groups{{0}, {1}}));
}

TEST(Cluster, ZeroRowsHaveNoDirectionAndStayApartUnderACosine) {
  const std::vector<FeatureRow> rows(3);
  ClusteringOptions options;
  options.min_group_size = 1;
  EXPECT_EQ(Cluster(rows, options).groups, (Groups{{0}, {1}, {2}}));
  options.metric = SimilarityMetric::kL2;
  options.threshold = 0;
  EXPECT_EQ(Cluster(rows, options).groups, (Groups{{0, 1, 2}}));
}

TEST(Cluster, RefusesWhatCannotBeGrouped) {
  std::vector<FeatureRow> rows(2);
  EXPECT_THROW(Cluster({}, {}), Error);
  const std::vector<int32_t> previous = {0};
  ClusteringOptions options;
  options.previous = previous;
  EXPECT_THROW(Cluster(rows, options), Error);
  rows[1][4] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT([&] { Cluster(rows, {}); },
              ThrowsMessage<Error>(HasSubstr("feature mean|v| of item 1 is nan")));
  rows[1][4] = std::numeric_limits<float>::infinity();
  EXPECT_THROW(Cluster(rows, {}), Error);
}

TEST(Groups, FromItemsAndBack) {
  const Groups groups = {{0, 3}, {1}, {2, 4}};
  EXPECT_EQ(GroupOfItems(groups, 5), (std::vector<int32_t>{0, 1, 2, 0, 2}));
  EXPECT_EQ(GroupsFromItems(GroupOfItems(groups, 5)), groups);
}

double SimpleAggregate(const std::vector<int32_t>& group, const std::vector<FeatureRow>& rows,
                       size_t i, GroupAggregate aggregate) {
  Vector members;
  for (const int32_t item : group) members.push_back(double{rows[static_cast<size_t>(item)][i]});
  const auto n = static_cast<double>(members.size());
  double mean = 0;
  for (const double x : members) mean += x / n;
  double variance = 0;
  for (const double x : members) variance += (x - mean) * (x - mean) / n;
  double all = 0;
  for (const FeatureRow& row : rows) all += double{row[i]} / static_cast<double>(rows.size());
  switch (aggregate) {
    case GroupAggregate::kMean:
      return mean;
    case GroupAggregate::kMeanStd:
      return mean + std::sqrt(variance);
    case GroupAggregate::kMeanVar:
      return mean + variance;
    case GroupAggregate::kMeanGlobalOffset:
      return mean + mean - all;
  }
  return 0;
}

// The same levels from the simple clustering and aggregate.
void ExpectSimpleHierarchy(const Hierarchy& hierarchy, const std::vector<FeatureRow>& heads,
                           const HierarchyOptions& options) {
  std::vector<FeatureRow> below = heads;
  for (size_t level = 0; level <= hierarchy.levels.size(); ++level) {
    if (static_cast<int32_t>(level) == options.max_depth) break;
    if (level > 0 && below.size() == 1) break;
    ClusteringOptions clustering;
    clustering.metric = level == 0 ? SimilarityMetric::kCosine : options.upper_metric;
    clustering.threshold = options.super_threshold;
    if (level == 0) clustering.threshold = options.sim_threshold;
    if (clustering.metric == SimilarityMetric::kL2)
      clustering.threshold = options.upper_l2_threshold;
    clustering.min_group_size = options.min_group_size;
    clustering.split_single_group = level == 0;
    const Groups groups = SimpleClustering(below, clustering).Run();
    if (level == hierarchy.levels.size()) {
      EXPECT_EQ(groups.size(), 1U) << "a level is missing";
      EXPECT_TRUE(hierarchy.collapsed);
      break;
    }
    ASSERT_EQ(hierarchy.levels[level].groups, groups);
    if (level > 0) {
      EXPECT_EQ(hierarchy.levels[level - 1].parent,
                GroupOfItems(groups, static_cast<int32_t>(below.size())));
    }
    for (size_t group = 0; group < groups.size(); ++group) {
      for (size_t i = 0; i < kFeatureCount; ++i) {
        EXPECT_NEAR(hierarchy.levels[level].features[group][i],
                    SimpleAggregate(groups[group], below, i, options.aggregate), 1e-5);
      }
    }
    below = hierarchy.levels[level].features;
  }
}

TEST(Hierarchy, AgreesWithTheSimpleModelForEveryMetricAndAggregate) {
  Random random(21);
  int deep = 0;
  for (int repeat = 0; repeat < 600; ++repeat) {
    const std::vector<FeatureRow> heads = DrawRows(random, 1 + random.Below(12));
    HierarchyOptions options;
    options.upper_metric = kMetrics[random.Below(4)];
    options.upper_l2_threshold = -0.3;
    options.min_group_size = 1 + static_cast<int32_t>(random.Below(3));
    options.max_depth = 1 + static_cast<int32_t>(random.Below(4));
    options.aggregate =
        std::array{GroupAggregate::kMean, GroupAggregate::kMeanStd, GroupAggregate::kMeanVar,
                   GroupAggregate::kMeanGlobalOffset}[random.Below(4)];
    SCOPED_TRACE("repeat " + std::to_string(repeat));
    const Hierarchy hierarchy = BuildHierarchy(heads, options, {});
    ExpectSimpleHierarchy(hierarchy, heads, options);
    deep += static_cast<int>(hierarchy.levels.size() > 2);
    for (int32_t head = 0; head < static_cast<int32_t>(heads.size()); ++head) {
      const std::vector<int32_t> path = hierarchy.Path(head);
      ASSERT_EQ(path.size(), hierarchy.levels.size());
      for (size_t level = 0; level + 1 < path.size(); ++level) {
        EXPECT_EQ(path[level + 1],
                  hierarchy.levels[level].parent[static_cast<size_t>(path[level])]);
      }
    }
  }
  EXPECT_GT(deep, 50);
}

TEST(Hierarchy, PassThroughRepeatsTheGroupsAtEveryLevel) {
  std::vector<FeatureRow> features(2);
  features[1][0] = 3;
  const Hierarchy hierarchy = PassThroughHierarchy({{0, 2}, {1}}, features, 3);
  EXPECT_EQ(hierarchy.GroupsPerLevel(), (std::vector<int32_t>{2, 2, 2}));
  EXPECT_EQ(hierarchy.levels[2].groups, (Groups{{0}, {1}}));
  EXPECT_EQ(hierarchy.levels[1].parent, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(hierarchy.levels[2].features, features);
  EXPECT_EQ(hierarchy.Path(2), (std::vector<int32_t>{0, 0, 0}));
}

TEST(Names, AreParsedOrRefusedWithTheNearestOne) {
  EXPECT_EQ(ParseSimilarityMetric("cosine_normdiff"), SimilarityMetric::kCosineNormDifference);
  EXPECT_EQ(ParseGroupAggregate("mean_global_offset"), GroupAggregate::kMeanGlobalOffset);
  EXPECT_THAT([] { ParseSimilarityMetric("cosin"); },
              ThrowsMessage<Error>(HasSubstr("unknown similarity metric 'cosin' (did you mean "
                                             "'cosine'?)")));
}

}  // namespace
}  // namespace aah
