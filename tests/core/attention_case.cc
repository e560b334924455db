#include "tests/core/attention_case.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace aah {
namespace {

constexpr double kUnit = 0x1.0p-24;      // rounding error of one fp32 operation, relative
constexpr double kExpError = 0x1.0p-21;  // what the kernels' exp and tanh may err, relative

// Rounding error of a sum of n fp32 products, relative to the sum of their magnitudes.
double SumError(double terms) { return 4 * kUnit * std::sqrt(terms); }

double Normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.Uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.Uniform());
}

int64_t Between(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.Below(static_cast<uint64_t>(high - low + 1)));
}

double Difference(double actual, double expected) {
  if (actual == expected) return 0;
  const double difference = std::abs(actual - expected);
  return std::isfinite(difference) ? difference : std::numeric_limits<double>::infinity();
}

double AbsDot(const float* a, const float* b, int64_t length) {
  double sum = 0;
  for (int64_t d = 0; d < length; ++d) sum += std::abs(double{a[d]} * double{b[d]});
  return sum;
}

// The case whose name is the seed: one edge each.
AttentionCase NamedEdge(uint64_t seed) {
  const auto make = [seed](CaseShape shape, std::vector<int32_t> windows,
                           Layout layout = Layout::kHeadMajor) {
    return AttentionCase(shape, std::move(windows), seed, layout);
  };
  AttentionCase c = make({1, 1, 1, 1, 1, 8}, {1});  // seed 0: one token
  if (seed == 1) c = make({1, 2, 2, 67, 67, 16}, {1, 1});
  if (seed == 2) c = make({1, 2, 1, 45, 45, 8}, {1000, 46});
  if (seed == 3) c = make({1, 1, 1, 129, 129, 64}, {129});
  if (seed == 4) c = make({2, 3, 1, 70, 70, 24}, {1, 7, 70}, Layout::kTokenMajor);
  if (seed == 5) c = make({1, 2, 2, 131, 131, 32}, {5, 64}, Layout::kOddRows);
  if (seed == 6) c = make({2, 4, 2, 1, 53, 64}, {1, 9, 53, 99});  // decode
  if (seed == 7) c = make({1, 2, 2, 17, 200, 80}, {40, 200});     // a chunk
  if (seed == 8) {
    c = make({1, 2, 1, 150, 150, 8}, {10, 33});
    c.sinks = 4;
  }
  if (seed == 9) {
    c = make({4, 2, 2, 40, 40, 16}, {6, 40});  // left padding, one sequence all padding
    c.key_begin = {0, 13, 39, 40};
    c.sinks = 2;
  }
  if (seed == 10) {
    c = make({4, 2, 1, 40, 40, 16}, {6, 40});  // right padding, shorter than the queries, empty
    c.key_length = {40, 21, 1, 0};
  }
  if (seed == 11) {
    c = make({3, 2, 2, 30, 90, 32}, {25, 90}, Layout::kTokenMajor);
    c.key_begin = {0, 20, 50};
    c.key_length = {90, 77, 60};
    c.sinks = 3;
  }
  if (seed == 12) {
    c = make({1, 2, 2, 75, 75, 32}, {20, 75});
    c.options.softcap = 2.5F;
  }
  if (seed == 13) {
    c = make({1, 1, 1, 66, 66, 16}, {66});
    c.options.scale = 40;  // scores of hundreds: nearly one-hot rows
  }
  if (seed == 14) c = make({1, 2, 1, 97, 97, 256}, {31, 97}, Layout::kOddRows);
  if (seed == 15) {
    c = make({1, 1, 1, 300, 300, 8}, {16});
    c.sinks = 20;  // more sinks than window
  }
  return c;
}

std::vector<int32_t> DrawWindows(Random& random, int64_t heads, int64_t keys) {
  std::vector<int32_t> windows;
  for (int64_t h = 0; h < heads; ++h) {
    const int64_t kind = Between(random, 0, 3);
    const int64_t most = kind == 0 ? 8 : kind == 1 ? keys : keys + 40;
    windows.push_back(static_cast<int32_t>(Between(random, 1, most)));
  }
  return windows;
}

// Largest magnitudes over the visible pairs, from which every bound follows.
struct Magnitudes {
  double score = 0;          // |score|
  double score_terms = 0;    // scale * sum_d |q_d k_d|
  double grad_terms = 0;     // sum_d |dO_d v_d|
  double grad_out_sum = 0;   // sum_d |dO_d|
  double column = 0;         // sum of probabilities that a key receives, over queries and group
  double row_length = 1;     // keys a query sees
  double column_length = 1;  // queries, over the group, that see a key
  double query = 0;          // |q|, and so on: one element
  double key = 0;
  double value = 0;
  double grad_out = 0;
};

