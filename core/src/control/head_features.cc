#include "aah/head_features.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "aah/error.h"
#include "aah/parallel.h"
#include "aah/tensor_view.h"

namespace aah {
namespace {

// What one run of numbers adds up to.
enum Moment : size_t { kCount, kSum, kAbsolute, kSquares, kMomentCount };
using Moments = std::array<double, kMomentCount>;

// Tokens of one head that one task sums: large enough to be worth a task, small enough that few
// heads keep many workers busy. Part of the result, since sums of doubles depend on their order.
constexpr int64_t kBlockTokens = 1024;

// Independent running sums, which a compiler turns into vector registers.
constexpr int64_t kLanes = 8;

Moments SumBlock(const float* data, int64_t tokens, int64_t token_stride, int64_t head_dim) {
  std::array<double, kLanes> sum = {};
  std::array<double, kLanes> absolute = {};
  std::array<double, kLanes> squares = {};
  const int64_t whole = head_dim / kLanes * kLanes;
  const auto add = [&](size_t lane, double x) {
    sum[lane] += x;
    absolute[lane] += std::fabs(x);
    squares[lane] += x * x;
  };
  for (int64_t token = 0; token < tokens; ++token) {
    const float* row = data + token * token_stride;
    for (int64_t first = 0; first < whole; first += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane)
        add(lane, row[first + static_cast<int64_t>(lane)]);
    }
    for (int64_t i = whole; i < head_dim; ++i) add(static_cast<size_t>(i - whole), row[i]);
  }
  Moments moments = {};
  moments[kCount] = static_cast<double>(tokens * head_dim);
  for (size_t lane = 0; lane < kLanes; ++lane) {
    moments[kSum] += sum[lane];
    moments[kAbsolute] += absolute[lane];
    moments[kSquares] += squares[lane];
  }
  return moments;
}

double MeanAbsolute(const Moments& m) { return m[kCount] == 0 ? 0 : m[kAbsolute] / m[kCount]; }

double StandardDeviation(const Moments& m) {
  if (m[kCount] < 2) return 0;
  const double about_mean = m[kSquares] - m[kSum] * m[kSum] / m[kCount];
  // Rounding may leave a hair below zero; NaN must stay NaN to be refused.
  return std::sqrt((about_mean < 0 ? 0 : about_mean) / (m[kCount] - 1));
}

void AddTo(Moments& total, std::span<const double> moments) {
  for (size_t i = 0; i < kMomentCount; ++i) total[i] += moments[i];
}

}  // namespace

const std::array<const char*, kFeatureCount>& FeatureNames() {
  static const std::array<const char*, kFeatureCount> names = {
      "mean|q|", "std q", "mean|k|", "std k", "mean|v|", "std v", "entropy", "norm", "usage"};
  return names;
}

ProjectionSums::ProjectionSums(int32_t heads, int32_t kv_heads)
    : heads_(heads), kv_heads_(kv_heads) {
  AAH_CHECK(kv_heads >= 1 && heads >= kv_heads && heads % kv_heads == 0, "expected ",
            "a number of kv_heads that divides the heads, got ", heads, " heads and ", kv_heads,
            " kv_heads");
  values_.resize(static_cast<size_t>(heads + 2 * kv_heads) * kMomentCount);
}

void ProjectionSums::Clear() { std::fill(values_.begin(), values_.end(), 0.0); }

void ProjectionSums::Add(const ProjectionSums& other) {
  AAH_CHECK(other.heads_ == heads_ && other.kv_heads_ == kv_heads_, "cannot add sums of ",
            other.heads_, " heads and ", other.kv_heads_, " kv_heads to sums of ", heads_, " and ",
            kv_heads_);
  for (size_t i = 0; i < values_.size(); ++i) values_[i] += other.values_[i];
}

void ProjectionSums::AddBatch(ConstView4<float> query, ConstView4<float> key,
                              ConstView4<float> value, Parallel& parallel) {
  const auto [batch, heads, tokens, head_dim] = query.shape;
  AAH_CHECK(heads == heads_ && key.shape[1] == kv_heads_, "expected ", heads_, " heads and ",
            kv_heads_, " kv_heads, got ", heads, " and ", key.shape[1]);
  AAH_CHECK(key.shape == value.shape && key.shape[0] == batch && key.shape[3] == head_dim,
            "query, key and value disagree in batch, tokens or head_dim");
  AAH_CHECK(query.strides[3] == 1 && key.strides[3] == 1 && value.strides[3] == 1,
            "the last axis of query, key and value must be dense (stride 1)");

  // One row of tasks per row of values(): the heads of query, key, value, each cut over batch and
  // blocks of tokens, each task with a place of its own, summed in order.
  const auto blocks = [](const ConstView4<float>& view) {
    return view.shape[0] * ((view.shape[2] + kBlockTokens - 1) / kBlockTokens);
  };
  const int64_t rows = heads_ + 2 * int64_t{kv_heads_};
  const int64_t columns = std::max(blocks(query), blocks(key));
  std::vector<Moments> parts(static_cast<size_t>(rows * columns), Moments{});
  ForEachTask(parallel, rows * columns, [&](int64_t index, int /*worker*/) {
    const int64_t row = index / columns;
    const int64_t column = index % columns;
    const bool is_query = row < heads_;
    const ConstView4<float>& view = is_query ? query : row < heads_ + kv_heads_ ? key : value;
    if (column >= blocks(view)) return;
    const int64_t head = is_query ? row : (row - heads_) % kv_heads_;
    const int64_t per_batch = blocks(view) / view.shape[0];
    const int64_t first = column % per_batch * kBlockTokens;
    parts[static_cast<size_t>(index)] =
        SumBlock(view.At(column / per_batch, head, first),
                 std::min(kBlockTokens, view.shape[2] - first), view.strides[2], view.shape[3]);
  });
  for (int64_t index = 0; index < rows * columns; ++index) {
    for (size_t moment = 0; moment < kMomentCount; ++moment) {
      values_[static_cast<size_t>(index / columns) * kMomentCount + moment] +=
          parts[static_cast<size_t>(index)][moment];
    }
  }
}

