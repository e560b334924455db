#include "layers/learned/scorer_logits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "aah/error.h"
#include "aah/model/learned_attention.h"
#include "aah/model/operator.h"
#include "aah/random.h"
#include "aah/regime.h"
#include "layers/learned/scorer_network.h"
#include "tests/model/train_support.h"

namespace aah {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kLayers = 2;
constexpr int64_t kHeads = 6;
constexpr int64_t kTokens = 32;
constexpr int64_t kSteps = 40;  // warm-up 0 to 3, search 4 to 15, then the plan
constexpr double kEpsilon = std::numeric_limits<float>::epsilon();

ModelConfig Model(int64_t kv_heads = kHeads) {
  ModelConfig model;
  model.layers = kLayers;
  model.heads = kHeads;
  model.kv_heads = kv_heads;
  model.width = 8 * kHeads;
  model.context = kTokens;
  return model;
}

ControlOptions Control(const std::string& regime = "full_adaptive") {
  ControlOptions control;
  control.regime = regime;
  control.windows = {4, 8, 16, 32};
  control.control_interval = 3;
  control.hierarchy.min_group_size = 1;
  control.seed = 5;
  return control;
}

LearnedOptions Learned() {
  LearnedOptions learned;
  learned.candidates = {4, 8, 16, 32};
  learned.budget = 0.5;
  learned.warmup = 0.1;
  learned.search = 0.3;
  learned.track_every = 5;
  return learned;
}

std::unique_ptr<ScorerLogits> MakeLogits(const ControlOptions& control = Control(),
                                         WindowShare share = WindowShare::kHead,
                                         int64_t kv_heads = kHeads) {
  return std::make_unique<ScorerLogits>(control, PlanModelOf(Model(kv_heads)).shape, kTokens,
                                        /*sinks=*/1, share, /*learning_rate=*/3e-3);
}

// LearnedAttention with scorers that the test can look at.
struct Scored {
  explicit Scored(const ControlOptions& control = Control(), int64_t kv_heads = kHeads,
                  const LearnedOptions& learned = Learned()) {
    at::set_num_threads(1);  // the sizes are tiny
    std::unique_ptr<ScorerLogits> made = MakeLogits(control, learned.share, kv_heads);
    logits = made.get();
    attention = std::make_unique<LearnedAttention>(learned, Model(kv_heads), 1, std::move(made));
  }
  void Begin(int64_t step, int64_t micro_batches = 1) const {
    attention->BeginStep({.step = step, .steps = kSteps, .micro_batches = micro_batches});
  }

  std::unique_ptr<LearnedAttention> attention;
  ScorerLogits* logits;
};

// Heads of different sizes, so that there are groups to find.
AttentionInputs Inputs(int64_t layer, int64_t seed, bool training = true, int64_t kv_heads = kHeads,
                       at::ScalarType type = at::kFloat) {
  torch::manual_seed(static_cast<uint64_t>(100 * seed + layer));
  const auto draw = [&](int64_t heads) {
    const at::Tensor scale = torch::exp2(torch::arange(heads).to(type) - 2);
    return torch::randn({2, kTokens, heads, 8}, type).transpose(1, 2) *
           scale.view({1, heads, 1, 1});
  };
  const at::Tensor query = draw(kHeads);
  const at::Tensor key = draw(kv_heads);
  return {layer, query, key, draw(kv_heads), training};
}

// One step as a trainer takes it, each pass drawn from its seed; the scorers' gradients are set.
void Step(const Scored& scored, int64_t step, const std::vector<int64_t>& seeds,
          int64_t kv_heads = kHeads) {
  scored.Begin(step, std::ssize(seeds));
  for (const OwnParameter& parameter : scored.attention->parameters()) {
    at::Tensor value = parameter.value;
    value.mutable_grad().reset();
  }
  for (const int64_t seed : seeds) {
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      const at::Tensor out = scored.attention->Attend(Inputs(layer, seed, true, kv_heads));
      if (out.requires_grad()) out.square().sum().backward();
    }
  }
  scored.attention->EndBackward();
}

// What an optimiser would do, in its simplest form.
void Descend(const Scored& scored) {
  const torch::NoGradGuard no_grad;
  for (const OwnParameter& parameter : scored.attention->parameters()) {
    at::Tensor value = parameter.value;
    if (value.grad().defined()) value.sub_(value.grad().sign(), 0.01);
  }
}

