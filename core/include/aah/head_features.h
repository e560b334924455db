#ifndef AAH_HEAD_FEATURES_H_
#define AAH_HEAD_FEATURES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "aah/parallel.h"
#include "aah/tensor_view.h"

namespace aah {

// What the controller knows of a head (METHOD.md section 3): nine numbers,
//     mean|q|, std q, mean|k|, std k, mean|v|, std v, entropy, norm, usage.
// Means and standard deviations (Bessel's correction; 0 for a single number) run over batch, tokens
// and head_dim; a query head uses the k and v of its kv_head. Entropy, norm and usage are those of
// the layer's previous forward pass, 0 before the first one.
inline constexpr size_t kFeatureCount = 9;
using FeatureRow = std::array<float, kFeatureCount>;

// For messages and reports: "mean|q|", "std q", ...
const std::array<const char*, kFeatureCount>& FeatureNames();

// Which heads belong together: groups of indices, each index in exactly one group, order kept.
using Groups = std::vector<std::vector<int32_t>>;

// Count, sum, sum of absolute values and sum of squares of every number of q of each query head and
// of k and v of each kv_head: all that the features need of them.
//
// Sums add: over micro-batches with Add, over replicas by any elementwise sum of `values()`, which
// a process group can do in one call. One replica's sums are the same to the bit for any number of
// workers.
class ProjectionSums {
 public:
  // Throws aah::Error unless kv_heads >= 1 divides heads.
  ProjectionSums(int32_t heads, int32_t kv_heads);

  int32_t heads() const { return heads_; }
  int32_t kv_heads() const { return kv_heads_; }
  bool empty() const { return values_[0] == 0; }

  // Everything, [heads + 2 * kv_heads][4]: q of each head, then k, then v of each kv_head.
  std::span<double> values() { return values_; }
  std::span<const double> values() const { return values_; }

  void Clear();
  void Add(const ProjectionSums& other);

  // Adds one batch in one pass over the memory: query [batch, heads, tokens, head_dim], key and
  // value [batch, kv_heads, tokens, head_dim], any strides, last one 1. Accumulates in double.
  // Throws aah::Error where shapes disagree with each other or with this object.
  void AddBatch(ConstView4<float> query, ConstView4<float> key, ConstView4<float> value,
                Parallel& parallel);

 private:
  int32_t heads_;
  int32_t kv_heads_;
  std::vector<double> values_;
};

// The by-products of the attention passes of one optimiser step, [heads] each, as sums that add.
class StatisticSums {
 public:
  explicit StatisticSums(int32_t heads);

  int32_t heads() const { return heads_; }

  // Everything, [1 + 3 * heads]: number of passes, entropy, norm, usage.
  std::span<double> values() { return values_; }
  std::span<const double> values() const { return values_; }

  void Clear();
  // One pass: means over its batch and queries, as AttentionForward returns them.
  void AddPass(std::span<const float> entropy, std::span<const float> norm,
               std::span<const float> usage);

  // Means over the passes, [3][heads]: entropy, norm, usage; 0 where there was no pass.
  std::vector<float> Means() const;

 private:
  int32_t heads_;
  std::vector<double> values_;
};

// The nine features of every group of query heads, one row per group: q, k, v reduced over the
// group's heads as well, the statistics averaged over them. statistics: [3][heads], or empty for
// zeros. Throws aah::Error where a feature is not finite, naming the group's first head and the
// feature. REQUIRES: groups of heads that exist, none empty.
std::vector<FeatureRow> GroupFeatures(const ProjectionSums& projections,
                                      std::span<const float> statistics, const Groups& groups);

// The same with every head alone: [heads] rows.
std::vector<FeatureRow> HeadFeatures(const ProjectionSums& projections,
                                     std::span<const float> statistics);

// average <- alpha * average + (1 - alpha) * rows; an empty average becomes `rows`.
void AverageFeatures(double alpha, std::span<const FeatureRow> rows,
                     std::vector<FeatureRow>& average);

// 0..items-1, each alone.
Groups SingletonGroups(int32_t items);

}  // namespace aah

#endif  // AAH_HEAD_FEATURES_H_
