#include "aah/hierarchy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "control/named_choice.h"

namespace aah {
namespace {

void PushLevel(Hierarchy& hierarchy, Groups groups, std::vector<FeatureRow> features) {
  if (!hierarchy.levels.empty()) {
    HierarchyLevel& below = hierarchy.levels.back();
    below.parent = GroupOfItems(groups, static_cast<int32_t>(below.groups.size()));
  }
  hierarchy.levels.push_back({std::move(groups), std::move(features), {}});
}

}  // namespace

GroupAggregate ParseGroupAggregate(std::string_view name) {
  static constexpr std::array<std::pair<const char*, GroupAggregate>, 4> kTable = {{
      {"mean", GroupAggregate::kMean},
      {"mean_std", GroupAggregate::kMeanStd},
      {"mean_var", GroupAggregate::kMeanVar},
      {"mean_global_offset", GroupAggregate::kMeanGlobalOffset},
  }};
  return ParseChoice("group feature mode", name, kTable);
}

std::vector<int32_t> Hierarchy::GroupsPerLevel() const {
  std::vector<int32_t> counts;
  counts.reserve(levels.size());
  for (const HierarchyLevel& level : levels) {
    counts.push_back(static_cast<int32_t>(level.groups.size()));
  }
  return counts;
}

std::vector<int32_t> Hierarchy::Path(int32_t head) const {
  std::vector<int32_t> path;
  int32_t item = head;
  for (const HierarchyLevel& level : levels) {
    for (size_t group = 0; group < level.groups.size(); ++group) {
      const std::vector<int32_t>& members = level.groups[group];
      if (std::find(members.begin(), members.end(), item) == members.end()) continue;
      item = static_cast<int32_t>(group);
      break;
    }
    path.push_back(item);
  }
  return path;
}

std::vector<FeatureRow> AggregateFeatures(const Groups& groups, std::span<const FeatureRow> rows,
                                          GroupAggregate aggregate) {
  std::array<double, kFeatureCount> global = {};
  for (const FeatureRow& row : rows) {
    for (size_t i = 0; i < kFeatureCount; ++i) {
      global[i] += double{row[i]} / static_cast<double>(rows.size());
    }
  }
  std::vector<FeatureRow> result;
  result.reserve(groups.size());
  for (const std::vector<int32_t>& group : groups) {
    const auto members = static_cast<double>(group.size());
    FeatureRow& out = result.emplace_back();
    for (size_t i = 0; i < kFeatureCount; ++i) {
      double mean = 0;
      for (const int32_t item : group) mean += double{rows[static_cast<size_t>(item)][i]} / members;
      double variance = 0;
      for (const int32_t item : group) {
        const double offset = double{rows[static_cast<size_t>(item)][i]} - mean;
        variance += offset * offset / members;
      }
      double extra = 0;
      if (aggregate == GroupAggregate::kMeanStd) extra = std::sqrt(variance);
      if (aggregate == GroupAggregate::kMeanVar) extra = variance;
      if (aggregate == GroupAggregate::kMeanGlobalOffset) extra = mean - global[i];
      out[i] = static_cast<float>(mean + extra);
    }
  }
  return result;
}

Hierarchy BuildHierarchyAbove(Groups groups, std::vector<FeatureRow> features,
                              const HierarchyOptions& options) {
  Hierarchy hierarchy;
  PushLevel(hierarchy, std::move(groups), std::move(features));
  ClusteringOptions clustering;
  clustering.metric = options.upper_metric;
  clustering.threshold = options.upper_metric == SimilarityMetric::kL2 ? options.upper_l2_threshold
                                                                       : options.super_threshold;
  clustering.min_group_size = options.min_group_size;
  clustering.norm_difference_scale = options.norm_difference_scale;
  while (static_cast<int32_t>(hierarchy.levels.size()) < options.max_depth) {
    const HierarchyLevel& below = hierarchy.levels.back();
    Groups above = Cluster(below.features, clustering).groups;
    if (above.size() == 1) {
      hierarchy.collapsed = true;
      break;
    }
    std::vector<FeatureRow> aggregated =
        AggregateFeatures(above, below.features, options.aggregate);
    PushLevel(hierarchy, std::move(above), std::move(aggregated));
  }
  return hierarchy;
}

Hierarchy BuildHierarchy(std::span<const FeatureRow> heads, const HierarchyOptions& options,
                         std::span<const int32_t> previous) {
  ClusteringOptions clustering;
  clustering.threshold = options.sim_threshold;
  clustering.min_group_size = options.min_group_size;
  clustering.split_single_group = true;
  clustering.churn_bonus = options.churn_penalty;
  clustering.previous = previous;
  Groups groups = Cluster(heads, clustering).groups;
  std::vector<FeatureRow> features = AggregateFeatures(groups, heads, options.aggregate);
  return BuildHierarchyAbove(std::move(groups), std::move(features), options);
}

Hierarchy PassThroughHierarchy(Groups groups, std::vector<FeatureRow> features, int32_t max_depth) {
  Hierarchy hierarchy;
  PushLevel(hierarchy, std::move(groups), std::move(features));
  while (static_cast<int32_t>(hierarchy.levels.size()) < max_depth) {
    const HierarchyLevel& below = hierarchy.levels.back();
    Groups same = SingletonGroups(static_cast<int32_t>(below.groups.size()));
    std::vector<FeatureRow> copied = below.features;
    PushLevel(hierarchy, std::move(same), std::move(copied));
  }
  return hierarchy;
}

}  // namespace aah
