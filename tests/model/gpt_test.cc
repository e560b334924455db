#include "aah/model/gpt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "aah/error.h"

namespace aah {
namespace {

ModelConfig Tiny() {
  ModelConfig config;
  config.layers = 2;
  config.heads = 4;
  config.width = 32;
  config.context = 24;
  config.vocabulary = 50;
  return config;
}

Gpt Make(const ModelConfig& config, const AttentionConfig& attention = {}, uint64_t seed = 1) {
  return Gpt(config, MakeAttentionVariant(attention, config), seed);
}

AttentionConfig Named(const std::string& variant) {
  AttentionConfig attention;
  attention.variant = variant;
  return attention;
}

AttentionConfig Window(int32_t window) {
  AttentionConfig attention = Named("window");
  attention.window = window;
  return attention;
}

at::Tensor RandomTokens(const ModelConfig& config, int64_t batch, int64_t tokens, uint64_t seed) {
  torch::manual_seed(seed);
  return torch::randint(config.vocabulary, {batch, tokens}, torch::kLong);
}

double MaxDifference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(torch::kDouble) - b.to(torch::kDouble)).abs().max().item<double>();
}

std::string MessageOf(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadInput);
    return error.what();
  }
  return "nothing thrown";
}

TEST(Gpt, NamesItsParameters) {
  ModelConfig config = Tiny();
  config.layers = 1;
  config.tied_head = false;
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& parameter : Make(config)->named_parameters()) {
    shapes[parameter.key()] = parameter.value().sizes().vec();
  }
  const std::map<std::string, std::vector<int64_t>> expected = {
      {"wte.weight", {50, 32}},
      {"wpe.weight", {24, 32}},
      {"blocks.0.ln1.weight", {32}},
      {"blocks.0.ln1.bias", {32}},
      {"blocks.0.attn.qkv.weight", {96, 32}},
      {"blocks.0.attn.proj.weight", {32, 32}},
      {"blocks.0.ln2.weight", {32}},
      {"blocks.0.ln2.bias", {32}},
      {"blocks.0.mlp.fc1.weight", {128, 32}},
      {"blocks.0.mlp.fc1.bias", {128}},
      {"blocks.0.mlp.fc2.weight", {32, 128}},
      {"blocks.0.mlp.fc2.bias", {32}},
      {"ln_f.weight", {32}},
      {"ln_f.bias", {32}},
      {"lm_head.weight", {50, 32}},
  };
  EXPECT_EQ(shapes, expected);
}

TEST(Gpt, HasAsManyParametersAsTheFormulaSays) {
  ModelConfig grouped = Tiny();
  grouped.kv_heads = 2;
  grouped.positions = Positions::kRope;
  ModelConfig untied = Tiny();
  untied.tied_head = false;
  untied.mlp_width = 40;
  for (const ModelConfig& config : {Tiny(), grouped, untied}) {
    int64_t count = 0;
    for (const at::Tensor& parameter : Make(config)->parameters()) count += parameter.numel();
    EXPECT_EQ(count, ParameterCount(config));
  }
}

TEST(Gpt, StartsNearLogVocabularyWithGpt2Initialisation) {
  const ModelConfig config = Tiny();
  const at::Tensor tokens = RandomTokens(config, 4, 25, 3);
  const double loss =
      Make(config)->Loss(tokens.narrow(1, 0, 24), tokens.narrow(1, 1, 24)).item<double>();
  EXPECT_NEAR(loss, std::log(50.0), 0.1);
}

TEST(Gpt, PaperInitialisationStartsFarAbove) {
  ModelConfig config = Tiny();
  config.initialisation = Initialisation::kPaper;
  Gpt model = Make(config);
  EXPECT_NEAR(model->named_parameters()["wte.weight"].std().item<double>(), 1.0, 0.1);
  // Uniform on +-1/sqrt(32).
  const at::Tensor qkv = model->named_parameters()["blocks.0.attn.qkv.weight"];
  EXPECT_LE(qkv.abs().max().item<double>(), 1 / std::sqrt(32.0));
  EXPECT_GT(qkv.abs().max().item<double>(), 0.9 / std::sqrt(32.0));
  const at::Tensor tokens = RandomTokens(config, 4, 25, 3);
  EXPECT_GT(model->Loss(tokens.narrow(1, 0, 24), tokens.narrow(1, 1, 24)).item<double>(),
            2 * std::log(50.0));
}

