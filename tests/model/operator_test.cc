#include "aah/model/operator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "aah/model/attention_timer.h"
#include "aah/model/torch_parallel.h"

namespace aah {
namespace {

struct Shape {
  int64_t batch = 2;
  int64_t heads = 4;
  int64_t kv_heads = 2;
  int64_t queries = 37;
  int64_t keys = 37;
  int64_t head_dim = 16;
};

struct Inputs {
  at::Tensor query, key, value, windows;
};

// Views into one projection, [batch, tokens, heads, head_dim] in memory, as the model's are.
Inputs RandomInputs(const Shape& shape, at::ScalarType type) {
  torch::manual_seed(1);
  const auto heads_inner = [&](int64_t heads, int64_t tokens) {
    return torch::randn({shape.batch, tokens, heads + 1, shape.head_dim}, torch::kDouble)
        .to(type)
        .narrow(2, 1, heads)
        .transpose(1, 2);
  };
  return {heads_inner(shape.heads, shape.queries), heads_inner(shape.kv_heads, shape.keys),
          heads_inner(shape.kv_heads, shape.keys),
          torch::tensor({1, 5, 16, 1000}, torch::kInt).narrow(0, 0, shape.heads)};
}

// The definition by explicit masked scores in torch, [batch, heads, queries, keys] probabilities.
at::Tensor Probabilities(const Inputs& inputs, const AttentionOperatorOptions& options) {
  const int64_t heads = inputs.query.size(1);
  const int64_t queries = inputs.query.size(2);
  const int64_t keys = inputs.key.size(2);
  const double scale =
      options.scale == 0 ? 1 / std::sqrt(double(inputs.query.size(3))) : options.scale;
  const at::Tensor key = inputs.key.repeat_interleave(heads / inputs.key.size(1), 1);
  at::Tensor scores = torch::matmul(inputs.query, key.transpose(-2, -1)) * scale;
  if (options.softcap != 0) scores = options.softcap * torch::tanh(scores / options.softcap);
  const at::Tensor i = torch::arange(queries).view({-1, 1}) + (keys - queries);
  const at::Tensor j = torch::arange(keys).view({1, -1});
  const at::Tensor window = inputs.windows.to(torch::kLong).view({1, heads, 1, 1});
  at::Tensor begin = torch::zeros({inputs.query.size(0)}, torch::kLong);
  if (options.key_begin) begin = options.key_begin->to(torch::kLong);
  begin = begin.view({-1, 1, 1, 1});
  const at::Tensor visible =
      j.le(i)
          .logical_and(j.ge(begin))
          .logical_and((i - window).lt(j).logical_or(j.lt(begin + options.sinks)));
  return scores.masked_fill(visible.logical_not(), -std::numeric_limits<double>::infinity())
      .softmax(-1)
      .nan_to_num(0);
}

at::Tensor NaiveOut(const Inputs& inputs, const AttentionOperatorOptions& options) {
  return torch::matmul(
      Probabilities(inputs, options),
      inputs.value.repeat_interleave(inputs.query.size(1) / inputs.value.size(1), 1));
}

double MaxDifference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(torch::kDouble) - b.to(torch::kDouble)).abs().max().item<double>();
}

std::vector<AttentionOperatorOptions> OptionCases() {
  AttentionOperatorOptions sinks;
  sinks.sinks = 3;
  AttentionOperatorOptions capped;
  capped.scale = 0.7;
  capped.softcap = 1.5;
  AttentionOperatorOptions padded;
  padded.sinks = 2;
  padded.key_begin = torch::tensor({0, 9}, torch::kInt);
  return {{}, sinks, capped, padded};
}

// Out and the gradients of sum(out * weights) of one computation.
template <typename Compute>
std::vector<at::Tensor> OutAndGradients(const Inputs& inputs, const Compute& compute) {
  Inputs leaves = inputs;
  for (at::Tensor* tensor : {&leaves.query, &leaves.key, &leaves.value}) {
    *tensor = tensor->detach().requires_grad_();
  }
  const at::Tensor out = compute(leaves);
  torch::manual_seed(2);
  const at::Tensor weights = torch::randn(out.sizes(), torch::kDouble).to(out.scalar_type());
  (out * weights).sum().backward();
  return {out.detach(), leaves.query.grad(), leaves.key.grad(), leaves.value.grad()};
}

