#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "aah/attention.h"
#include "aah/nested_attention.h"
#include "aah/parallel.h"
#include "aah/tensor_view.h"
#include "tests/golden/golden_files.h"

namespace aah {
namespace {

using golden::Compare;
using golden::Numbers;
using nlohmann::json;

using Shape4 = std::array<int64_t, 4>;

size_t Size(const Shape4& shape) {
  return static_cast<size_t>(shape[0] * shape[1] * shape[2] * shape[3]);
}

// Moves each number towards the expected one by `rounding` times the largest expected.
void ForgiveRounding(double rounding, std::span<const double> expected, std::span<double> actual) {
  double most = 0;
  for (const double x : expected) most = std::max(most, std::abs(x));
  for (size_t i = 0; i < std::min(expected.size(), actual.size()); ++i) {
    if (!std::isfinite(actual[i])) continue;
    actual[i] = std::clamp(expected[i], actual[i] - rounding * most, actual[i] + rounding * most);
  }
}

// What a case gives, in the type of the code under test. Rows are padded with zeros to `multiple`
// elements, which changes no result.
template <typename Element>
struct GoldenNested {
  GoldenNested(const json& c, int64_t multiple)
      : head_dim(c.at("D")),
        padded_dim((head_dim + multiple - 1) / multiple * multiple),
        candidates(static_cast<int64_t>(c.at("windows").size())),
        query_shape{c.at("B"), c.at("H"), c.at("T"), padded_dim},
        key_shape{c.at("B"), c.at("G"), c.at("T"), padded_dim},
        slot_shape{c.at("B"), query_shape[1] * candidates, c.at("T"), padded_dim},
        windows(c.at("windows").get<std::vector<int32_t>>()),
        query(Padded(c.at("q"))),
        key(Padded(c.at("k"))),
        value(Padded(c.at("v"))),
        grad_out(Padded(c.at("d_out"))) {
    for (const double weight : Numbers(c.at("pi"))) {
      selection.push_back(static_cast<Element>(weight));
    }
    visibility.windows = windows;
    visibility.sinks = c.at("sinks");
    options.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(head_dim)));
  }

  std::vector<Element> Padded(const json& rows) const {
    const std::vector<double> numbers = Numbers(rows);
    std::vector<Element> padded;
    for (size_t i = 0; i < numbers.size(); ++i) {
      padded.push_back(static_cast<Element>(numbers[i]));
      if ((i + 1) % static_cast<size_t>(head_dim) == 0) {
        padded.resize(padded.size() + static_cast<size_t>(padded_dim - head_dim));
      }
    }
    return padded;
  }
  std::vector<double> Unpadded(const std::vector<Element>& rows) const {
    std::vector<double> numbers;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (static_cast<int64_t>(i) % padded_dim < head_dim) numbers.push_back(rows[i]);
    }
    return numbers;
  }

  TensorView<const Element, 4> View(const std::vector<Element>& rows, const Shape4& shape) const {
    return TensorView<const Element, 4>::Contiguous(rows.data(), shape);
  }

  // A probability is exp of a score less a log-sum-exp: it errs, relatively, by what those were
  // rounded by, a few units in the last place of the largest score. Beyond the golden tolerance
  // only where scores are in the hundreds and Element is float.
  double ProbabilityRounding() const {
    double most = 0;
    const auto q = View(query, query_shape);
    const auto k = View(key, key_shape);
    for (int64_t b = 0; b < query_shape[0]; ++b) {
      for (int64_t h = 0; h < query_shape[1]; ++h) {
        const int64_t g = h / (query_shape[1] / key_shape[1]);
        for (int64_t i = 0; i < query_shape[2]; ++i) {
          for (int64_t j = 0; j <= i; ++j) {
            double score = 0;
            for (int64_t d = 0; d < head_dim; ++d) {
              score += double{q.At(b, h, i)[d]} * double{k.At(b, g, j)[d]};
            }
            most = std::max(most, std::abs(score * double{options.scale}));
          }
        }
      }
    }
    return 4 * most * double{std::numeric_limits<Element>::epsilon()};
  }

  int64_t head_dim;
  int64_t padded_dim;
  int64_t candidates;
  Shape4 query_shape;
  Shape4 key_shape;
  Shape4 slot_shape;
  std::vector<int32_t> windows;
  std::vector<Element> query;
  std::vector<Element> key;
  std::vector<Element> value;
  std::vector<Element> grad_out;
  std::vector<Element> selection;
  NestedVisibility visibility;
  AttentionOptions options;
};

template <typename Element>
struct Results {
  explicit Results(const GoldenNested<Element>& golden_case)
      : g(golden_case),
        out(Size(g.query_shape)),
        candidate_out(Size(g.slot_shape)),
        log_sum_exp(candidate_out.size() / static_cast<size_t>(g.padded_dim)),
        grad_query(out.size()),
        grad_key(Size(g.key_shape)),
        grad_value(grad_key.size()),
        grad_selection(g.selection.size()) {}

