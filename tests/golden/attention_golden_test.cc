#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "aah/attention.h"
#include "aah/instruction_set.h"
#include "aah/parallel.h"
#include "tests/golden/golden_files.h"

namespace aah {
namespace {

using golden::Compare;
using golden::Numbers;
using nlohmann::json;

// What a case gives: tensors [B][H][T][D], one window for all heads.
struct GoldenAttention {
  explicit GoldenAttention(const json& c)
      : shape{c.at("B"), c.at("H"), c.at("T"), c.at("D")},
        windows(static_cast<size_t>(shape[1]), c.at("window").get<int32_t>()),
        query(Numbers(c.at("q"))),
        key(Numbers(c.at("k"))),
        value(Numbers(c.at("v"))),
        grad_out(Numbers(c.at("grad_out"))) {
    visibility.windows = windows;
    options.scale = c.at("scale");
  }

  std::array<int64_t, 4> shape;
  std::vector<int32_t> windows;
  std::vector<double> query;
  std::vector<double> key;
  std::vector<double> value;
  std::vector<double> grad_out;
  Visibility visibility;
  AttentionOptions options;
};

struct Results {
  explicit Results(const GoldenAttention& g)
      : out(g.query.size()),
        log_sum_exp(static_cast<size_t>(g.shape[0] * g.shape[1] * g.shape[2])),
        entropy(g.windows.size()),
        norm(g.windows.size()),
        usage(g.windows.size()),
        grad_query(g.query.size()),
        grad_key(g.query.size()),
        grad_value(g.query.size()) {}

  std::string Difference(const json& c) const {
    const auto compare = [&c](const char* field, const std::vector<double>& actual) {
      return Compare(field, actual, Numbers(c.at(field)));
    };
    for (const std::string& line :
         {compare("out", out), compare("head_entropy", entropy), compare("head_norm", norm),
          compare("head_usage", usage), compare("dq", grad_query), compare("dk", grad_key),
          compare("dv", grad_value)}) {
      if (!line.empty()) return line;
    }
    return {};
  }

  std::vector<double> out;
  std::vector<double> log_sum_exp;
  std::vector<double> entropy;
  std::vector<double> norm;
  std::vector<double> usage;
  std::vector<double> grad_query;
  std::vector<double> grad_key;
  std::vector<double> grad_value;
};

Results RunReference(const GoldenAttention& g) {
  using In = ConstView4<double>;
  using Out = View4<double>;
  Results r(g);
  const In query = In::Contiguous(g.query.data(), g.shape);
  const In key = In::Contiguous(g.key.data(), g.shape);
  const In value = In::Contiguous(g.value.data(), g.shape);
  ReferenceAttentionForward(
      query, key, value, g.visibility, g.options, Out::Contiguous(r.out.data(), g.shape),
      View3<double>::Contiguous(r.log_sum_exp.data(), {g.shape[0], g.shape[1], g.shape[2]}),
      r.entropy, r.norm, r.usage);
  ReferenceAttentionBackward(query, key, value, In::Contiguous(g.grad_out.data(), g.shape),
                             g.visibility, g.options, Out::Contiguous(r.grad_query.data(), g.shape),
                             Out::Contiguous(r.grad_key.data(), g.shape),
                             Out::Contiguous(r.grad_value.data(), g.shape));
  return r;
}

// The kernels take multiples of 8: zeros beyond head_dim change no product.
struct PaddedTensor {
  PaddedTensor(const std::array<int64_t, 4>& dense_shape, const std::vector<double>& dense)
      : shape(dense_shape), head_dim(dense_shape[3]) {
    shape[3] = (head_dim + 7) / 8 * 8;
    memory.resize(static_cast<size_t>(shape[0] * shape[1] * shape[2] * shape[3]));
    for (size_t n = 0; n < dense.size(); ++n) {
      const auto row = static_cast<int64_t>(n) / head_dim;
      const auto d = static_cast<int64_t>(n) % head_dim;
      memory[static_cast<size_t>(row * shape[3] + d)] = static_cast<float>(dense[n]);
    }
  }
  explicit PaddedTensor(const std::array<int64_t, 4>& dense_shape)
      : PaddedTensor(dense_shape, {}) {}