TEST(AttentionOperator, DoubleEqualsMaskedSoftmaxAndItsGradients) {
  const Inputs inputs = RandomInputs({}, torch::kDouble);
  for (const AttentionOperatorOptions& options : OptionCases()) {
    const auto ours = OutAndGradients(inputs, [&](const Inputs& leaves) {
      return Attention(leaves.query, leaves.key, leaves.value, leaves.windows, options).out;
    });
    const auto naive =
        OutAndGradients(inputs, [&](const Inputs& leaves) { return NaiveOut(leaves, options); });
    // Options travel as float, as in the kernels: seven digits of the scale.
    for (size_t i = 0; i < ours.size(); ++i) EXPECT_LT(MaxDifference(ours[i], naive[i]), 1e-6);
  }
}

TEST(AttentionOperator, FloatEqualsDoubleAndItsGradients) {
  for (const int64_t tokens : {1, 37, 300}) {
    const Inputs inputs = RandomInputs({.queries = tokens, .keys = tokens}, torch::kFloat);
    const Inputs exact = {inputs.query.to(torch::kDouble), inputs.key.to(torch::kDouble),
                          inputs.value.to(torch::kDouble), inputs.windows};
    for (const AttentionOperatorOptions& options : OptionCases()) {
      if (options.key_begin && tokens < 9) continue;
      const auto compute = [&](const Inputs& leaves) {
        return Attention(leaves.query, leaves.key, leaves.value, leaves.windows, options).out;
      };
      const auto ours = OutAndGradients(inputs, compute);
      const auto reference = OutAndGradients(exact, compute);
      // Sums of at most `tokens` terms of order one, each rounded to 2^-24.
      const double bound = 2e-6 * (4 + std::sqrt(static_cast<double>(tokens)));
      for (size_t i = 0; i < ours.size(); ++i) {
        EXPECT_LT(MaxDifference(ours[i], reference[i]), bound) << i << " at " << tokens;
      }
    }
  }
}

TEST(AttentionOperator, FewerQueriesThanKeysAreTheLastOnes) {
  const Inputs inputs = RandomInputs({.queries = 5, .keys = 37}, torch::kDouble);
  const at::Tensor out = Attention(inputs.query, inputs.key, inputs.value, inputs.windows).out;
  EXPECT_LT(MaxDifference(out, NaiveOut(inputs, {})), 1e-6);
}

TEST(AttentionOperator, FullWindowEqualsTorchsFusedAttention) {
  Inputs inputs = RandomInputs({.kv_heads = 4, .queries = 129, .keys = 129}, torch::kFloat);
  inputs.windows = torch::full({4}, 129, torch::kInt);
  const auto ours = OutAndGradients(inputs, [](const Inputs& leaves) {
    return Attention(leaves.query, leaves.key, leaves.value, leaves.windows).out;
  });
  const auto torchs = OutAndGradients(inputs, [](const Inputs& leaves) {
    return at::scaled_dot_product_attention(leaves.query, leaves.key, leaves.value, {}, 0.0, true);
  });
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_LT(MaxDifference(ours[i], torchs[i]), 3e-5);
}

TEST(AttentionOperator, StatisticsOfHeads) {
  for (const at::ScalarType type : {torch::kFloat, torch::kDouble}) {
    const Inputs inputs = RandomInputs({}, type);
    AttentionOperatorOptions options;
    options.statistics = true;
    const AttentionOperatorResult result =
        Attention(inputs.query, inputs.key, inputs.value, inputs.windows, options);
    const Inputs exact = {inputs.query.to(torch::kDouble), inputs.key.to(torch::kDouble),
                          inputs.value.to(torch::kDouble), inputs.windows};
    const at::Tensor p = Probabilities(exact, options);
    const at::Tensor entropy =
        -(p * (p + 1e-12).log()).sum(-1).mean(c10::IntArrayRef{0, 2}) / std::log(37.0);
    EXPECT_LT(MaxDifference(result.entropy, entropy), 1e-5);
    EXPECT_LT(MaxDifference(result.norm,
                            NaiveOut(exact, options).norm(2, -1).mean(c10::IntArrayRef{0, 2})),
              1e-5);
    EXPECT_LT(MaxDifference(result.usage, p.select(3, 36).mean(c10::IntArrayRef{0, 2})), 1e-6);
  }
}

