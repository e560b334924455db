#ifndef AAH_GROUPING_H_
#define AAH_GROUPING_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aah/head_features.h"

namespace aah {

// How alike two feature rows are (METHOD.md section 4).
enum class SimilarityMetric {
  kCosine,                // of the rows
  kCenteredCosine,        // of the rows minus their mean
  kL2,                    // minus the distance
  kCosineNormDifference,  // cosine minus scale * | |a| - |b| | / max(|a|, |b|)
};

// By name: cosine, centered_cosine, l2, cosine_normdiff. Throws aah::Error with the nearest name.
SimilarityMetric ParseSimilarityMetric(std::string_view name);

struct ClusteringOptions {
  SimilarityMetric metric = SimilarityMetric::kCosine;
  double threshold = 0.72;            // an item joins a group at least this similar
  int32_t min_group_size = 3;         // smaller groups are merged where they can be; 1: never
  bool split_single_group = false;    // force two groups where only one came out
  double norm_difference_scale = 16;  // of kCosineNormDifference
  double churn_bonus = 0;             // cosine only: what a pair that was together gains
  std::span<const int32_t> previous;  // [items] the group each was in; empty: not known
};

enum class GroupingOrigin { kSingleItem, kNatural, kCollapsed, kForcedBipartition };

struct Grouping {
  Groups groups;
  GroupingOrigin origin = GroupingOrigin::kNatural;
  int32_t groups_before_merge = 1;
  // Over all ordered pairs of different items, without churn bonus; 1, 0, 1, 1 for a single item.
  double similarity_mean = 1;
  double similarity_std = 0;
  double similarity_min = 1;
  double similarity_max = 1;
  std::optional<double> anchor_similarity;  // of a forced bipartition, bonus included
};

// Groups `rows` by one pass in order: an item joins the group whose centroid is most similar, where
// that reaches the threshold (ties: the first), else opens a group of its own. Then, where asked,
// one group is split in two around the least similar pair, and small groups are merged.
// Throws aah::Error for no rows, a number that is not finite, or `previous` of another length.
// Source: AAH, arXiv:2608.19203; METHOD.md section 4. O(items^2).
Grouping Cluster(std::span<const FeatureRow> rows, const ClusteringOptions& options);

// The group of each of `items` items. REQUIRES: `groups` partitions 0..items-1.
std::vector<int32_t> GroupOfItems(const Groups& groups, int32_t items);

// The inverse, members ascending. REQUIRES: group numbers 0..max, none left out.
Groups GroupsFromItems(std::span<const int32_t> group_of_item);

}  // namespace aah

#endif  // AAH_GROUPING_H_