TEST(Gpt, SameSeedSameWeightsWhateverTheVariant) {
  const ModelConfig config = Tiny();
  torch::manual_seed(1);
  Gpt full = Make(config, Named("full"), 5);
  torch::manual_seed(2);
  Gpt window = Make(config, Window(4), 5);
  Gpt other = Make(config, Named("full"), 6);
  for (const auto& parameter : full->named_parameters()) {
    EXPECT_TRUE(parameter.value().equal(window->named_parameters()[parameter.key()]));
  }
  EXPECT_FALSE(
      full->named_parameters()["wte.weight"].equal(other->named_parameters()["wte.weight"]));
}

void ExpectFullEqualsSdpa(const ModelConfig& config, at::ScalarType type, double bound) {
  const at::Tensor tokens = RandomTokens(config, 3, config.context + 1, 4);
  const at::Tensor inputs = tokens.narrow(1, 0, config.context);
  const at::Tensor targets = tokens.narrow(1, 1, config.context);
  Gpt full = Make(config, Named("full"));
  Gpt sdpa = Make(config, Named("sdpa"));
  full->to(type);
  sdpa->to(type);
  const at::Tensor full_loss = full->Loss(inputs, targets);
  const at::Tensor sdpa_loss = sdpa->Loss(inputs, targets);
  EXPECT_LT(MaxDifference(full_loss, sdpa_loss), bound);
  full_loss.backward();
  sdpa_loss.backward();
  for (const auto& parameter : full->named_parameters()) {
    const at::Tensor other = sdpa->named_parameters()[parameter.key()].grad();
    EXPECT_LT(MaxDifference(parameter.value().grad(), other), bound) << parameter.key();
  }
}

TEST(Gpt, FullEqualsSdpaInLossAndGradients) {
  ModelConfig rope = Tiny();
  rope.positions = Positions::kRope;
  rope.kv_heads = 2;
  for (const ModelConfig& config : {Tiny(), rope}) {
    ExpectFullEqualsSdpa(config, torch::kDouble, 1e-7);
    ExpectFullEqualsSdpa(config, torch::kFloat, 2e-6);
  }
}

TEST(Gpt, LossIsTheCrossEntropyOfItsLogits) {
  ModelConfig config = Tiny();
  for (const bool tied : {true, false}) {
    config.tied_head = tied;
    const at::Tensor tokens = RandomTokens(config, 2, 25, 6);
    const at::Tensor inputs = tokens.narrow(1, 0, 24);
    const at::Tensor targets = tokens.narrow(1, 1, 24);
    Gpt ours = Make(config);
    Gpt plain = Make(config);
    ours->to(torch::kDouble);
    plain->to(torch::kDouble);
    const at::Tensor loss = ours->Loss(inputs, targets);
    const at::Tensor expected = torch::nn::functional::cross_entropy(
        plain->forward(inputs).flatten(0, 1), targets.flatten());
    EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-12);
    (2 * loss).backward();
    (2 * expected).backward();
    for (const auto& parameter : ours->named_parameters()) {
      const at::Tensor other = plain->named_parameters()[parameter.key()].grad();
      EXPECT_LT(MaxDifference(parameter.value().grad(), other), 1e-12) << parameter.key();
    }
    const PositionScores scores = ours->ScorePositions(inputs, targets);
    const at::Tensor losses = scores.losses;
    EXPECT_EQ(losses.sizes(), inputs.sizes());
    const at::NoGradGuard below;
    EXPECT_TRUE(scores.correct.equal(ours->forward(inputs).argmax(2).eq(targets)));
    EXPECT_FALSE(losses.requires_grad());
    EXPECT_NEAR(losses.mean().item<double>(), expected.item<double>(), 1e-12);
    const at::NoGradGuard no_grad;
    EXPECT_NEAR(ours->Loss(inputs, targets).item<double>(), expected.item<double>(), 1e-12);
  }
}

