#ifndef AAH_HIERARCHY_H_
#define AAH_HIERARCHY_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "aah/grouping.h"
#include "aah/head_features.h"

namespace aah {

// What a group's features are made of: its members' mean, or the mean plus the named offset (per
// feature; population standard deviation and variance; the distance to the mean of all items).
enum class GroupAggregate { kMean, kMeanStd, kMeanVar, kMeanGlobalOffset };

// By name: mean, mean_std, mean_var, mean_global_offset. Throws aah::Error with the nearest name.
GroupAggregate ParseGroupAggregate(std::string_view name);

struct HierarchyLevel {
  Groups groups;                     // of heads at level 0, of the groups below at the others
  std::vector<FeatureRow> features;  // [groups]
  std::vector<int32_t> parent;       // [groups] group of the level above; empty at the top
};

// Levels from the finest (heads in groups) to the coarsest; at least one.
struct Hierarchy {
  std::vector<HierarchyLevel> levels;
  bool collapsed = false;  // growth stopped because a level fell into a single group

  std::vector<int32_t> GroupsPerLevel() const;
  // The head's group at each level, finest first.
  std::vector<int32_t> Path(int32_t head) const;
};

struct HierarchyOptions {
  double sim_threshold = 0.72;    // level 0, cosine
  double super_threshold = 0.76;  // levels above
  SimilarityMetric upper_metric = SimilarityMetric::kCosineNormDifference;
  double upper_l2_threshold = 0;  // takes super_threshold's place with the l2 metric
  double norm_difference_scale = 16;
  double churn_penalty = 0.02;
  int32_t min_group_size = 3;
  int32_t max_depth = 4;  // levels in all, at least 1
  GroupAggregate aggregate = GroupAggregate::kMean;
};

// One row per group: `rows` of its members, aggregated.
std::vector<FeatureRow> AggregateFeatures(const Groups& groups, std::span<const FeatureRow> rows,
                                          GroupAggregate aggregate);

// Clusters heads into level 0 (a single group is split in two), then level on level, until
// max_depth or until a level collapses into one group, which is not kept. `previous` is the group
// of each head in the last grouping, for the churn bonus; empty: none.
Hierarchy BuildHierarchy(std::span<const FeatureRow> heads, const HierarchyOptions& options,
                         std::span<const int32_t> previous);

// The same above a level 0 that is given, with its features.
Hierarchy BuildHierarchyAbove(Groups groups, std::vector<FeatureRow> features,
                              const HierarchyOptions& options);

// Every level above the given one has each group as its own single child, max_depth levels in all.
Hierarchy PassThroughHierarchy(Groups groups, std::vector<FeatureRow> features, int32_t max_depth);

}  // namespace aah

#endif  // AAH_HIERARCHY_H_