double MaxAbs(const CaseTensor& tensor) {
  double most = 0;
  for (const double x : tensor.Dense()) {
    if (std::isfinite(x)) most = std::max(most, std::abs(x));
  }
  return most;
}

double ScaleOf(const AttentionCase& c) {
  return c.options.scale != 0 ? double{c.options.scale}
                              : 1 / std::sqrt(static_cast<double>(c.shape.head_dim));
}

// Adds the pairs of one head of one sequence.
void Measure(const AttentionCase& c, const AttentionReference& reference, int64_t b, int64_t h,
             std::vector<double>& columns, std::vector<double>& counts, Magnitudes& most) {
  const CaseShape& s = c.shape;
  const int64_t g = h / (s.heads / s.kv_heads);
  for (int64_t i = 0; i < s.queries; ++i) {
    double row_length = 0;
    const double lse =
        reference.log_sum_exp[static_cast<size_t>((b * s.heads + h) * s.queries + i)];
    for (int64_t j = 0; j < s.keys; ++j) {
      if (!c.Sees(b, h, i, j)) continue;
      const float* query_row = c.query.view().At(b, h, i);
      const float* key_row = c.key.view().At(b, g, j);
      const float* grad_row = c.grad_out.view().At(b, h, i);
      double score = 0;
      for (int64_t d = 0; d < s.head_dim; ++d) score += double{query_row[d]} * double{key_row[d]};
      score *= ScaleOf(c);
      if (c.options.softcap != 0) score = c.options.softcap * std::tanh(score / c.options.softcap);
      most.score = std::max(most.score, std::abs(score));
      most.score_terms =
          std::max(most.score_terms, std::abs(ScaleOf(c)) * AbsDot(query_row, key_row, s.head_dim));
      most.grad_terms =
          std::max(most.grad_terms, AbsDot(grad_row, c.value.view().At(b, g, j), s.head_dim));
      columns[static_cast<size_t>(j)] += std::exp(score - lse);
      counts[static_cast<size_t>(j)] += 1;
      ++row_length;
    }
    most.row_length = std::max(most.row_length, row_length);
  }
}

Magnitudes MagnitudesOf(const AttentionCase& c, const AttentionReference& reference) {
  const CaseShape& s = c.shape;
  Magnitudes most;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t g = 0; g < s.kv_heads; ++g) {
      std::vector<double> columns(static_cast<size_t>(s.keys));
      std::vector<double> counts(static_cast<size_t>(s.keys));
      const int64_t group = s.heads / s.kv_heads;
      for (int64_t h = g * group; h < (g + 1) * group; ++h) {
        Measure(c, reference, b, h, columns, counts, most);
      }
      most.column = std::max(most.column, *std::max_element(columns.begin(), columns.end()));
      most.column_length =
          std::max(most.column_length, *std::max_element(counts.begin(), counts.end()));
    }
  }
  most.query = MaxAbs(c.query);
  most.key = MaxAbs(c.key);
  most.value = MaxAbs(c.value);
  most.grad_out = MaxAbs(c.grad_out);
  const std::vector<float> ones(static_cast<size_t>(s.head_dim), 1.0F);
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.heads; ++h) {
      for (int64_t i = 0; i < s.queries; ++i) {
        most.grad_out_sum = std::max(
            most.grad_out_sum, AbsDot(c.grad_out.view().At(b, h, i), ones.data(), s.head_dim));
      }
    }
  }
  return most;
}

}  // namespace

CaseTensor::CaseTensor(const std::array<int64_t, 4>& shape, Layout layout) : shape_(shape) {
  const auto [batch, head, token, dim] = shape;
  const int64_t row = layout == Layout::kOddRows ? dim + 3 : dim;
  if (layout == Layout::kTokenMajor) {
    strides_ = {token * head * row, row, head * row, 1};
  } else {
    strides_ = {head * token * row, token * row, row, 1};
  }
  memory_.assign(static_cast<size_t>(batch * head * token * row),
                 std::numeric_limits<float>::quiet_NaN());
}

void CaseTensor::FillNormal(Random& random, double deviation) {
  for (int64_t b = 0; b < shape_[0]; ++b) {
    for (int64_t h = 0; h < shape_[1]; ++h) {
      for (int64_t t = 0; t < shape_[2]; ++t) {
        float* row = view().At(b, h, t);
        for (int64_t d = 0; d < shape_[3]; ++d) {
          row[d] = static_cast<float>(deviation * Normal(random));
        }
      }
    }
  }
}