TEST(Gpt, ScoredPositionsAloneCount) {
  Gpt model = Make(Tiny());
  model->to(torch::kDouble);
  const at::Tensor tokens = RandomTokens(Tiny(), 3, 25, 9);
  const at::Tensor inputs = tokens.narrow(1, 0, 24);
  const at::Tensor targets = tokens.narrow(1, 1, 24);
  const at::Tensor scored = torch::tensor({5, 9, 23}, torch::kLong);
  const at::Tensor loss = model->Loss(inputs, targets, scored);
  loss.backward();
  const at::Tensor gradient = model->named_parameters()["wte.weight"].grad().clone();
  model->zero_grad();

  const at::Tensor logits = model->forward(inputs).index_select(1, scored).flatten(0, 1);
  const at::Tensor expected =
      torch::nn::functional::cross_entropy(logits, targets.index_select(1, scored).flatten());
  expected.backward();
  EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-12);
  EXPECT_LT(MaxDifference(gradient, model->named_parameters()["wte.weight"].grad()), 1e-12);

  const PositionScores all = model->ScorePositions(inputs, targets);
  const PositionScores some = model->ScorePositions(inputs, targets, scored);
  EXPECT_TRUE(some.losses.allclose(all.losses.index_select(1, scored), 1e-12));
  EXPECT_TRUE(some.correct.equal(all.correct.index_select(1, scored)));
}

TEST(Gpt, LossOverSeveralChunksOfRows) {
  ModelConfig config = Tiny();
  config.vocabulary = 1 << 16;  // 64 rows of logits at a time
  config.layers = 1;
  config.heads = 1;
  config.width = 8;
  const at::Tensor tokens = RandomTokens(config, 7, 25, 6);
  const at::Tensor inputs = tokens.narrow(1, 0, 24);
  const at::Tensor targets = tokens.narrow(1, 1, 24);
  Gpt ours = Make(config);
  Gpt plain = Make(config);
  const at::Tensor loss = ours->Loss(inputs, targets);
  const at::Tensor expected =
      torch::nn::functional::cross_entropy(plain->forward(inputs).flatten(0, 1), targets.flatten());
  EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-5);
  loss.backward();
  expected.backward();
  EXPECT_LT(MaxDifference(ours->named_parameters()["wte.weight"].grad(),
                          plain->named_parameters()["wte.weight"].grad()),
            1e-6);
}

TEST(Gpt, WindowsHideTokensOutsideEveryReceptiveField) {
  const ModelConfig config = Tiny();
  // Two layers of window 4 see 2 * 3 tokens back: token 9 reaches up to position 15.
  Gpt model = Make(config, Window(4));
  model->eval();
  const at::Tensor tokens = RandomTokens(config, 1, 24, 7);
  at::Tensor changed = tokens.clone();
  changed[0][9] = (tokens[0][9] + 1) % config.vocabulary;
  const at::Tensor difference =
      (model->forward(tokens) - model->forward(changed)).abs().amax(-1)[0];
  for (int64_t position = 0; position < 24; ++position) {
    const double moved = difference[position].item<double>();
    if (position >= 9 && position <= 15) {
      EXPECT_GT(moved, 0) << position;
    } else {
      EXPECT_EQ(moved, 0) << position;
    }
  }
}

TEST(Gpt, DropoutActsInTrainingOnly) {
  ModelConfig config = Tiny();
  config.dropout = 0.5;
  Gpt model = Make(config);
  const at::Tensor tokens = RandomTokens(config, 1, 24, 7);
  torch::manual_seed(1);
  const at::Tensor first = model->forward(tokens);
  EXPECT_FALSE(first.equal(model->forward(tokens)));
  torch::manual_seed(1);
  EXPECT_TRUE(first.equal(model->forward(tokens)));
  model->eval();
  EXPECT_TRUE(model->forward(tokens).equal(model->forward(tokens)));
}