  View4<float> view() { return View4<float>::Contiguous(memory.data(), shape); }
  std::vector<double> Dense() const {
    std::vector<double> dense;
    for (size_t n = 0; n < memory.size(); ++n) {
      if (static_cast<int64_t>(n) % shape[3] < head_dim) dense.push_back(memory[n]);
    }
    return dense;
  }

  std::array<int64_t, 4> shape;
  int64_t head_dim;
  std::vector<float> memory;
};

Results RunKernels(const GoldenAttention& g) {
  SerialParallel serial;
  Results r(g);
  PaddedTensor query(g.shape, g.query);
  PaddedTensor key(g.shape, g.key);
  PaddedTensor value(g.shape, g.value);
  PaddedTensor grad_out(g.shape, g.grad_out);
  PaddedTensor out(g.shape);
  PaddedTensor grad_query(g.shape);
  PaddedTensor grad_key(g.shape);
  PaddedTensor grad_value(g.shape);
  std::vector<float> log_sum_exp(r.log_sum_exp.size());
  std::vector<float> entropy(r.entropy.size());
  std::vector<float> norm(r.norm.size());
  std::vector<float> usage(r.usage.size());
  const auto sums =
      View3<float>::Contiguous(log_sum_exp.data(), {g.shape[0], g.shape[1], g.shape[2]});
  AttentionForward<float>(query.view(), key.view(), value.view(), g.visibility, g.options,
                          out.view(), sums, {entropy, norm, usage}, serial);
  AttentionBackward(query.view(), key.view(), value.view(), out.view(), sums, grad_out.view(),
                    g.visibility, g.options, grad_query.view(), grad_key.view(), grad_value.view(),
                    serial);
  r.out = out.Dense();
  r.entropy.assign(entropy.begin(), entropy.end());
  r.norm.assign(norm.begin(), norm.end());
  r.usage.assign(usage.begin(), usage.end());
  r.grad_query = grad_query.Dense();
  r.grad_key = grad_key.Dense();
  r.grad_value = grad_value.Dense();
  return r;
}

TEST(AttentionGolden, TheKernelsAgree) {
  for (const std::string& name : SupportedInstructionSets()) {
    SCOPED_TRACE(name);
    RestrictInstructionSet(name);
    golden::RunKind("attention", [](const json&, const json& c) {
      return RunKernels(GoldenAttention(c)).Difference(c);
    });
  }
  RestrictInstructionSet("");
}

TEST(AttentionGolden, TheReferenceAgrees) {
  golden::RunKind("attention", [](const json&, const json& c) {
    return RunReference(GoldenAttention(c)).Difference(c);
  });
}

TEST(GoldenFiles, EveryFileIsOfAKnownKind) {
  for (const std::filesystem::path& file : golden::AllFiles()) {
    EXPECT_FALSE(golden::KindOf(file).empty())
        << file << ": no test knows this kind of golden file; its name must start with a known one";
  }
}

TEST(GoldenFiles, AKindIsTheLongestKnownStartOfTheName) {
  EXPECT_EQ(golden::KindOf("a/attention.json"), "attention");
  EXPECT_EQ(golden::KindOf("attention_2.json"), "attention");
  EXPECT_EQ(golden::KindOf("attentionless.json"), "");
  EXPECT_EQ(golden::KindOf("windows.json"), "");
}

TEST(GoldenFiles, AFolderNamedButMissingFails) {
  const char* kept = std::getenv("AAH_GOLDEN_DIR");
  const std::string restored = kept == nullptr ? "" : kept;
  setenv("AAH_GOLDEN_DIR", "/no/such/folder", 1);
  EXPECT_THROW(golden::AllFiles(), std::runtime_error);
  setenv("AAH_GOLDEN_DIR", restored.c_str(), 1);
}

}  // namespace
}  // namespace aah
