#include "aah/model/attention_variant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <string>
#include <vector>

#include "aah/error.h"
#include "aah/model/attention_timer.h"
#include "aah/model/operator.h"

namespace aah {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Table = std::vector<std::vector<int32_t>>;

ModelConfig Model() {
  ModelConfig config;
  config.layers = 4;
  config.heads = 2;
  config.width = 16;
  config.context = 32;
  return config;
}

AttentionConfig Named(const std::string& variant) {
  AttentionConfig attention;
  attention.variant = variant;
  return attention;
}

AttentionInputs RandomInputs(int64_t layer) {
  torch::manual_seed(3);
  return {layer, torch::randn({1, 2, 20, 8}), torch::randn({1, 2, 20, 8}),
          torch::randn({1, 2, 20, 8}), true};
}

std::string Refusal(const AttentionConfig& attention) {
  try {
    MakeAttentionVariant(attention, Model());
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadInput);
    return error.what();
  }
  return "nothing thrown";
}

TEST(AttentionVariants, NamesOfTheTable) {
  std::vector<std::string> names;
  for (const AttentionVariantEntry& entry : AttentionVariants()) names.emplace_back(entry.name);
  EXPECT_THAT(names,
              ElementsAre("full", "sdpa", "window", "windows", "aah", "learned", "aah_learned"));
}

TEST(AttentionVariants, WindowsInForce) {
  const Table full(4, {32, 32});
  EXPECT_EQ(MakeAttentionVariant(Named("full"), Model())->windows(), full);
  EXPECT_EQ(MakeAttentionVariant(Named("sdpa"), Model())->windows(), full);
  AttentionConfig window = Named("window");
  window.window = 7;
  window.sinks = 2;
  EXPECT_EQ(MakeAttentionVariant(window, Model())->windows(), Table(4, {7, 7}));
  EXPECT_EQ(MakeAttentionVariant(window, Model())->sinks(), 2);
  AttentionConfig windows = Named("windows");
  windows.windows = {{1, 5}, {8, 1000}};  // repeated over the layers, clamped to the context
  EXPECT_EQ(MakeAttentionVariant(windows, Model())->windows(),
            (Table{{1, 5}, {8, 32}, {1, 5}, {8, 32}}));
}

TEST(AttentionVariants, EachLayerAttendsWithItsOwnWindows) {
  AttentionConfig attention = Named("windows");
  attention.windows = {{1, 5}, {8, 1000}};
  attention.sinks = 1;
  const auto variant = MakeAttentionVariant(attention, Model());
  const std::vector<at::Tensor> windows = {torch::tensor({1, 5}, torch::kInt),
                                           torch::tensor({8, 20}, torch::kInt)};
  for (int64_t layer = 0; layer < 4; ++layer) {
    const AttentionInputs inputs = RandomInputs(layer);
    AttentionOperatorOptions options;
    options.sinks = 1;
    const at::Tensor expected = Attention(inputs.query, inputs.key, inputs.value,
                                          windows[static_cast<size_t>(layer % 2)], options)
                                    .out;
    EXPECT_TRUE(variant->Attend(inputs).equal(expected));
  }
}

TEST(AttentionVariants, TimeOfSdpaIsCountedInBothDirections) {
  const auto variant = MakeAttentionVariant(Named("sdpa"), Model());
  AttentionInputs inputs = RandomInputs(0);
  inputs.query.requires_grad_();
  const double start = AttentionSeconds();
  const at::Tensor out = variant->Attend(inputs);
  const double after_forward = AttentionSeconds();
  out.sum().backward();
  EXPECT_GT(after_forward, start);
  EXPECT_GT(AttentionSeconds(), after_forward);
}

TEST(AttentionVariants, RefusesWhatDoesNotFit) {
  EXPECT_THAT(Refusal(Named("windw")), HasSubstr("did you mean 'window'?"));
  EXPECT_THAT(Refusal(Named("window")), HasSubstr("attention.window must be at least 1"));
  EXPECT_THAT(Refusal(Named("windows")), HasSubstr("divides model.layers, 4"));
  AttentionConfig bad = Named("windows");
  bad.windows = {{1, 2}, {3, 4}, {5, 6}};
  EXPECT_THAT(Refusal(bad), HasSubstr("got 3"));
  bad.windows = {{1, 2}, {3}};
  EXPECT_THAT(Refusal(bad),
              HasSubstr("row 1 of attention.windows must have model.heads, 2, windows, got 1"));
  bad.windows = {{1, 0}};
  EXPECT_THAT(Refusal(bad), HasSubstr("windows of at least 1"));
  bad = Named("window");
  bad.window = 4;
  bad.sinks = -1;
  EXPECT_THAT(Refusal(bad), HasSubstr("attention.sinks"));
  bad = Named("sdpa");
  bad.sinks = 3;
  EXPECT_THAT(Refusal(bad), HasSubstr("'sdpa' has no use for it"));
  bad = Named("full");
  bad.window = 4;
  EXPECT_THAT(Refusal(bad), HasSubstr("attention.window is set"));
}

