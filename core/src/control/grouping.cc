#include "aah/grouping.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "aah/error.h"
#include "control/named_choice.h"

namespace aah {
namespace {

using Row = std::array<double, kFeatureCount>;

// Below this, norms count as this: rows of zeros have no direction.
constexpr double kTinyNorm = 1e-6;
// Two dot products nearer than this are a tie in a forced split.
constexpr double kTie = 1e-8;

double Dot(const Row& a, const Row& b) {
  double sum = 0;
  for (size_t i = 0; i < kFeatureCount; ++i) sum += a[i] * b[i];
  return sum;
}

double Norm(const Row& a) { return std::sqrt(Dot(a, a)); }

double Distance(const Row& a, const Row& b) {
  double sum = 0;
  for (size_t i = 0; i < kFeatureCount; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

Row Normalised(Row row) {
  const double norm = std::max(Norm(row), kTinyNorm);
  for (double& x : row) x /= norm;
  return row;
}

Row Mean(std::span<const Row> rows, std::span<const int32_t> members) {
  Row mean = {};
  for (const int32_t member : members) {
    for (size_t i = 0; i < kFeatureCount; ++i) mean[i] += rows[static_cast<size_t>(member)][i];
  }
  for (double& x : mean) x /= static_cast<double>(members.size());
  return mean;
}

// The rows as the metric sees them, and what it says of two of them.
class Scores {
 public:
  Scores(std::span<const FeatureRow> rows, const ClusteringOptions& options)
      : metric_(options.metric), norm_scale_(options.norm_difference_scale) {
    for (const FeatureRow& row : rows) {
      Row& raw = raw_.emplace_back();
      std::copy(row.begin(), row.end(), raw.begin());
    }
    Row center = {};
    if (metric_ == SimilarityMetric::kCenteredCosine) {
      for (const Row& row : raw_) {
        for (size_t i = 0; i < kFeatureCount; ++i) {
          center[i] += row[i] / static_cast<double>(raw_.size());
        }
      }
    }
    for (Row row : raw_) {
      for (size_t i = 0; i < kFeatureCount; ++i) row[i] -= center[i];
      score_.push_back(metric_ == SimilarityMetric::kL2 ? row : Normalised(row));
    }
  }

  int32_t size() const { return static_cast<int32_t>(raw_.size()); }
  std::span<const Row> rows() const { return score_; }
  const Row& row(int32_t item) const { return score_[static_cast<size_t>(item)]; }
  double norm(int32_t item) const { return Norm(raw_[static_cast<size_t>(item)]); }

  Row Centroid(std::span<const int32_t> members) const {
    const Row mean = Mean(score_, members);
    return metric_ == SimilarityMetric::kL2 ? mean : Normalised(mean);
  }
  double CentroidNorm(std::span<const int32_t> members) const { return Norm(Mean(raw_, members)); }

  // Of two score rows whose raw rows have these norms.
  double Similarity(const Row& a, double norm_a, const Row& b, double norm_b) const {
    if (metric_ == SimilarityMetric::kL2) return -Distance(a, b);
    double similarity = Dot(a, b);
    if (metric_ == SimilarityMetric::kCosineNormDifference) {
      const double larger = std::max({norm_a, norm_b, kTinyNorm});
      similarity -= norm_scale_ * std::fabs(norm_a - norm_b) / larger;
    }
    return similarity;
  }
  double Similarity(int32_t a, int32_t b) const {
    return Similarity(row(a), norm(a), row(b), norm(b));
  }

 private:
  SimilarityMetric metric_;
  double norm_scale_;
  std::vector<Row> raw_;
  std::vector<Row> score_;
};

void Summarise(const Scores& scores, Grouping& grouping) {
  double sum = 0;
  double squares = 0;
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  const int32_t n = scores.size();
  for (int32_t a = 0; a < n; ++a) {
    for (int32_t b = 0; b < n; ++b) {
      if (a == b) continue;
      const double similarity = scores.Similarity(a, b);
      sum += similarity;
      squares += similarity * similarity;
      least = std::min(least, similarity);
      most = std::max(most, similarity);
    }
  }
  const double pairs = static_cast<double>(n) * (n - 1);
  grouping.similarity_mean = sum / pairs;
  const double variance = squares / pairs - grouping.similarity_mean * grouping.similarity_mean;
  grouping.similarity_std = std::sqrt(std::max(variance, 0.0));
  grouping.similarity_min = least;
  grouping.similarity_max = most;
}

Groups AssignToCentroids(const Scores& scores, double threshold) {
  struct Centroid {
    Row row;
    double norm = 0;
  };
  Groups groups;
  std::vector<Centroid> centroids;
  for (int32_t item = 0; item < scores.size(); ++item) {
    double best = -std::numeric_limits<double>::infinity();
    size_t nearest = 0;
    for (size_t group = 0; group < groups.size(); ++group) {
      const double similarity = scores.Similarity(centroids[group].row, centroids[group].norm,
                                                  scores.row(item), scores.norm(item));
      if (similarity > best) {
        best = similarity;
        nearest = group;
      }
    }
    if (best >= threshold) {
      groups[nearest].push_back(item);
      centroids[nearest] = {scores.Centroid(groups[nearest]), scores.CentroidNorm(groups[nearest])};
    } else {
      groups.push_back({item});
      centroids.push_back({scores.row(item), scores.norm(item)});
    }
  }
  return groups;
}

// Two groups around the two items least alike.
Groups SplitInTwo(const Scores& scores, const ClusteringOptions& options, double& anchor) {
  const int32_t n = scores.size();
  const auto similarity = [&](int32_t a, int32_t b) {
    const double plain = scores.Similarity(a, b);
    if (options.metric != SimilarityMetric::kCosine || options.previous.empty() ||
        options.churn_bonus <= 0 ||
        options.previous[static_cast<size_t>(a)] != options.previous[static_cast<size_t>(b)]) {
      return plain;
    }
    return std::min(plain + options.churn_bonus, 1.0);
  };
  int32_t first = 0;
  int32_t second = 1;
  anchor = std::numeric_limits<double>::infinity();
  for (int32_t a = 0; a < n; ++a) {
    for (int32_t b = 0; b < n; ++b) {
      if (a == b || similarity(a, b) >= anchor) continue;
      anchor = similarity(a, b);
      first = a;
      second = b;
    }
  }
  Groups groups = {{first}, {second}};
  for (int32_t item = 0; item < n; ++item) {
    if (item == first || item == second) continue;
    const double lead =
        Dot(scores.row(item), scores.row(first)) - Dot(scores.row(item), scores.row(second));
    const bool to_first = std::fabs(lead) > kTie ? lead > 0 : groups[0].size() <= groups[1].size();
    groups[to_first ? 0 : 1].push_back(item);
  }
  return groups;
}

// Merges each small group, in order, into the most similar other one, where that is similar enough
// and two groups remain. A group emptied on the way still stands where it was: one that is nearest
// to it takes its place.
void MergeSmallGroups(const Scores& scores, const ClusteringOptions& options, Groups& groups) {
  const auto small = [&](const std::vector<int32_t>& group) {
    return group.size() < static_cast<size_t>(options.min_group_size);
  };
  std::vector<Row> means;
  std::vector<size_t> candidates;
  for (size_t group = 0; group < groups.size(); ++group) {
    means.push_back(Mean(scores.rows(), groups[group]));
    if (small(groups[group])) candidates.push_back(group);
  }
  auto remaining = static_cast<int64_t>(groups.size());
  for (const size_t group : candidates) {
    if (!small(groups[group]) || remaining <= 2) continue;
    double best = -1;
    size_t nearest = group;
    for (size_t other = 0; other < groups.size(); ++other) {
      const double similarity = Dot(means[other], means[group]);
      if (other != group && similarity > best) {
        best = similarity;
        nearest = other;
      }
    }
    if (nearest == group || best < options.threshold) continue;
    std::vector<int32_t>& target = groups[nearest];
    if (!target.empty()) --remaining;
    target.insert(target.end(), groups[group].begin(), groups[group].end());
    groups[group].clear();
    means[nearest] = Mean(scores.rows(), target);
  }
  std::erase_if(groups, [](const std::vector<int32_t>& group) { return group.empty(); });
}

void CheckInput(std::span<const FeatureRow> rows, const ClusteringOptions& options) {
  AAH_CHECK(!rows.empty(), "expected at least 1 item to group, got none");
  AAH_CHECK(options.previous.empty() || options.previous.size() == rows.size(), "expected the ",
            "previous groups of ", rows.size(), " items, got ", options.previous.size());
  for (size_t row = 0; row < rows.size(); ++row) {
    for (size_t i = 0; i < kFeatureCount; ++i) {
      AAH_CHECK(std::isfinite(rows[row][i]), "feature ", FeatureNames()[i], " of item ", row,
                " is ", rows[row][i], ": only finite numbers can be grouped");
    }
  }
}

}  // namespace

SimilarityMetric ParseSimilarityMetric(std::string_view name) {
  static constexpr std::array<std::pair<const char*, SimilarityMetric>, 4> kTable = {{
      {"cosine", SimilarityMetric::kCosine},
      {"centered_cosine", SimilarityMetric::kCenteredCosine},
      {"l2", SimilarityMetric::kL2},
      {"cosine_normdiff", SimilarityMetric::kCosineNormDifference},
  }};
  return ParseChoice("similarity metric", name, kTable);
}

Grouping Cluster(std::span<const FeatureRow> rows, const ClusteringOptions& options) {
  CheckInput(rows, options);
  Grouping grouping;
  if (rows.size() == 1) {
    grouping.groups = {{0}};
    grouping.origin = GroupingOrigin::kSingleItem;
    return grouping;
  }
  const Scores scores(rows, options);
  Summarise(scores, grouping);
  grouping.groups = AssignToCentroids(scores, options.threshold);
  if (grouping.groups.size() > 1) {
    grouping.groups_before_merge = static_cast<int32_t>(grouping.groups.size());
    MergeSmallGroups(scores, options, grouping.groups);
  } else if (options.split_single_group) {
    grouping.origin = GroupingOrigin::kForcedBipartition;
    grouping.groups = SplitInTwo(scores, options, grouping.anchor_similarity.emplace());
    grouping.groups_before_merge = 2;
  } else {
    grouping.origin = GroupingOrigin::kCollapsed;
  }
  return grouping;
}

std::vector<int32_t> GroupOfItems(const Groups& groups, int32_t items) {
  std::vector<int32_t> group_of(static_cast<size_t>(items), -1);
  for (size_t group = 0; group < groups.size(); ++group) {
    for (const int32_t item : groups[group]) {
      group_of[static_cast<size_t>(item)] = static_cast<int32_t>(group);
    }
  }
  return group_of;
}

Groups GroupsFromItems(std::span<const int32_t> group_of_item) {
  Groups groups;
  for (size_t item = 0; item < group_of_item.size(); ++item) {
    const auto group = static_cast<size_t>(group_of_item[item]);
    if (group >= groups.size()) groups.resize(group + 1);
    groups[group].push_back(static_cast<int32_t>(item));
  }
  return groups;
}

}  // namespace aah