StatisticSums::StatisticSums(int32_t heads) : heads_(heads) {
  AAH_CHECK(heads >= 1, "expected at least 1 head, got ", heads);
  values_.resize(1 + 3 * static_cast<size_t>(heads));
}

void StatisticSums::Clear() { std::fill(values_.begin(), values_.end(), 0.0); }

void StatisticSums::AddPass(std::span<const float> entropy, std::span<const float> norm,
                            std::span<const float> usage) {
  for (const std::span<const float> statistic : {entropy, norm, usage}) {
    AAH_CHECK(statistic.size() == static_cast<size_t>(heads_), "expected statistics of ", heads_,
              " heads, got ", statistic.size());
  }
  values_[0] += 1;
  double* sum = &values_[1];
  for (const std::span<const float> statistic : {entropy, norm, usage}) {
    for (const float x : statistic) *sum++ += double{x};
  }
}

std::vector<float> StatisticSums::Means() const {
  const double passes = std::max(values_[0], 1.0);
  std::vector<float> means;
  means.reserve(values_.size() - 1);
  for (size_t i = 1; i < values_.size(); ++i) {
    means.push_back(static_cast<float>(values_[i] / passes));
  }
  return means;
}

std::vector<FeatureRow> GroupFeatures(const ProjectionSums& projections,
                                      std::span<const float> statistics, const Groups& groups) {
  const auto heads = static_cast<size_t>(projections.heads());
  const auto kv_heads = static_cast<size_t>(projections.kv_heads());
  AAH_CHECK(statistics.empty() || statistics.size() == 3 * heads, "expected 3 statistics of ",
            heads, " heads, got ", statistics.size(), " numbers");
  const auto moments = [&](size_t row) {
    return projections.values().subspan(row * kMomentCount, kMomentCount);
  };
  std::vector<FeatureRow> rows;
  rows.reserve(groups.size());
  for (const std::vector<int32_t>& group : groups) {
    std::array<Moments, 3> totals = {};
    std::array<double, 3> statistic_sums = {};
    for (const int32_t member : group) {
      const auto head = static_cast<size_t>(member);
      const size_t kv_head = head / (heads / kv_heads);
      AddTo(totals[0], moments(head));
      AddTo(totals[1], moments(heads + kv_head));
      AddTo(totals[2], moments(heads + kv_heads + kv_head));
      if (statistics.empty()) continue;
      for (size_t i = 0; i < 3; ++i) statistic_sums[i] += double{statistics[i * heads + head]};
    }
    FeatureRow row = {};
    for (size_t i = 0; i < 3; ++i) {
      row[2 * i] = static_cast<float>(MeanAbsolute(totals[i]));
      row[2 * i + 1] = static_cast<float>(StandardDeviation(totals[i]));
      row[6 + i] = static_cast<float>(statistic_sums[i] / static_cast<double>(group.size()));
    }
    for (size_t i = 0; i < kFeatureCount; ++i) {
      AAH_CHECK(std::isfinite(row[i]), "feature ", FeatureNames()[i], " of head ", group.front(),
                " is ", row[i], ": its projections or statistics have overflowed");
    }
    rows.push_back(row);
  }
  return rows;
}

std::vector<FeatureRow> HeadFeatures(const ProjectionSums& projections,
                                     std::span<const float> statistics) {
  return GroupFeatures(projections, statistics, SingletonGroups(projections.heads()));
}

void AverageFeatures(double alpha, std::span<const FeatureRow> rows,
                     std::vector<FeatureRow>& average) {
  if (average.empty()) {
    average.assign(rows.begin(), rows.end());
    return;
  }
  for (size_t row = 0; row < rows.size(); ++row) {
    for (size_t i = 0; i < kFeatureCount; ++i) {
      average[row][i] =
          static_cast<float>(alpha * double{average[row][i]} + (1 - alpha) * double{rows[row][i]});
    }
  }
}

Groups SingletonGroups(int32_t items) {
  Groups groups;
  groups.reserve(static_cast<size_t>(items));
  for (int32_t item = 0; item < items; ++item) groups.push_back({item});
  return groups;
}

}  // namespace aah