std::vector<double> CaseTensor::Dense() const {
  std::vector<double> dense;
  dense.reserve(static_cast<size_t>(shape_[0] * shape_[1] * shape_[2] * shape_[3]));
  for (int64_t b = 0; b < shape_[0]; ++b) {
    for (int64_t h = 0; h < shape_[1]; ++h) {
      for (int64_t t = 0; t < shape_[2]; ++t) {
        const float* row = view().At(b, h, t);
        dense.insert(dense.end(), row, row + shape_[3]);
      }
    }
  }
  return dense;
}

AttentionCase::AttentionCase(const CaseShape& case_shape, std::vector<int32_t> case_windows,
                             uint64_t case_seed, Layout case_layout)
    : seed(case_seed), shape(case_shape), layout(case_layout), windows(std::move(case_windows)) {
  Random random(seed);
  for (CaseTensor* tensor : {&query, &key, &value, &grad_out}) {
    const bool of_keys = tensor == &key || tensor == &value;
    *tensor = CaseTensor(of_keys ? KeyShape() : QueryShape(), layout);
    tensor->FillNormal(random, 1);
  }
}

AttentionCase AttentionCase::Draw(uint64_t seed) {
  if (seed < kNamedEdges) return NamedEdge(seed);
  Random random(seed);
  CaseShape shape;
  constexpr std::array<int64_t, 10> kHeadDims = {8, 16, 24, 32, 40, 64, 80, 96, 128, 136};
  const bool small = random.Below(3) != 0;
  shape.batch = Between(random, 1, 2);
  shape.kv_heads = Between(random, 1, 2);
  shape.heads = shape.kv_heads * Between(random, 1, 3);
  shape.keys = Between(random, 1, small ? 70 : 280);
  shape.queries = random.Below(3) == 0 ? Between(random, 1, shape.keys) : shape.keys;
  shape.head_dim = kHeadDims[random.Below(small ? kHeadDims.size() : 6)];
  std::vector<int32_t> windows = DrawWindows(random, shape.heads, shape.keys);
  AttentionCase c(shape, std::move(windows), seed, static_cast<Layout>(random.Below(3)));
  if (random.Below(3) == 0) c.sinks = static_cast<int32_t>(Between(random, 1, 12));
  if (random.Below(4) == 0) c.options.softcap = static_cast<float>(1 + 5 * random.Uniform());
  if (random.Below(4) == 0) c.options.scale = static_cast<float>(0.05 + random.Uniform());
  const bool left = random.Below(3) == 0;
  const bool right = random.Below(3) == 0;
  for (int64_t b = 0; b < shape.batch; ++b) {
    if (left) c.key_begin.push_back(static_cast<int32_t>(Between(random, 0, shape.keys)));
    if (right) c.key_length.push_back(static_cast<int32_t>(Between(random, 0, shape.keys)));
  }
  return c;
}

std::string AttentionCase::Describe() const {
  std::ostringstream text;
  text << "seed " << seed << ", batch " << shape.batch << ", heads " << shape.heads << ", kv_heads "
       << shape.kv_heads << ", queries " << shape.queries << ", keys " << shape.keys
       << ", head_dim " << shape.head_dim << ", layout " << static_cast<int>(layout) << ", sinks "
       << sinks << ", scale " << options.scale << ", softcap " << options.softcap;
  const auto list = [&text](const char* name, std::span<const int32_t> values) {
    text << ", " << name;
    for (const int32_t x : values) text << ' ' << x;
  };
  list("windows", windows);
  list("key_begin", key_begin);
  list("key_length", key_length);
  return text.str();
}

bool AttentionCase::Sees(int64_t batch, int64_t head, int64_t query_index,
                         int64_t key_index) const {
  const int64_t begin = key_begin.empty() ? 0 : key_begin[static_cast<size_t>(batch)];
  const int64_t length = key_length.empty() ? shape.keys : key_length[static_cast<size_t>(batch)];
  const int64_t position = query_index + length - shape.queries;
  return begin <= key_index && key_index <= position &&
         (position - windows[static_cast<size_t>(head)] < key_index || key_index < begin + sinks);
}

void AttentionCase::PoisonHiddenKeys(float poison) {
  const int64_t group = shape.heads / shape.kv_heads;
  for (int64_t b = 0; b < shape.batch; ++b) {
    for (int64_t g = 0; g < shape.kv_heads; ++g) {
      for (int64_t j = 0; j < shape.keys; ++j) {
        bool seen = false;
        for (int64_t h = g * group; h < (g + 1) * group; ++h) {
          for (int64_t i = 0; i < shape.queries; ++i) seen = seen || Sees(b, h, i, j);
        }
        if (seen) continue;
        std::fill_n(key.view().At(b, g, j), shape.head_dim, poison);
        std::fill_n(value.view().At(b, g, j), shape.head_dim, poison);
      }
    }
  }
}

std::array<int64_t, 4> AttentionCase::QueryShape() const {
  return {shape.batch, shape.heads, shape.queries, shape.head_dim};
}