TEST(AttentionOperator, WithoutStatisticsTheyAreEmpty) {
  const Inputs inputs = RandomInputs({}, torch::kFloat);
  const AttentionOperatorResult result =
      Attention(inputs.query, inputs.key, inputs.value, inputs.windows);
  EXPECT_EQ(result.entropy.numel(), 0);
  EXPECT_EQ(result.norm.numel(), 0);
  EXPECT_EQ(result.usage.numel(), 0);
}

TEST(AttentionOperator, OutputAndGradientsKeepHeadsInner) {
  const Inputs inputs = RandomInputs({}, torch::kFloat);
  const at::Tensor query = inputs.query.detach().requires_grad_();
  const at::Tensor key = inputs.key.detach().requires_grad_();
  const at::Tensor value = inputs.value.detach().requires_grad_();
  const at::Tensor out = Attention(query, key, value, inputs.windows).out;
  EXPECT_TRUE(out.transpose(1, 2).is_contiguous());
  for (const at::Tensor& gradient : torch::autograd::grad({out.sum()}, {query, key, value})) {
    EXPECT_TRUE(gradient.transpose(1, 2).is_contiguous());
  }
}

TEST(AttentionOperator, StorageInHalfPrecisionForwardOnly) {
  const Inputs inputs = RandomInputs({}, torch::kFloat);
  for (const at::ScalarType type : {torch::kBFloat16, torch::kHalf}) {
    const Inputs half = {inputs.query.to(type), inputs.key.to(type), inputs.value.to(type),
                         inputs.windows};
    const AttentionOperatorResult result =
        Attention(half.query, half.key, half.value, half.windows);
    EXPECT_EQ(result.out.scalar_type(), type);
    EXPECT_EQ(result.log_sum_exp.scalar_type(), torch::kFloat);
    const Inputs exact = {half.query.to(torch::kDouble), half.key.to(torch::kDouble),
                          half.value.to(torch::kDouble), half.windows};
    // One rounding of an output of at most about four to the storage's precision.
    EXPECT_LT(MaxDifference(result.out, NaiveOut(exact, {})), type == torch::kHalf ? 3e-3 : 2.4e-2);
    const at::Tensor leaf = half.query.detach().requires_grad_();
    const at::Tensor out = Attention(leaf, half.key, half.value, half.windows).out;
    EXPECT_THROW(out.sum().backward(), c10::ValueError);
  }
}

TEST(AttentionOperator, RefusesWrongArguments) {
  for (const at::ScalarType type : {torch::kFloat, torch::kDouble}) {
    const Inputs good = RandomInputs({}, type);
    const auto message = [](const Inputs& inputs, const AttentionOperatorOptions& options = {}) {
      try {
        Attention(inputs.query, inputs.key, inputs.value, inputs.windows, options);
      } catch (const c10::ValueError& error) {
        return std::string(error.what_without_backtrace());
      }
      return std::string("nothing thrown");
    };
    Inputs bad = good;
    bad.windows = torch::tensor({1, 0, 3, 4}, torch::kInt);
    EXPECT_THAT(message(bad), testing::HasSubstr("window"));
    bad = good;
    bad.windows = good.windows.to(torch::kLong);
    EXPECT_THAT(message(bad), testing::HasSubstr("windows must be an int32 vector"));
    bad = good;
    bad.windows = good.windows.narrow(0, 0, 3);
    EXPECT_THAT(message(bad), testing::HasSubstr("windows"));
    bad = good;
    bad.key = good.key.to(torch::kHalf);
    EXPECT_THAT(message(bad), testing::HasSubstr("key must have the type of query"));
    bad = good;
    bad.value = good.value.select(0, 0);
    EXPECT_THAT(message(bad), testing::HasSubstr("value must have four dimensions"));
    bad = good;
    bad.key = good.key.narrow(2, 0, 5);
    EXPECT_THAT(message(bad), testing::HasSubstr("has shape"));
    AttentionOperatorOptions options;
    options.sinks = -1;
    EXPECT_THAT(message(good, options), testing::HasSubstr("sinks"));
    options = {};
    options.key_begin = torch::tensor({0, 99}, torch::kInt);
    EXPECT_THAT(message(good, options), testing::HasSubstr("key_begin"));
  }
}

