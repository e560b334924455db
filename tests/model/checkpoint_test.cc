#include "aah/model/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "aah/model/train_step.h"
#include "aah/model/window_policy.h"
#include "aah/text/sha256.h"
#include "tests/model/train_support.h"

namespace aah {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ModelConfig TinyConfig() {
  ModelConfig config;
  config.layers = 1;
  config.heads = 2;
  config.width = 16;
  config.context = 8;
  config.vocabulary = 16;
  config.dropout = 0.25;
  return config;
}

Gpt MakeTiny(const ModelConfig& config, uint64_t seed = 1) {
  AttentionConfig attention;
  attention.variant = "sdpa";
  return Gpt(config, MakeAttentionVariant(attention, config), seed);
}

void Steps(Gpt& model, AdamW& optimizer, int64_t count) {
  for (int64_t step = 0; step < count; ++step) {
    const at::Tensor tokens = torch::arange(18).remainder(16).view({2, 9}).to(torch::kLong);
    TrainStep(model, optimizer, tokens, {.step = step, .learning_rate = 1e-2, .clip_norm = 1});
  }
}

CheckpointState SomeState() {
  return {.step = 3,
          .samples = 6,
          .config = "seed: 1\n",
          .content_hash = "c0ffee",
          .tokenizer_hash = "beef",
          .logs = {.metrics = 10, .windows = 20, .events = 30}};
}

void ExpectEqualParameters(Gpt& model, Gpt& other) {
  auto parameters = other->named_parameters();
  for (const auto& item : model->named_parameters()) {
    EXPECT_TRUE(torch::equal(item.value(), parameters[item.key()])) << item.key();
  }
}

TEST(CheckpointTest, GoesOnBitIdenticalAfterLoading) {
  const TemporaryFolder folder;
  torch::manual_seed(3);
  Gpt model = MakeTiny(TinyConfig());
  AdamW optimizer(*model, {});
  Steps(model, optimizer, 3);
  SaveCheckpoint(folder / "step-3", model, optimizer, SomeState());
  Steps(model, optimizer, 3);

  torch::manual_seed(4);
  Gpt other = MakeTiny(TinyConfig(), 2);
  AdamW other_optimizer(*other, {});
  LoadCheckpoint(folder / "step-3", other, other_optimizer);
  Steps(other, other_optimizer, 3);
  ExpectEqualParameters(model, other);
  for (size_t i = 0; i < optimizer.parameters().size(); ++i) {
    EXPECT_TRUE(torch::equal(optimizer.parameters()[i].exp_avg_sq,
                             other_optimizer.parameters()[i].exp_avg_sq));
    EXPECT_EQ(other_optimizer.parameters()[i].steps.item<float>(), 6);
  }
}

TEST(CheckpointTest, StateComesBack) {
  const TemporaryFolder folder;
  Gpt model = MakeTiny(TinyConfig());
  const AdamW optimizer(*model, {});
  SaveCheckpoint(folder / "x", model, optimizer, SomeState());
  const CheckpointState state = ReadCheckpointState(folder / "x");
  EXPECT_EQ(state.step, 3);
  EXPECT_EQ(state.samples, 6);
  EXPECT_EQ(state.config, "seed: 1\n");
  EXPECT_EQ(state.content_hash, "c0ffee");
  EXPECT_EQ(state.tokenizer_hash, "beef");
  EXPECT_EQ(state.logs.metrics, 10);
  EXPECT_EQ(state.logs.events, 30);
}

// A variant with a state, as an adaptive policy has.
class CountingVariant final : public AttentionVariant {
 public:
  at::Tensor Attend(const AttentionInputs& inputs) override { return inputs.value.clone(); }
  std::vector<std::vector<int32_t>> windows() const override { return {{1, 1}}; }
  PolicyState Save() const override {
    return {.tensors = {{"ema", torch::tensor({1.5, 2.5}, torch::kDouble)}}, .json = "{\"n\":4}"};
  }
  void Restore(const PolicyState& state) override { restored = state; }