TEST(Gpt, RefusesTokensItCannotRead) {
  const ModelConfig config = Tiny();
  Gpt model = Make(config);
  at::Tensor tokens = RandomTokens(config, 1, 24, 7);
  tokens[0][3] = 50;
  EXPECT_THAT(MessageOf([&] { model->forward(tokens); }), testing::HasSubstr("to 50"));
  EXPECT_THAT(MessageOf([&] { model->forward(RandomTokens(config, 1, 25, 7)); }),
              testing::HasSubstr("at most model.context, 24, tokens, got 25"));
  const at::Tensor good = RandomTokens(config, 1, 24, 7);
  EXPECT_THAT(MessageOf([&] { model->Loss(good, tokens); }), testing::HasSubstr("target ids"));
  EXPECT_THAT(MessageOf([&] { model->Loss(good, good.narrow(1, 0, 5)); }),
              testing::HasSubstr("shape"));
}

TEST(ModelConfig, RefusesWhatDoesNotFit) {
  const auto refused = [](const std::function<void(ModelConfig&)>& change) {
    ModelConfig config = Tiny();
    change(config);
    return MessageOf([&] { CheckModelConfig(config); });
  };
  EXPECT_EQ(refused([](ModelConfig&) {}), "nothing thrown");
  EXPECT_EQ(refused([](ModelConfig& c) { c.heads = 5; }),
            "model.heads must divide model.width, got 5 heads and a width of 32");
  EXPECT_EQ(refused([](ModelConfig& c) { c.kv_heads = 3; }),
            "model.kv_heads must divide model.heads, got 3 kv_heads and 4 heads");
  EXPECT_THAT(refused([](ModelConfig& c) { c.layers = 0; }), testing::HasSubstr("model.layers"));
  EXPECT_THAT(refused([](ModelConfig& c) { c.context = -1; }), testing::HasSubstr("got -1"));
  EXPECT_THAT(refused([](ModelConfig& c) { c.dropout = 1; }), testing::HasSubstr("[0, 1)"));
  EXPECT_THAT(refused([](ModelConfig& c) { c.dropout = std::nan(""); }),
              testing::HasSubstr("[0, 1)"));
  EXPECT_THAT(refused([](ModelConfig& c) {
                c.heads = 32;
                c.positions = Positions::kRope;
              }),
              testing::HasSubstr("even head_dim"));
}

// The golden file's initial weights load by name and give its first loss.
TEST(Gpt, StartsAtTheReferencesLossWithTheReferencesWeights) {
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
  Gpt model = Make(config);
  model->to(torch::kDouble);  // the head_dim of 6 is the reference kernel's alone
  {
    const at::NoGradGuard no_grad;
    for (auto& parameter : model->named_parameters()) {
      std::vector<double> numbers;
      for (const nlohmann::json& row : file.at("init").at(parameter.key())) {
        for (const nlohmann::json& number : row) numbers.push_back(number);
      }
      parameter.value().copy_(torch::tensor(numbers, torch::kDouble).view_as(parameter.value()));
    }
  }
  std::vector<int64_t> ids;
  for (const nlohmann::json& row : file.at("tokens").at(0)) {
    for (const nlohmann::json& id : row) ids.push_back(id);
  }
  const at::Tensor tokens = torch::tensor(ids, torch::kLong).view({-1, config.context + 1});
  const double loss =
      model->Loss(tokens.narrow(1, 0, config.context), tokens.narrow(1, 1, config.context))
          .item<double>();
  const nlohmann::json& full_attention = file.at("cases").at(0);
  ASSERT_EQ(full_attention.at("regime"), "full_attention");
  EXPECT_NEAR(loss, full_attention.at("steps").at(0).at("loss").get<double>(), 1e-5);
}

}  // namespace
}  // namespace aah