std::array<int64_t, 4> AttentionCase::KeyShape() const {
  return {shape.batch, shape.kv_heads, shape.keys, shape.head_dim};
}

AttentionReference ReferenceOf(const AttentionCase& c) {
  const std::array<int64_t, 4> query_shape = c.QueryShape();
  const std::array<int64_t, 4> key_shape = c.KeyShape();
  const std::vector<double> query = c.query.Dense();
  const std::vector<double> key = c.key.Dense();
  const std::vector<double> value = c.value.Dense();
  const std::vector<double> grad_out = c.grad_out.Dense();
  const size_t heads = static_cast<size_t>(c.shape.heads);
  AttentionReference r;
  r.out.resize(query.size());
  r.log_sum_exp.resize(static_cast<size_t>(c.shape.batch * c.shape.heads * c.shape.queries));
  r.entropy.resize(heads);
  r.norm.resize(heads);
  r.usage.resize(heads);
  r.grad_query.resize(query.size());
  r.grad_key.resize(key.size());
  r.grad_value.resize(key.size());
  using In = ConstView4<double>;
  using Out = View4<double>;
  const In q = In::Contiguous(query.data(), query_shape);
  const In k = In::Contiguous(key.data(), key_shape);
  const In v = In::Contiguous(value.data(), key_shape);
  ReferenceAttentionForward(
      q, k, v, c.visibility(), c.options, Out::Contiguous(r.out.data(), query_shape),
      View3<double>::Contiguous(r.log_sum_exp.data(),
                                {query_shape[0], query_shape[1], query_shape[2]}),
      r.entropy, r.norm, r.usage);
  ReferenceAttentionBackward(q, k, v, In::Contiguous(grad_out.data(), query_shape), c.visibility(),
                             c.options, Out::Contiguous(r.grad_query.data(), query_shape),
                             Out::Contiguous(r.grad_key.data(), key_shape),
                             Out::Contiguous(r.grad_value.data(), key_shape));
  return r;
}

AttentionTolerance ToleranceOf(const AttentionCase& c, const AttentionReference& reference) {
  const Magnitudes m = MagnitudesOf(c, reference);
  const double head_dim = static_cast<double>(c.shape.head_dim);
  const double scale = std::abs(ScaleOf(c));
  const double softcap = c.options.softcap;
  const double score = SumError(head_dim + 2) * m.score_terms + kExpError * softcap;
  // A probability is exp of a score less the row's log-sum-exp, each of them rounded.
  const double log_sum_exp =
      score + kExpError + SumError(m.row_length) + 4 * kUnit * (m.score + 10);
  const double probability = score + log_sum_exp + kExpError + 4 * kUnit * m.score;
  AttentionTolerance t;
  t.log_sum_exp = log_sum_exp;
  t.out = m.value * (2 * probability + SumError(m.row_length));
  const double rows = static_cast<double>(c.shape.batch * c.shape.queries);
  t.entropy = (2 * probability + SumError(m.row_length) + SumError(rows)) * (2 * m.score + 10);
  t.norm = (t.out + SumError(rows + head_dim) * m.value) * std::sqrt(head_dim);
  t.usage = probability + SumError(rows);
  const double slope = softcap == 0 ? 0 : 2 * score / softcap + kExpError;
  // dS = p (dP - delta): delta also carries the error of `out`.
  const double grad_score = SumError(head_dim) * 2 * m.grad_terms + m.grad_out_sum * t.out +
                            2 * m.grad_terms * (probability + slope + 8 * kUnit);
  t.grad_value = m.column * m.grad_out * (probability + SumError(m.column_length));
  t.grad_key =
      m.column * m.query * scale * (grad_score + 2 * m.grad_terms * SumError(m.column_length));
  t.grad_query = m.key * scale * (grad_score + 2 * m.grad_terms * SumError(m.row_length));
  return t;
}

double MaxAbsDifference(ConstView4<float> actual, std::span<const double> expected) {
  double most = 0;
  size_t next = 0;
  for (int64_t b = 0; b < actual.shape[0]; ++b) {
    for (int64_t h = 0; h < actual.shape[1]; ++h) {
      for (int64_t t = 0; t < actual.shape[2]; ++t) {
        const float* row = actual.At(b, h, t);
        for (int64_t d = 0; d < actual.shape[3]; ++d) {
          most = std::max(most, Difference(row[d], expected[next++]));
        }
      }
    }
  }
  return most;
}

double MaxAbsDifference(std::span<const float> actual, std::span<const double> expected) {
  double most = 0;
  for (size_t n = 0; n < expected.size(); ++n) {
    most = std::max(most, Difference(actual[n], expected[n]));
  }
  return most;
}

}  // namespace aah