  PolicyState restored;
};

TEST(CheckpointTest, TheStateOfTheAttentionComesBack) {
  const TemporaryFolder folder;
  Gpt model(TinyConfig(), std::make_unique<CountingVariant>(), 1);
  AdamW optimizer(*model, {});
  SaveCheckpoint(folder / "x", model, optimizer, SomeState());
  auto variant = std::make_unique<CountingVariant>();
  const CountingVariant& kept = *variant;
  Gpt other(TinyConfig(), std::move(variant), 1);
  AdamW other_optimizer(*other, {});
  LoadCheckpoint(folder / "x", other, other_optimizer);
  EXPECT_EQ(kept.restored.json, "{\"n\":4}");
  ASSERT_EQ(kept.restored.tensors.size(), 1u);
  EXPECT_EQ(kept.restored.tensors.at("ema")[1].item<double>(), 2.5);

  Gpt plain = MakeTiny(TinyConfig());
  EXPECT_THAT(ErrorOf([&] { LoadAttentionState(folder / "x", plain); }).first,
              HasSubstr("another attention variant"));
}

TEST(CheckpointTest, RefusesAnotherShapeAndOtherTensors) {
  const TemporaryFolder folder;
  Gpt model = MakeTiny(TinyConfig());
  SaveCheckpoint(folder / "x", model, AdamW(*model, {}), SomeState());
  ModelConfig wider = TinyConfig();
  wider.vocabulary = 24;
  Gpt other = MakeTiny(wider);
  EXPECT_THAT(ErrorOf([&] { LoadModelWeights(folder / "x", other); }).first,
              AllOf(HasSubstr("wte.weight"), HasSubstr("24"), HasSubstr("16")));
  ModelConfig rotary = TinyConfig();
  rotary.positions = Positions::kRope;
  Gpt without_table = MakeTiny(rotary);
  EXPECT_THAT(ErrorOf([&] { LoadModelWeights(folder / "x", without_table); }).first,
              HasSubstr("wpe.weight"));
}

TEST(CheckpointTest, RefusesDamagedAndMissingFiles) {
  const TemporaryFolder folder;
  Gpt model = MakeTiny(TinyConfig());
  AdamW optimizer(*model, {});
  const std::string path = folder / "x";
  SaveCheckpoint(path, model, optimizer, SomeState());
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    const std::string file = path + "/" + name;
    const std::string text = FileText(file);
    std::filesystem::resize_file(file, text.size() / 2);
    const auto damaged = ErrorOf([&] { LoadCheckpoint(path, model, optimizer); });
    EXPECT_EQ(damaged.second, ErrorKind::kBadInput);
    EXPECT_THAT(damaged.first, HasSubstr(name));
    std::filesystem::remove(file);
    EXPECT_THAT(ErrorOf([&] { LoadCheckpoint(path, model, optimizer); }).first, HasSubstr(name));
    std::ofstream(file, std::ios::binary) << text;
  }
  LoadCheckpoint(path, model, optimizer);
  std::ofstream(path + "/state.json") << R"({"format": "aah-checkpoint", "version": 2})";
  EXPECT_THAT(ErrorOf([&] { ReadCheckpointState(path); }).first,
              AllOf(HasSubstr("version 1"), HasSubstr("got 2")));
  std::ofstream(path + "/state.json") << R"({"format": "other", "version": 1})";
  EXPECT_THAT(ErrorOf([&] { ReadCheckpointState(path); }).first, HasSubstr("'other'"));
}