  // The candidate's out in every head: [batch, heads, tokens, head_dim].
  std::vector<double> Candidate(int64_t n) const {
    const auto view = g.View(candidate_out, g.slot_shape);
    std::vector<double> numbers;
    for (int64_t b = 0; b < g.query_shape[0]; ++b) {
      for (int64_t h = 0; h < g.query_shape[1]; ++h) {
        for (int64_t t = 0; t < g.query_shape[2]; ++t) {
          const Element* row = view.At(b, h * g.candidates + n, t);
          numbers.insert(numbers.end(), row, row + g.head_dim);
        }
      }
    }
    return numbers;
  }

  // Through the softmax that made the weights.
  std::vector<double> GradLogits() const {
    std::vector<double> gradients;
    const auto candidates = static_cast<size_t>(g.candidates);
    for (size_t begin = 0; begin < grad_selection.size(); begin += candidates) {
      double mean = 0;
      for (size_t i = begin; i < begin + candidates; ++i)
        mean += g.selection[i] * grad_selection[i];
      for (size_t i = begin; i < begin + candidates; ++i) {
        gradients.push_back(g.selection[i] * (grad_selection[i] - mean));
      }
    }
    return gradients;
  }

  std::string Difference(const json& c) const {
    const double rounding = g.ProbabilityRounding();
    const auto compare = [&](const char* name, std::vector<double> actual, const json& numbers) {
      const std::vector<double> expected = Numbers(numbers);
      ForgiveRounding(rounding, expected, actual);
      return Compare(name, actual, expected);
    };
    std::vector<std::string> lines = {
        compare("out", g.Unpadded(out), c.at("out")),
        compare("d_q", g.Unpadded(grad_query), c.at("d_q")),
        compare("d_k", g.Unpadded(grad_key), c.at("d_k")),
        compare("d_v", g.Unpadded(grad_value), c.at("d_v")),
        compare("d_selection_logits", GradLogits(), c.at("d_selection_logits"))};
    const json& candidate_outs = c.at("candidate_out");
    if (static_cast<int64_t>(candidate_outs.size()) != g.candidates) {
      return "candidate_out does not have an entry per window";
    }
    for (int64_t n = 0; n < g.candidates; ++n) {
      lines.push_back(
          compare("candidate_out", Candidate(n), candidate_outs.at(static_cast<size_t>(n))));
    }
    for (const std::string& line : lines) {
      if (!line.empty()) return line;
    }
    return {};
  }

  const GoldenNested<Element>& g;
  std::vector<Element> out;
  std::vector<Element> candidate_out;
  std::vector<Element> log_sum_exp;
  std::vector<Element> grad_query;
  std::vector<Element> grad_key;
  std::vector<Element> grad_value;
  std::vector<Element> grad_selection;
};

TEST(NestedWindowsGolden, TheReferenceAgrees) {
  golden::RunKind("nested_windows", [](const json&, const json& c) {
    const GoldenNested<double> g(c, 1);
    Results<double> r(g);
    const auto query = g.View(g.query, g.query_shape);
    const auto key = g.View(g.key, g.key_shape);
    const auto value = g.View(g.value, g.key_shape);
    const auto candidate_out = View4<double>::Contiguous(r.candidate_out.data(), g.slot_shape);
    ReferenceNestedAttentionForward(
        query, key, value, g.selection, g.visibility, g.options,
        View4<double>::Contiguous(r.out.data(), g.query_shape), candidate_out,
        View3<double>::Contiguous(r.log_sum_exp.data(),
                                  {g.slot_shape[0], g.slot_shape[1], g.slot_shape[2]}));
    ReferenceNestedAttentionBackward(
        query, key, value, g.selection, candidate_out, g.View(g.grad_out, g.query_shape),
        g.visibility, g.options, View4<double>::Contiguous(r.grad_query.data(), g.query_shape),
        View4<double>::Contiguous(r.grad_key.data(), g.key_shape),
        View4<double>::Contiguous(r.grad_value.data(), g.key_shape), r.grad_selection);
    return r.Difference(c);
  });
}

TEST(NestedWindowsGolden, TheKernelsAgree) {
  golden::RunKind("nested_windows", [](const json&, const json& c) {
    const GoldenNested<float> g(c, 8);
    Results<float> r(g);
    SerialParallel serial;
    const auto query = g.View(g.query, g.query_shape);
    const auto key = g.View(g.key, g.key_shape);
    const auto value = g.View(g.value, g.key_shape);
    const auto candidate_out = View4<float>::Contiguous(r.candidate_out.data(), g.slot_shape);
    const auto log_sum_exp = View3<float>::Contiguous(
        r.log_sum_exp.data(), {g.slot_shape[0], g.slot_shape[1], g.slot_shape[2]});
    NestedAttentionForward(query, key, value, g.selection, g.visibility, g.options,
                           View4<float>::Contiguous(r.out.data(), g.query_shape), candidate_out,
                           log_sum_exp, serial);
    NestedAttentionBackward(query, key, value, g.selection, candidate_out, log_sum_exp,
                            g.View(g.grad_out, g.query_shape), g.visibility, g.options,
                            View4<float>::Contiguous(r.grad_query.data(), g.query_shape),
                            View4<float>::Contiguous(r.grad_key.data(), g.key_shape),
                            View4<float>::Contiguous(r.grad_value.data(), g.key_shape),
                            r.grad_selection, serial);
    return r.Difference(c);
  });
}

}  // namespace
}  // namespace aah