// A policy that shortens its windows from step to step and keeps what it is told.
class ShrinkingWindows final : public WindowPolicy {
 public:
  void BeginStep(int64_t step, int64_t /*micro_batches*/) override {
    window_ = static_cast<int32_t>(8 >> step);
  }
  std::span<const int32_t> Decide(const AttentionInputs& inputs) override {
    windows_.assign(static_cast<size_t>(inputs.query.size(1)), window_);
    return windows_;
  }
  bool WantsStatistics(const AttentionInputs& inputs) const override { return inputs.layer == 1; }
  void Observe(const AttentionInputs& inputs, const LayerStatistics& statistics) override {
    EXPECT_EQ(inputs.layer, 1);
    norm = statistics.norm;
  }
  Table windows() const override { return Table(2, {window_, window_}); }
  PolicyState Save() const override { return {{{"window", torch::tensor(window_)}}, "{}"}; }
  void Restore(const PolicyState& state) override {
    window_ = state.tensors.at("window").item<int32_t>();
  }

  at::Tensor norm;

 private:
  int32_t window_ = 0;
  std::vector<int32_t> windows_;
};

TEST(WindowPolicy, ChangesWindowsEachStepAndSeesStatistics) {
  auto policy = std::make_unique<ShrinkingWindows>();
  const ShrinkingWindows* seen = policy.get();
  const auto variant = MakeWindowedAttention(std::move(policy), 0);
  for (int64_t step = 0; step < 4; ++step) {
    variant->BeginStep({.step = step});
    EXPECT_EQ(variant->windows()[0][0], 8 >> step);
    const AttentionInputs inputs = RandomInputs(1);
    const at::Tensor expected =
        Attention(inputs.query, inputs.key, inputs.value,
                  torch::full({2}, static_cast<int32_t>(8 >> step), torch::kInt))
            .out;
    EXPECT_TRUE(variant->Attend(inputs).equal(expected));
    const at::Tensor norm = expected.norm(2, -1).mean(c10::IntArrayRef{0, 2});
    EXPECT_TRUE(seen->norm.allclose(norm));
    variant->Attend(RandomInputs(0));
  }
}

TEST(WindowPolicy, GradientsUseTheWindowsOfTheirForwardPass) {
  const auto variant = MakeWindowedAttention(std::make_unique<ShrinkingWindows>(), 0);
  variant->BeginStep({.step = 1});
  AttentionInputs inputs = RandomInputs(0);
  inputs.query.requires_grad_();
  const at::Tensor out = variant->Attend(inputs);
  variant->BeginStep({.step = 3});
  variant->Attend(RandomInputs(0));
  out.sum().backward();
  const at::Tensor query = inputs.query.detach().clone().requires_grad_();
  Attention(query, inputs.key, inputs.value, torch::full({2}, 4, torch::kInt)).out.sum().backward();
  EXPECT_TRUE(inputs.query.grad().equal(query.grad()));
}

TEST(WindowPolicy, StateGoesThroughTheVariant) {
  const auto variant = MakeWindowedAttention(std::make_unique<ShrinkingWindows>(), 0);
  variant->BeginStep({.step = 2});
  const auto other = MakeWindowedAttention(std::make_unique<ShrinkingWindows>(), 0);
  other->Restore(variant->Save());
  EXPECT_EQ(other->windows()[0][0], 2);
  // Variants without state have none to save, and refuse one that is not theirs.
  const auto full = MakeAttentionVariant(Named("full"), Model());
  EXPECT_TRUE(full->Save().tensors.empty());
  EXPECT_THROW(full->Restore(variant->Save()), Error);
  const auto sdpa = MakeAttentionVariant(Named("sdpa"), Model());
  EXPECT_THROW(sdpa->Restore(variant->Save()), Error);
}

}  // namespace
}  // namespace aah