// The last byte of either file lies in tensor data, where safetensors sees no difference.
TEST(CheckpointTest, RefusesAFlippedBitInTensorData) {
  const TemporaryFolder folder;
  Gpt model = MakeTiny(TinyConfig());
  AdamW optimizer(*model, {});
  const std::string path = folder / "x";
  SaveCheckpoint(path, model, optimizer, SomeState());
  const std::string state = FileText(path + "/state.json");
  const std::string without_hashes = [&] {
    const size_t begin = state.find("\"files\"");
    const size_t end = state.find('}', begin) + 2;  // with the comma
    return state.substr(0, begin) + state.substr(end);
  }();
  const auto load = [&] { LoadCheckpoint(path, model, optimizer); };
  for (const std::string name : {"model.safetensors", "optimizer.safetensors"}) {
    const std::string text = FileText(path + "/" + name);
    std::string damaged = text;
    damaged.back() ^= 4;
    std::ofstream(path + "/" + name, std::ios::binary) << damaged;
    const at::Tensor before = model->named_parameters()["wte.weight"].clone();
    const auto [message, kind] = ErrorOf(load);
    EXPECT_EQ(kind, ErrorKind::kBadInput);
    EXPECT_THAT(message, AllOf(HasSubstr("x/" + name + ": the file is damaged: expected SHA-256 "),
                               HasSubstr(ToHex(Sha256Of(text))),
                               HasSubstr(", got " + ToHex(Sha256Of(damaged))),
                               HasSubstr("; copy the checkpoint again")));
    EXPECT_TRUE(torch::equal(model->named_parameters()["wte.weight"], before));
    EXPECT_THAT(ErrorOf([&] {
                  LoadModelWeights(path, model);
                  LoadAttentionState(path, model);
                }).first,
                HasSubstr(name));
    std::ofstream(path + "/state.json") << without_hashes;
    load();
    std::ofstream(path + "/state.json") << state;
    std::ofstream(path + "/" + name, std::ios::binary) << text;
  }
  load();
}

TEST(CheckpointTest, OneFromBeforeControllersHasNoGroups) {
  const TemporaryFolder folder;
  Gpt model = MakeTiny(TinyConfig());
  const AdamW optimizer(*model, {});
  const std::string path = folder / "x";
  CheckpointState state = SomeState();
  state.logs.groups = 77;
  SaveCheckpoint(path, model, optimizer, state);
  EXPECT_EQ(ReadCheckpointState(path).logs.groups, 77);
  std::string text = FileText(path + "/state.json");
  const size_t begin = text.find("\"groups\"");
  text.erase(begin, text.find("77", begin) + 3 - begin);  // with the comma
  std::ofstream(path + "/state.json") << text;
  EXPECT_EQ(ReadCheckpointState(path).logs.groups, 0);
  EXPECT_EQ(ReadCheckpointState(path).logs.metrics, state.logs.metrics);
}

TEST(CheckpointTest, IsNeverWrittenOver) {
  const TemporaryFolder folder;
  Gpt model = MakeTiny(TinyConfig());
  const AdamW optimizer(*model, {});
  SaveCheckpoint(folder / "x", model, optimizer, SomeState());
  const std::string before = FileText(folder / "x/state.json");
  CheckpointState later = SomeState();
  later.step = 9;
  ErrorOf([&] { SaveCheckpoint(folder / "x", model, optimizer, later); });
  EXPECT_EQ(FileText(folder / "x/state.json"), before);
}

TEST(CheckpointTest, FindsTheNewestOfARun) {
  const TemporaryFolder folder;
  Gpt model = MakeTiny(TinyConfig());
  const AdamW optimizer(*model, {});
  EXPECT_THAT(ErrorOf([&] { FindCheckpoint(folder / "run"); }).first, HasSubstr("not exist"));
  std::filesystem::create_directories(folder / "run/checkpoints");
  EXPECT_THAT(ErrorOf([&] { FindCheckpoint(folder / "run"); }).first, HasSubstr("run folder"));
  std::ofstream(folder / "run/config.yaml") << "seed: 1\n";
  EXPECT_THAT(ErrorOf([&] { FindCheckpoint(folder / "run"); }).first, HasSubstr("no checkpoint"));
  SaveCheckpoint(folder / "run/checkpoints/step-9", model, optimizer, SomeState());
  SaveCheckpoint(folder / "run/checkpoints/step-10", model, optimizer, SomeState());
  EXPECT_EQ(FindCheckpoint(folder / "run"), folder / "run/checkpoints/step-10");
  EXPECT_EQ(FindCheckpoint(folder / "run/checkpoints/step-9"), folder / "run/checkpoints/step-9");
}

}  // namespace
}  // namespace aah
