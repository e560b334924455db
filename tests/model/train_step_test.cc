#include "aah/model/train_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "aah/model/gpt.h"
#include "aah/model/optimizer.h"
#include "tests/model/train_support.h"

namespace aah {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kContext = 16;

Gpt TinyModel(double dropout = 0) {
  ModelConfig config;
  config.layers = 2;
  config.heads = 2;
  config.width = 16;
  config.context = kContext;
  config.vocabulary = 32;
  config.dropout = dropout;
  AttentionConfig attention;
  attention.variant = "sdpa";
  return Gpt(config, MakeAttentionVariant(attention, config), 11);
}

at::Tensor Stretches(int64_t batch) {
  at::Generator generator = at::detail::createCPUGenerator(5);
  return torch::randint(32, {batch, kContext + 1}, generator, torch::kLong);
}

TEST(LearningRateTest, WarmsUpThenFollowsTheCosine) {
  const OptimizerConfig config = {
      .learning_rate = 1.0, .min_learning_rate = 0.1, .warmup_steps = 4};
  const int64_t steps = 15;
  EXPECT_DOUBLE_EQ(LearningRate(config, 0, steps), 0.25);
  EXPECT_DOUBLE_EQ(LearningRate(config, 3, steps), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate(config, 4, steps), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate(config, 9, steps), 0.55);  // half way from 4 to 14
  EXPECT_DOUBLE_EQ(LearningRate(config, 14, steps), 0.1);
  EXPECT_DOUBLE_EQ(LearningRate({.learning_rate = 1.0, .warmup_steps = 0}, 0, 1), 1.0);
}

// AdamW by its definition, in double, for one element.
struct ScalarAdamW {
  double value, mean = 0, square = 0;
  int step = 0;