TEST(Rotary, TurnsPairsByTheirAngleAndBack) {
  const at::Tensor table = RotaryTable(9, 6, 10000);
  const at::Tensor x = torch::randn({2, 7, 3, 6}, torch::kDouble).requires_grad_();
  const at::Tensor out = ApplyRotary(x, table);
  for (int64_t token = 0; token < 7; ++token) {
    for (int64_t pair = 0; pair < 3; ++pair) {
      const double angle =
          static_cast<double>(token) * std::pow(10000.0, -2.0 * static_cast<double>(pair) / 6.0);
      const double a = x[1][token][2][pair].item<double>();
      const double b = x[1][token][2][pair + 3].item<double>();
      EXPECT_NEAR(out[1][token][2][pair].item<double>(), a * std::cos(angle) - b * std::sin(angle),
                  1e-12);
      EXPECT_NEAR(out[1][token][2][pair + 3].item<double>(),
                  b * std::cos(angle) + a * std::sin(angle), 1e-12);
    }
  }
  // A rotation's gradient is the rotation back, so that turning out itself returns x.
  out.backward(out.detach());
  EXPECT_LT(MaxDifference(x.grad(), x.detach()), 1e-12);
  // Views with strides of their own, in float.
  const at::Tensor strided = x.detach().to(torch::kFloat).narrow(2, 1, 2);
  EXPECT_LT(
      MaxDifference(ApplyRotary(strided, table.to(torch::kFloat)), out.detach().narrow(2, 1, 2)),
      1e-6);
  EXPECT_THROW(ApplyRotary(x, RotaryTable(6, 6, 10000)), c10::ValueError);
}

TEST(TorchParallel, RunsEachWorkerOnceOnThreadsOfTheirOwn) {
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  EXPECT_EQ(TorchParallel().worker_count(), 2);
  std::atomic<int> inside = 0;
  std::vector<int> calls(2);
  // Each worker waits for the other: serial execution would give up.
  std::atomic<bool> met = false;
  TorchParallel().RunOnWorkers([&](int worker) {
    ++calls[static_cast<size_t>(worker)];
    ++inside;
    const auto start = std::chrono::steady_clock::now();
    while (inside < 2 && std::chrono::steady_clock::now() - start < std::chrono::seconds(5)) {
    }
    if (inside == 2) met = true;
  });
  at::set_num_threads(before);
  EXPECT_TRUE(met);
  EXPECT_THAT(calls, testing::ElementsAre(1, 1));
}

TEST(TorchParallel, RethrowsTheFirstErrorByWorker) {
  try {
    TorchParallel().RunOnWorkers(
        [](int worker) { throw std::runtime_error("worker " + std::to_string(worker)); });
    FAIL() << "nothing thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "worker 0");
  }
}

TEST(AttentionTimer, CountsForwardAndBackward) {
  const Inputs inputs = RandomInputs({.queries = 200, .keys = 200}, torch::kFloat);
  const at::Tensor query = inputs.query.detach().requires_grad_();
  const double start = AttentionSeconds();
  const at::Tensor out = Attention(query, inputs.key, inputs.value, inputs.windows).out;
  const double after_forward = AttentionSeconds();
  out.sum().backward();
  EXPECT_GT(after_forward, start);
  EXPECT_GT(AttentionSeconds(), after_forward);
}

}  // namespace
}  // namespace aah