void ExpectSameState(const PolicyState& a, const PolicyState& b) {
  EXPECT_EQ(a.json, b.json);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (const auto& [name, tensor] : a.tensors) {
    ASSERT_TRUE(b.tensors.contains(name)) << name;
    EXPECT_TRUE(tensor.equal(b.tensors.at(name))) << name;
  }
}

// The most a change of the inputs can grow by on its way to the logits; GELU's slope is below 1.2.
double Gain(const MlpWeights& mlp) {
  double gain = 1;
  for (const LinearWeights& linear : mlp) {
    const size_t inputs = linear.weight.size() / linear.bias.size();
    double largest = 0;
    for (size_t out = 0; out < linear.bias.size(); ++out) {
      double sum = 0;
      for (const float w : linear.weight.subspan(out * inputs, inputs)) sum += std::abs(double{w});
      largest = std::max(largest, sum);
    }
    gain *= 1.2 * largest;
  }
  return gain;
}

Hierarchy RandomHierarchy(Random& random, int32_t heads, ControlOptions& control) {
  std::vector<FeatureRow> rows(static_cast<size_t>(heads));
  for (FeatureRow& row : rows) {
    for (float& x : row) x = static_cast<float>(4 * random.Uniform() - 2);
  }
  control.hierarchy.sim_threshold = random.Uniform();
  control.hierarchy.super_threshold = -random.Uniform();
  control.hierarchy.norm_difference_scale = random.Uniform();
  return BuildHierarchy(rows, control.hierarchy, {});
}