  void Step(double gradient, double rate, const OptimizerConfig& config, double decay) {
    ++step;
    value -= rate * decay * value;
    mean = config.beta1 * mean + (1 - config.beta1) * gradient;
    square = config.beta2 * square + (1 - config.beta2) * gradient * gradient;
    const double mean_hat = mean / (1 - std::pow(config.beta1, step));
    const double square_hat = square / (1 - std::pow(config.beta2, step));
    value -= rate * mean_hat / (std::sqrt(square_hat) + config.epsilon);
  }
};

TEST(AdamWTest, FollowsTheDefinitionAndDecaysMatricesOnly) {
  torch::nn::Linear linear(3, 2);
  const OptimizerConfig config = {.weight_decay = 0.3, .beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-6};
  AdamW optimizer(*linear, config);
  ScalarAdamW weight{linear->weight[1][2].item<double>()};
  ScalarAdamW bias{linear->bias[1].item<double>()};
  for (int step = 0; step < 5; ++step) {
    const double gradient = 0.5 * step - 0.7;
    linear->weight.mutable_grad() = torch::full({2, 3}, gradient);
    linear->bias.mutable_grad() = torch::full({2}, -gradient);
    optimizer.Step(0.01 * (step + 1));
    weight.Step(gradient, 0.01 * (step + 1), config, 0.3);
    bias.Step(-gradient, 0.01 * (step + 1), config, 0);
  }
  // Five updates of relative error 2^-24 times a few operations each.
  EXPECT_NEAR(linear->weight[1][2].item<double>(), weight.value, 2e-6);
  EXPECT_NEAR(linear->bias[1].item<double>(), bias.value, 2e-6);
}

TEST(AdamWTest, DecaysEverythingWhenAsked) {
  torch::nn::Linear linear(3, 2);
  AdamW optimizer(*linear, {.weight_decay = 0.5, .decay_everything = true});
  const double before = linear->bias[0].item<double>();
  for (auto& parameter : linear->parameters()) {
    parameter.mutable_grad() = torch::zeros_like(parameter);
  }
  optimizer.Step(0.1);
  EXPECT_NEAR(linear->bias[0].item<double>(), before * (1 - 0.1 * 0.5), 1e-7);
}

TEST(AdamWTest, LeavesParametersWithoutGradientAlone) {
  torch::nn::Linear linear(3, 2);
  AdamW optimizer(*linear, {});
  const at::Tensor before = linear->weight.detach().clone();
  linear->bias.mutable_grad() = torch::ones({2});
  optimizer.Step(0.1);
  EXPECT_TRUE(torch::equal(linear->weight, before));
}

TEST(ClipGradientsTest, ScalesDownToTheBoundOnly) {
  torch::nn::Linear linear(1, 2);
  AdamW optimizer(*linear, {});
  linear->weight.mutable_grad() = torch::tensor({{3.0F}, {0.0F}});
  linear->bias.mutable_grad() = torch::tensor({0.0F, 4.0F});
  EXPECT_DOUBLE_EQ(ClipGradients(optimizer, 10), 5);
  EXPECT_FLOAT_EQ(linear->bias.grad()[1].item<float>(), 4);
  EXPECT_DOUBLE_EQ(ClipGradients(optimizer, 0), 5);
  EXPECT_FLOAT_EQ(linear->bias.grad()[1].item<float>(), 4);
  EXPECT_DOUBLE_EQ(ClipGradients(optimizer, 2.5), 5);
  EXPECT_FLOAT_EQ(linear->weight.grad()[0][0].item<float>(), 1.5);
  EXPECT_FLOAT_EQ(linear->bias.grad()[1].item<float>(), 2);
}

TEST(TrainStepTest, AccumulationEqualsTheLargeBatch) {
  const at::Tensor stretches = Stretches(6);
  Gpt whole = TinyModel();
  AdamW whole_optimizer(*whole, {});
  const StepOutcome expected = TrainStep(whole, whole_optimizer, stretches, {.learning_rate = 0.0});
  for (const int64_t micro : {1, 2, 3}) {
    Gpt model = TinyModel();
    AdamW optimizer(*model, {});
    const StepOutcome outcome =
        TrainStep(model, optimizer, stretches, {.micro_batch_size = micro, .learning_rate = 0.0});
    EXPECT_NEAR(outcome.loss, expected.loss, 1e-6);
    EXPECT_NEAR(outcome.grad_norm, expected.grad_norm, 1e-5 * expected.grad_norm);
    for (size_t i = 0; i < optimizer.parameters().size(); ++i) {
      const at::Tensor& gradient = optimizer.parameters()[i].value.grad();
      const at::Tensor& wanted = whole_optimizer.parameters()[i].value.grad();
      EXPECT_LE((gradient - wanted).abs().max().item<double>(),
                1e-5 * wanted.abs().max().item<double>())
          << optimizer.parameters()[i].name << " with micro-batches of " << micro;
    }
  }
}

TEST(TrainStepTest, LearnsOneBatchByHeart) {
  Gpt model = TinyModel();
  AdamW optimizer(*model, {.weight_decay = 0});
  const at::Tensor stretches = Stretches(2);
  const StepSettings settings = {.learning_rate = 2e-2, .clip_norm = 1};
  const double first = TrainStep(model, optimizer, stretches, settings).loss;
  EXPECT_NEAR(first, std::log(32.0), 0.1);
  double last = first;
  for (int step = 1; step < 60; ++step)
    last = TrainStep(model, optimizer, stretches, settings).loss;
  EXPECT_LT(last, 0.5);
}

// A rectangular array of numbers.
at::Tensor ToTensor(const nlohmann::json& array, at::ScalarType type) {
  std::vector<double> numbers;
  std::vector<int64_t> shape = {static_cast<int64_t>(array.size())};
  if (array[0].is_array()) shape.push_back(static_cast<int64_t>(array[0].size()));
  for (const nlohmann::json& row : array) {
    if (row.is_array()) {
      for (const nlohmann::json& number : row) numbers.push_back(number);
    } else {
      numbers.push_back(row);
    }
  }
  return torch::tensor(numbers, torch::kDouble).view(shape).to(type);
}

TEST(TrainStepTest, FollowsTheReferencesLossesUnderFullAttention) {
  std::ifstream stream(AAH_GOLDEN_SOURCE_DIR "/train_trajectory.json");
  const nlohmann::json file = nlohmann::json::parse(stream);
  const nlohmann::json& sizes = file.at("config");
  ModelConfig config;
  config.layers = sizes.at("n_layer");
  config.heads = sizes.at("n_head");
  config.width = sizes.at("n_embd");
  config.mlp_width = sizes.at("n_ff");
  config.context = sizes.at("seq_len");
  config.vocabulary = sizes.at("vocab_size");
  AttentionConfig attention;
  attention.variant = "sdpa";
  Gpt model(config, MakeAttentionVariant(attention, config), 1);
  for (auto& parameter : model->named_parameters()) {
    const torch::NoGradGuard no_grad;
    parameter.value().copy_(ToTensor(file.at("init").at(parameter.key()), torch::kFloat));
  }
  AdamW optimizer(*model, {.weight_decay = 0.1,
                           .decay_everything = true,
                           .beta1 = 0.9,
                           .beta2 = 0.999,
                           .epsilon = 1e-8});

  const nlohmann::json& full = file.at("cases").at(0);
  ASSERT_EQ(full.at("regime"), "full_attention");
  ASSERT_EQ(full.at("steps").size(), 24u);
  for (size_t i = 0; i < full.at("steps").size(); ++i) {
    const nlohmann::json& step = full.at("steps")[i];
    const at::Tensor stretches = ToTensor(file.at("tokens")[i], torch::kLong);
    const StepOutcome outcome =
        TrainStep(model, optimizer, stretches,
                  {.step = static_cast<int64_t>(i), .learning_rate = step.at("lr")});
    EXPECT_NEAR(outcome.loss, step.at("loss").get<double>(), 2e-3) << "step " << i;
  }
}

TEST(TrainStepTest, DropoutFollowsTheGenerator) {
  const auto loss = [](uint64_t seed) {
    Gpt model = TinyModel(/*dropout=*/0.5);
    AdamW optimizer(*model, {});
    torch::manual_seed(seed);
    return TrainStep(model, optimizer, Stretches(2), {.learning_rate = 0.0}).loss;
  };
  EXPECT_EQ(loss(1), loss(1));
  EXPECT_NE(loss(1), loss(2));
}

TEST(TrainStepTest, NamesTheParameterThatIsNotFinite) {
  Gpt model = TinyModel();
  AdamW optimizer(*model, {});
  {
    const torch::NoGradGuard no_grad;
    model->named_parameters()["blocks.1.mlp.fc1.bias"][3] = NAN;
  }
  const auto [message, kind] =
      ErrorOf([&] { TrainStep(model, optimizer, Stretches(2), {.learning_rate = 0.1}); });
  EXPECT_EQ(kind, ErrorKind::kMachine);
  EXPECT_THAT(message, HasSubstr("blocks.1.mlp.fc1.bias"));
}

TEST(TrainStepTest, NamesTheGradientThatIsNotFiniteAndLeavesTheParameters) {
  Gpt model = TinyModel();
  AdamW optimizer(*model, {});
  at::Tensor weight = model->named_parameters()["blocks.0.attn.proj.weight"];
  weight.register_hook([](const at::Tensor& gradient) {
    return torch::full_like(gradient, std::numeric_limits<float>::infinity());
  });
  const at::Tensor before = weight.detach().clone();
  const auto [message, kind] =
      ErrorOf([&] { TrainStep(model, optimizer, Stretches(2), {.learning_rate = 0.1}); });
  EXPECT_EQ(kind, ErrorKind::kMachine);
  EXPECT_THAT(message, HasSubstr("gradient of blocks.0.attn.proj.weight"));
  EXPECT_TRUE(torch::equal(weight, before));
}

}  // namespace
}  // namespace aah
