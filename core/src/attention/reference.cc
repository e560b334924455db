// Attention and its gradients as the formulas read, in double: no tiles, no reuse, no shared code
// with the kernels, so that it can judge them.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "aah/attention.h"
#include "attention/checks.h"

namespace aah {
namespace {

// Visibility and options of one (batch, head), resolved.
struct Row {
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t key_begin = 0;
  int64_t key_length = 0;
  int64_t window = 1;
  int64_t sinks = 0;
  double scale = 1;
  double softcap = 0;

  bool Sees(int64_t query, int64_t key) const {
    const int64_t position = query + key_length - queries;
    if (key < key_begin || key > position) return false;
    return position - window < key || key < key_begin + sinks;
  }

  double Score(double dot) const {
    const double score = scale * dot;
    return softcap == 0 ? score : softcap * std::tanh(score / softcap);
  }

  // dScore / d(scale * dot), from the capped score.
  double Slope(double score) const {
    if (softcap == 0) return 1;
    const double ratio = score / softcap;
    return 1 - ratio * ratio;
  }
};

Row RowOf(const Visibility& visibility, const AttentionOptions& options, int64_t batch,
          int64_t head, int64_t queries, int64_t keys, int64_t head_dim) {
  const auto at = [](std::span<const int32_t> values, int64_t index, int64_t otherwise) {
    return values.empty() ? otherwise : int64_t{values[static_cast<size_t>(index)]};
  };
  Row row;
  row.queries = queries;
  row.keys = keys;
  row.key_begin = at(visibility.key_begin, batch, 0);
  row.key_length = at(visibility.key_length, batch, keys);
  row.window = visibility.windows[static_cast<size_t>(head)];
  row.sinks = visibility.sinks;
  row.scale =
      options.scale != 0 ? double{options.scale} : 1 / std::sqrt(static_cast<double>(head_dim));
  row.softcap = options.softcap;
  return row;
}

double Dot(const double* a, const double* b, int64_t length) {
  double sum = 0;
  for (int64_t d = 0; d < length; ++d) sum += a[d] * b[d];
  return sum;
}

// Scores of one query against every key, minus infinity where it sees none; returns log-sum-exp.
double ScoresOf(const Row& row, int64_t query, const double* query_row, ConstView4<double> key,
                int64_t batch, int64_t kv_head, std::vector<double>& scores) {
  const double nothing = -std::numeric_limits<double>::infinity();
  double maximum = nothing;
  for (int64_t j = 0; j < row.keys; ++j) {
    double score = nothing;
    if (row.Sees(query, j)) {
      score = row.Score(Dot(query_row, key.At(batch, kv_head, j), key.shape[3]));
    }
    scores[static_cast<size_t>(j)] = score;
    maximum = std::max(maximum, score);
  }
  if (maximum == nothing) return nothing;
  double sum = 0;
  for (const double score : scores) sum += std::exp(score - maximum);
  return maximum + std::log(sum);
}

}  // namespace

void ReferenceAttentionForward(ConstView4<double> query, ConstView4<double> key,
                               ConstView4<double> value, const Visibility& visibility,
                               const AttentionOptions& options, View4<double> out,
                               View3<double> log_sum_exp, std::span<double> entropy,
                               std::span<double> norm, std::span<double> usage) {
  const AttentionShape shape =
      CheckAttention(Named("query", query), Named("key", key), Named("value", value), visibility,
                     options, HeadDims::kAny);
  CheckLikeQuery(shape, Named("out", out));
  CheckLikeLogSumExp(shape, Named("log_sum_exp", log_sum_exp));
  const auto [batches, heads, queries, head_dim] = query.shape;
  const int64_t keys = key.shape[2];
  const int64_t group = heads / key.shape[1];
  const double rows = static_cast<double>(batches * queries);
  const double entropy_unit = std::max(1.0, std::log(static_cast<double>(keys)));
  std::vector<double> scores(static_cast<size_t>(keys));
  for (int64_t h = 0; h < heads; ++h) {
    double entropy_sum = 0;
    double norm_sum = 0;
    double usage_sum = 0;
    for (int64_t b = 0; b < batches; ++b) {
      const Row row = RowOf(visibility, options, b, h, queries, keys, head_dim);
      for (int64_t i = 0; i < queries; ++i) {
        const double lse = ScoresOf(row, i, query.At(b, h, i), key, b, h / group, scores);
        double* out_row = out.At(b, h, i);
        std::fill_n(out_row, head_dim, 0.0);
        *log_sum_exp.At(b, h, i) = lse;
        for (int64_t j = 0; j < keys; ++j) {
          if (!row.Sees(i, j)) continue;
          const double log_probability = scores[static_cast<size_t>(j)] - lse;
          const double probability = std::exp(log_probability);
          const double* value_row = value.At(b, h / group, j);
          for (int64_t d = 0; d < head_dim; ++d) out_row[d] += probability * value_row[d];
          entropy_sum -= probability * log_probability;
          if (j == row.key_length - 1) usage_sum += probability;
        }
        norm_sum += std::sqrt(Dot(out_row, out_row, head_dim));
      }
    }
    if (entropy.empty()) continue;
    entropy[static_cast<size_t>(h)] = entropy_sum / entropy_unit / rows;
    norm[static_cast<size_t>(h)] = norm_sum / rows;
    usage[static_cast<size_t>(h)] = usage_sum / rows;
  }
}

void ReferenceAttentionBackward(ConstView4<double> query, ConstView4<double> key,
                                ConstView4<double> value, ConstView4<double> grad_out,
                                const Visibility& visibility, const AttentionOptions& options,
                                View4<double> grad_query, View4<double> grad_key,
                                View4<double> grad_value) {
  const AttentionShape shape =
      CheckAttention(Named("query", query), Named("key", key), Named("value", value), visibility,
                     options, HeadDims::kAny);
  CheckLikeQuery(shape, Named("grad_out", grad_out));
  CheckLikeQuery(shape, Named("grad_query", grad_query));
  CheckLikeKey(shape, Named("grad_key", grad_key));
  CheckLikeKey(shape, Named("grad_value", grad_value));
  const auto [batches, heads, queries, head_dim] = query.shape;
  const auto [key_batches, kv_heads, keys, key_dim] = key.shape;
  const int64_t group = heads / kv_heads;
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t g = 0; g < kv_heads; ++g) {
      for (int64_t j = 0; j < keys; ++j) {
        std::fill_n(grad_key.At(b, g, j), head_dim, 0.0);
        std::fill_n(grad_value.At(b, g, j), head_dim, 0.0);
      }
    }
  }
  std::vector<double> scores(static_cast<size_t>(keys));
  std::vector<double> grad_probability(static_cast<size_t>(keys));
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t g = h / group;
      const Row row = RowOf(visibility, options, b, h, queries, keys, head_dim);
      for (int64_t i = 0; i < queries; ++i) {
        const double* query_row = query.At(b, h, i);
        const double* grad_out_row = grad_out.At(b, h, i);
        double* grad_query_row = grad_query.At(b, h, i);
        std::fill_n(grad_query_row, head_dim, 0.0);
        const double lse = ScoresOf(row, i, query_row, key, b, g, scores);
        double mean = 0;  // of dL/dp under p: what the softmax takes away
        for (int64_t j = 0; j < keys; ++j) {
          if (!row.Sees(i, j)) continue;
          const double probability = std::exp(scores[static_cast<size_t>(j)] - lse);
          const double dp = Dot(grad_out_row, value.At(b, g, j), head_dim);
          grad_probability[static_cast<size_t>(j)] = dp;
          mean += probability * dp;
        }
        for (int64_t j = 0; j < keys; ++j) {
          if (!row.Sees(i, j)) continue;
          const double score = scores[static_cast<size_t>(j)];
          const double probability = std::exp(score - lse);
          const double ds = probability * (grad_probability[static_cast<size_t>(j)] - mean) *
                            row.Slope(score) * row.scale;
          const double* key_row = key.At(b, g, j);
          double* grad_key_row = grad_key.At(b, g, j);
          double* grad_value_row = grad_value.At(b, g, j);
          for (int64_t d = 0; d < head_dim; ++d) {
            grad_query_row[d] += ds * key_row[d];
            grad_key_row[d] += ds * query_row[d];
            grad_value_row[d] += probability * grad_out_row[d];
          }
        }
      }
    }
  }
}

}  // namespace aah