// Both sides compute in double from the same float32 inputs and round the result: a product and a
// sum of rounded numbers differ by a few roundings of their terms. Only the inputs of the sibling
// bias are rounded on the way, where a difference of one rounding grows by the scorer's gain.
TEST(ScorerNetworkTest, GivesTheLogitsOfDecideWindows) {
  Random random(11);
  int pairs = 0;
  size_t deepest = 0;
  for (const ControllerInput input :
       {ControllerInput::kBase, ControllerInput::kEnriched, ControllerInput::kContrastive,
        ControllerInput::kPositionAware, ControllerInput::kRelativeSiblingMean}) {
    for (const SiblingScoring siblings :
         {SiblingScoring::kNone, SiblingScoring::kJoint, SiblingScoring::kBias}) {
      for (int trial = 0; trial < 8; ++trial) {
        ControlOptions control = Control();
        control.input = input;
        control.siblings = siblings;
        control.deep_scorer = trial % 2 == 1;
        control.logit_scale = 3;
        control.joint_output_scale = 0.7F;
        control.sibling_bias_scale = 1.3F;
        control.seed = random.Below(1000);
        const auto heads = static_cast<int32_t>(2 + random.Below(14));
        const Hierarchy hierarchy = RandomHierarchy(random, heads, control);
        deepest = std::max(deepest, hierarchy.levels.size());
        const DecisionOptions decision = MakeDecisionOptions(control, FindRegime(control.regime));
        const ScorerNetwork network(control, kLayers);
        for (int32_t layer = 0; layer < kLayers; ++layer) {
          const OwnedScorers scorers = MakeScorers(control, layer);
          const auto expected = DecideWindows(hierarchy, scorers.weights(), decision, 4);
          const auto shared = DecideWindows(hierarchy, network.weights(layer), decision, 4);
          for (size_t level = 0; level < hierarchy.levels.size(); ++level) {
            EXPECT_EQ(shared[level].logits, expected[level].logits);
            const GroupInputs groups = GroupInputsOf(hierarchy, static_cast<int32_t>(level), input);
            const at::Tensor logits = network.Logits(layer, groups);
            ASSERT_EQ(logits.scalar_type(), at::kFloat);
            ASSERT_EQ(logits.sizes(),
                      (std::vector<int64_t>{std::ssize(expected[level].logits), 4}));
            double slack = 0;
            if (siblings == SiblingScoring::kBias) {
              slack = 4 * 1.3 * kEpsilon * (1 + Gain(scorers.siblings.weights()));
            }
            pairs += groups.family.size() > 1 ? 1 : 0;
            for (size_t group = 0; group < expected[level].logits.size(); ++group) {
              for (size_t n = 0; n < 4; ++n) {
                const double is =
                    logits[static_cast<int64_t>(group)][static_cast<int64_t>(n)].item<double>();
                const double was = double{expected[level].logits[group][n]};
                EXPECT_NEAR(is, was, slack + 2 * kEpsilon * std::abs(was));
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(pairs, 100);
  EXPECT_GE(deepest, 3u);
}

TEST(ScorerLogitsTest, FeaturesAreThoseOfTheWholeStepBeforeUnderFullAttention) {
  ControlOptions control = Control("grouping_off");  // every head alone, features as they are
  control.input = ControllerInput::kBase;
  const int64_t kv_heads = 3;
  const Scored scored(control, kv_heads);
  for (int64_t step = 0; step < 4; ++step) Step(scored, step, {2 * step, 2 * step + 1}, kv_heads);
  scored.Begin(4);
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    const AttentionInputs first = Inputs(layer, 6, true, kv_heads);
    const AttentionInputs second = Inputs(layer, 7, true, kv_heads);
    std::vector<at::Tensor> columns;
    const auto add = [&](const at::Tensor& a, const at::Tensor& b) {
      at::Tensor rows = at::cat({a, b}).to(at::kDouble).transpose(0, 1).flatten(1);
      rows = rows.repeat_interleave(kHeads / rows.size(0), 0);
      columns.push_back(rows.abs().mean(1));
      columns.push_back(rows.std(1));
    };
    add(first.query, second.query);
    add(first.key, second.key);
    add(first.value, second.value);
    AttentionOperatorOptions options;
    options.sinks = 1;
    options.statistics = true;
    const at::Tensor full = at::full({kHeads}, kTokens, at::kInt);
    const auto pass = [&](const AttentionInputs& inputs) {
      const auto result = Attention(inputs.query, inputs.key, inputs.value, full, options);
      return at::stack({result.entropy, result.norm, result.usage});
    };
    const at::Tensor statistics = (pass(first) + pass(second)) / 2;
    for (int64_t i = 0; i < 3; ++i) columns.push_back(statistics[i].to(at::kDouble));
    const at::Tensor rows = scored.logits->inputs(layer).rows;
    ASSERT_EQ(rows.sizes(), (std::vector<int64_t>{kHeads, 9}));
    EXPECT_TRUE(at::allclose(rows.to(at::kDouble), at::stack(columns, 1), 1e-5, 1e-7));
  }
}

TEST(ScorerLogitsTest, HeadsHaveTheLogitsOfTheirGroup) {
  const Scored scored;
  const at::Tensor nothing = torch::zeros({kHeads, 4});
  EXPECT_TRUE(scored.logits->Layer(0).equal(nothing));
  for (int64_t step = 0; step < 4; ++step) Step(scored, step, {step});
  EXPECT_TRUE(scored.logits->Layer(0).equal(nothing));
  scored.Begin(4);
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    // The controller that would decide by itself finds the same groups and the same logits.
    const OwnedScorers scorers = MakeScorers(Control(), static_cast<int32_t>(layer));
    const Hierarchy hierarchy = [&] {
      ControlOptions control = Control();
      control.warmup_steps = 0;
      Controller controller(control, static_cast<int32_t>(layer), kHeads, scorers.weights());
      ProjectionSums sums(kHeads, kHeads);
      StatisticSums statistics(kHeads);
      const AttentionInputs inputs = Inputs(layer, 3);
      AddProjections(inputs, sums);
      AttentionOperatorOptions options;
      options.sinks = 1;
      options.statistics = true;
      const auto full = Attention(inputs.query, inputs.key, inputs.value,
                                  at::full({kHeads}, kTokens, at::kInt), options);
      AddStatistics({full.entropy, full.norm, full.usage}, statistics);
      controller.RecordStatistics(statistics.Means());
      controller.Advance(4, kTokens, &sums);
      return controller.report().hierarchy;
    }();
    const Groups& groups = hierarchy.levels.front().groups;
    ASSERT_GT(groups.size(), 1u);
    ASSERT_LT(groups.size(), static_cast<size_t>(kHeads));
    const auto decided =
        DecideWindows(hierarchy, scorers.weights(),
                      MakeDecisionOptions(Control(), FindRegime("full_adaptive")), 4);
    const at::Tensor logits = scored.logits->Layer(layer);
    for (size_t group = 0; group < groups.size(); ++group) {
      const at::Tensor expected = at::tensor(decided.front().logits[group]);
      for (const int32_t head : groups[group]) {
        EXPECT_TRUE(at::allclose(logits[head], expected, 1e-6, 0)) << head;
      }
    }
  }
}

TEST(ScorerLogitsTest, KeyValueHeadsHaveTheMeanOfTheirQueryHeads) {
  LearnedOptions learned = Learned();
  learned.share = WindowShare::kKvHead;
  const Scored shared(Control("grouping_off"), 3, learned);
  const Scored alone(Control("grouping_off"), 3);
  for (const Scored* scored : {&shared, &alone}) {
    for (int64_t step = 0; step < 4; ++step) Step(*scored, step, {step}, 3);
    scored->Begin(4);
  }
  const at::Tensor logits = alone.logits->Layer(1);
  EXPECT_TRUE(at::allclose(shared.logits->Layer(1), logits.view({3, 2, 4}).mean(1), 1e-6, 1e-7));
  EXPECT_FALSE(logits[0].equal(logits[1]));
}

TEST(ScorerLogitsTest, GroupsAreRenewedInSearchAndTrackingStepsAlone) {
  const Scored scored;
  std::vector<int64_t> renewed;
  std::vector<int64_t> measured;
  at::Tensor rows = at::empty({0});
  for (int64_t step = 0; step < kSteps; ++step) {
    Step(scored, step, {step});
    Descend(scored);
    const at::Tensor& now = scored.logits->inputs(0).rows;
    if (now.defined() && !now.equal(rows)) renewed.push_back(step);
    if (now.defined()) rows = now;
    const PolicyState state = scored.logits->Save();
    if (state.tensors.at("layer0.projection_sums").any().item<bool>()) measured.push_back(step);
  }
  EXPECT_THAT(renewed, ElementsAre(4, 7, 10, 13, 21, 26, 31, 36));
  EXPECT_THAT(measured, ElementsAre(3, 6, 9, 12, 20, 25, 30, 35));
  EXPECT_EQ(scored.attention->plan()->provenance.method, "aah_learned, softmax");
  EXPECT_LE(scored.attention->plan()->predicted.at("cost"), 0.5);
}

TEST(ScorerLogitsTest, ASearchWithoutWarmUpIsRefused) {
  LearnedOptions learned = Learned();
  learned.warmup = 0;
  const Scored scored(Control(), kHeads, learned);
  EXPECT_THAT(ErrorOf([&] { scored.Begin(0); }).first, HasSubstr("raise attention.learned.warmup"));
  EXPECT_THAT(ErrorOf([&] { MakeLogits(Control("fixed:8")); }).first,
              HasSubstr("regime: expected one whose windows are scored by group, got 'fixed:8'"));
}

// d loss / d weight by central differences, for some weights of every parameter and layer. The
// logits are float32, so a difference over 2h is off by their rounding over h at most.
TEST(ScorerLogitsTest, GradientsReachTheScorers) {
  for (const SiblingScoring siblings : {SiblingScoring::kJoint, SiblingScoring::kBias}) {
    ControlOptions control = Control("shallow_freeze");  // one level: all groups are siblings
    control.siblings = siblings;
    const Scored scored(control);
    for (int64_t step = 0; step < 4; ++step) Step(scored, step, {step});
    const auto loss = [&] {
      scored.Begin(4);  // weights of the scorers as they are
      at::Tensor sum = at::zeros({}, at::kDouble);
      for (int64_t layer = 0; layer < kLayers; ++layer) {
        const AttentionInputs inputs = Inputs(layer, 9, true, kHeads, at::kDouble);
        const at::Tensor out = scored.attention->Attend(inputs);
        sum = sum + (out * Inputs(layer, 10, true, kHeads, at::kDouble).query).sum() / 10;
      }
      return sum;
    };
    loss().backward();
    scored.attention->EndBackward();
    Random random(3);
    for (const OwnParameter& parameter : scored.attention->parameters()) {
      const at::Tensor gradient = parameter.value.grad();
      ASSERT_TRUE(gradient.defined()) << parameter.name;
      const double scale = gradient.abs().max().item<double>();
      // Where all groups are in pairs, nothing is left to the base scorer.
      if (siblings == SiblingScoring::kBias || parameter.name.starts_with("scorers.siblings")) {
        EXPECT_GT(scale, 1e-3) << parameter.name;
      }
      const at::Tensor flat = parameter.value.detach().view({-1});
      for (int trial = 0; trial < 6; ++trial) {
        const auto i =
            trial == 0 ? gradient.abs().argmax().item<int64_t>()
                       : static_cast<int64_t>(random.Below(static_cast<uint64_t>(flat.numel())));
        const auto before = flat[i].item<float>();
        const float above = before + 0x1p-9F;
        const float below = before - 0x1p-9F;
        const torch::NoGradGuard no_grad;
        flat[i].fill_(above);
        const double higher = loss().item<double>();
        flat[i].fill_(below);
        const double lower = loss().item<double>();
        flat[i].fill_(before);
        const double slope = (higher - lower) / (double{above} - double{below});
        EXPECT_NEAR(gradient.view({-1})[i].item<double>(), slope, 2e-3 * scale + 1e-6)
            << parameter.name << " " << i;
      }
    }
  }
}

TEST(ScorerLogitsTest, EvaluationChangesNothing) {
  const Scored scored;
  for (int64_t step = 0; step < 30; ++step) {
    Step(scored, step, {step});
    Descend(scored);
    const PolicyState before = scored.attention->Save();
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      scored.attention->Attend(Inputs(layer, 1000 + step, /*training=*/false));
    }
    ExpectSameState(before, scored.attention->Save());
  }
}

TEST(ScorerLogitsTest, WhatIsRestoredGoesOnTheSame) {
  for (const int64_t stop : {2, 3, 4, 6, 11, 15, 16, 20, 21, 22}) {
    const Scored whole;
    const Scored resumed;
    for (int64_t step = 0; step < std::min<int64_t>(28, stop + 8); ++step) {
      Step(whole, step, {step, step + 100});
      Descend(whole);
      if (step < stop) continue;
      if (step == stop) {
        resumed.attention->Restore(whole.attention->Save());
      } else {
        Step(resumed, step, {step, step + 100});
        Descend(resumed);
      }
      ExpectSameState(whole.attention->Save(), resumed.attention->Save());
      EXPECT_EQ(whole.attention->windows(), resumed.attention->windows()) << step;
      EXPECT_TRUE(whole.attention->Weights().equal(resumed.attention->Weights()));
    }
  }
}

TEST(ScorerLogitsTest, StatesOfOthersAreRefused) {
  const Scored scored;
  for (int64_t step = 0; step < 8; ++step) Step(scored, step, {step});
  const PolicyState state = scored.logits->Save();
  const auto refusal = [&](const PolicyState& other) {
    std::string message = ErrorOf([&] { scored.logits->Restore(other); }).first;
    ExpectSameState(state, scored.logits->Save());
    return message;
  };
  EXPECT_THAT(refusal({}), HasSubstr("that of other logits"));
  EXPECT_THAT(refusal(MakeFreeLogits(kLayers, kHeads, 4, 0.1)->Save()),
              HasSubstr("that of other logits"));
  EXPECT_THAT(refusal(MakeLogits(Control("grouping_off"))->Save()), HasSubstr("regime"));
  PolicyState broken = state;
  broken.tensors.erase("base.0.weight");
  EXPECT_THAT(refusal(broken), HasSubstr("base.0.weight is missing"));
  broken = state;
  broken.tensors["layer1.inputs"] = at::ones({5});
  EXPECT_THAT(refusal(broken), HasSubstr("layer1.inputs: expected 29 numbers"));
  broken = state;
  broken.tensors["layer0.family"] = at::full_like(state.tensors.at("layer0.family"), 7);
  EXPECT_THAT(refusal(broken), HasSubstr("layer0.scored_group and family"));
  broken = state;
  broken.tensors["more"] = at::ones({5});
  EXPECT_THAT(refusal(broken), HasSubstr("arrays"));
}

}  // namespace
}  // namespace aah
