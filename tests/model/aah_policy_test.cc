#include "aah/model/aah_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "aah/error.h"
#include "aah/model/attention_variant.h"

namespace aah {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kLayers = 2;
constexpr int64_t kHeads = 6;
constexpr int64_t kTokens = 32;

using Table = std::vector<std::vector<int32_t>>;

ControlOptions Options(const std::string& regime = "full_adaptive") {
  ControlOptions options;
  options.regime = regime;
  options.windows = {4, 8, 16, 32};
  options.warmup_steps = 1;
  options.control_interval = 3;
  options.hierarchy.min_group_size = 2;
  options.logit_scale = 8;
  options.joint_output_scale = 8;
  options.seed = 5;
  return options;
}

AahPolicy MakePolicy(const ControlOptions& options = Options()) {
  return AahPolicy(options, kLayers, kHeads, kHeads, kTokens);
}

// Different heads of different sizes, so that there are groups to find.
AttentionInputs Inputs(int64_t layer, int64_t seed, bool training = true) {
  torch::manual_seed(static_cast<uint64_t>(100 * seed + layer));
  const auto draw = [&] {
    const at::Tensor scale = torch::exp2(torch::arange(kHeads).to(torch::kFloat) - 2);
    return torch::randn({2, kTokens, kHeads, 8}).transpose(1, 2) * scale.view({1, kHeads, 1, 1});
  };
  return {layer, draw(), draw(), draw(), training};
}

LayerStatistics Statistics(int64_t seed) {
  torch::manual_seed(static_cast<uint64_t>(seed));
  return {torch::rand({kHeads}), torch::rand({kHeads}), torch::rand({kHeads})};
}

// One step of `micro_batches`, each drawn from its own seed; the windows of each pass and layer.
Table Step(AahPolicy& policy, int64_t step, const std::vector<int64_t>& micro_batches) {
  policy.BeginStep(step, static_cast<int64_t>(micro_batches.size()));
  Table windows;
  for (const int64_t seed : micro_batches) {
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      const AttentionInputs inputs = Inputs(layer, seed);
      const auto decided = policy.Decide(inputs);
      windows.emplace_back(decided.begin(), decided.end());
      if (policy.WantsStatistics(inputs)) policy.Observe(inputs, Statistics(seed));
    }
  }
  return windows;
}

TEST(AahPolicyTest, IsFullInWarmUpAndThenDecides) {
  AahPolicy policy = MakePolicy();
  EXPECT_THAT(Step(policy, 0, {0}), Each(Each(kTokens)));
  EXPECT_EQ(policy.control().layers[0]->report().path, ControlPath::kShadow);
  const Table decided = Step(policy, 1, {1});
  EXPECT_EQ(policy.control().layers[1]->report().path, ControlPath::kUpdate);
  EXPECT_TRUE(policy.control().grouped);
  EXPECT_THAT(decided, Not(Each(Each(kTokens))));
  EXPECT_EQ(policy.windows(), decided);
  EXPECT_EQ(Step(policy, 2, {2}), decided);
  EXPECT_FALSE(policy.control().grouped);
  EXPECT_EQ(policy.control().layers[1]->report().path, ControlPath::kCached);
}

TEST(AahPolicyTest, AsksForStatisticsOnlyBeforeAStepThatReadsThem) {
  AahPolicy policy = MakePolicy();
  std::vector<int64_t> asked;
  for (int64_t step = 0; step < 9; ++step) {
    policy.BeginStep(step, 1);
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      const AttentionInputs inputs = Inputs(layer, step);
      policy.Decide(inputs);
      if (!policy.WantsStatistics(inputs)) continue;
      if (layer == 0) asked.push_back(step);
      policy.Observe(inputs, Statistics(step));
      AttentionInputs evaluated = inputs;
      evaluated.training = false;
      EXPECT_FALSE(policy.WantsStatistics(evaluated));
    }
  }
  // Decisions in steps 1, 4 and 7.
  EXPECT_THAT(asked, ElementsAre(0, 3, 6));
  const std::vector<float>& kept = policy.control().layers[0]->state().statistics;
  const at::Tensor entropy = Statistics(6).entropy;
  ASSERT_EQ(kept.size(), 3u * kHeads);
  EXPECT_EQ(kept[2], entropy[2].item<float>());
}

TEST(AahPolicyTest, EvaluationChangesNothing) {
  AahPolicy policy = MakePolicy();
  AahPolicy undisturbed = MakePolicy();
  for (int64_t step = 0; step < 8; ++step) {
    const Table windows = Step(policy, step, {step});
    EXPECT_EQ(windows, Step(undisturbed, step, {step}));
    const PolicyState before = policy.Save();
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      const AttentionInputs inputs = Inputs(layer, 77, /*training=*/false);
      const auto seen = policy.Decide(inputs);
      EXPECT_TRUE(std::equal(seen.begin(), seen.end(), windows[layer].begin()));
      EXPECT_FALSE(policy.WantsStatistics(inputs));
    }
    const PolicyState after = policy.Save();
    EXPECT_EQ(before.json, after.json);
    for (const auto& [name, tensor] : before.tensors) {
      EXPECT_TRUE(tensor.equal(after.tensors.at(name))) << name;
    }
  }
}

TEST(AahPolicyTest, EvaluationOfAShorterTextClampsWindows) {
  AahPolicy policy = MakePolicy();
  Step(policy, 0, {0});
  AttentionInputs inputs = Inputs(0, 1, /*training=*/false);
  inputs.query = inputs.query.narrow(2, 0, 5);
  EXPECT_THAT(policy.Decide(inputs), Each(5));
}

TEST(AahPolicyTest, WindowsStayTheSameWithinAStep) {
  AahPolicy policy = MakePolicy();
  for (int64_t step = 0; step < 8; ++step) {
    const Table windows = Step(policy, step, {10 * step, 10 * step + 1, 10 * step + 2});
    for (size_t pass = kLayers; pass < windows.size(); ++pass) {
      EXPECT_EQ(windows[pass], windows[pass % kLayers]) << "step " << step;
    }
  }
}

// With several micro-batches a decision reads the whole step before it: in any order, and however
// that step is cut.
TEST(AahPolicyTest, MicroBatchesAreReduced) {
  AahPolicy policy = MakePolicy();
  AahPolicy reordered = MakePolicy();
  std::vector<double> sums;
  const auto keep = [&](std::span<double> values) { sums.assign(values.begin(), values.end()); };
  policy.set_reduction(keep);
  Step(policy, 0, {3, 4});
  Step(policy, 1, {5, 6});
  const std::vector<double> first = sums;
  reordered.set_reduction(keep);
  Step(reordered, 0, {3, 4});
  Step(reordered, 1, {7, 8});
  // Step 1 was decided by what came before it.
  EXPECT_EQ(sums, first);
  EXPECT_EQ(policy.windows(), reordered.windows());

  ProjectionSums expected(kHeads, kHeads);
  for (const int64_t seed : {3, 4}) {
    const AttentionInputs inputs = Inputs(kLayers - 1, seed);
    SerialParallel serial;
    const auto view = [](const at::Tensor& tensor) {
      ConstView4<float> result;
      result.data = tensor.const_data_ptr<float>();
      for (size_t axis = 0; axis < 4; ++axis) {
        result.shape[axis] = tensor.size(static_cast<int64_t>(axis));
        result.strides[axis] = tensor.stride(static_cast<int64_t>(axis));
      }
      return result;
    };
    expected.AddBatch(view(inputs.query), view(inputs.key), view(inputs.value), serial);
  }
  ASSERT_GT(first.size(), expected.values().size());
  for (size_t i = 0; i < expected.values().size(); ++i) {
    EXPECT_DOUBLE_EQ(first[i], expected.values()[i]) << i;
  }
  EXPECT_EQ(first[expected.values().size()], 2);  // passes behind the statistics
}

// Two replicas that see different data decide alike once their sums are reduced.
TEST(AahPolicyTest, ReplicasDecideAlikeByTheReduction) {
  AahPolicy one = MakePolicy();
  AahPolicy other = MakePolicy();
  std::vector<std::vector<double>> collected;
  const auto collect = [&](std::span<double> values) {
    collected.emplace_back(values.begin(), values.end());
  };
  for (int64_t step = 0; step < 5; ++step) {
    // Each replica's own sums first, on copies, then the step with their total.
    collected.clear();
    for (auto& [policy, seed] : {std::pair{&one, 2 * step}, std::pair{&other, 2 * step + 1}}) {
      AahPolicy copy = MakePolicy();
      copy.Restore(policy->Save());
      copy.set_reduction(collect);
      Step(copy, step, {seed});
    }
    size_t calls = collected.size() / 2;
    const auto reduce_of = [&](size_t* call) {
      return [&, call](std::span<double> values) {
        for (size_t i = 0; i < values.size(); ++i) {
          values[i] = collected[*call][i] + collected[*call + calls][i];
        }
        ++*call;
      };
    };
    size_t first_call = 0;
    size_t second_call = 0;
    one.set_reduction(reduce_of(&first_call));
    other.set_reduction(reduce_of(&second_call));
    const Table windows = Step(one, step, {2 * step});
    EXPECT_EQ(windows, Step(other, step, {2 * step + 1})) << "step " << step;
    EXPECT_EQ(first_call, calls);
  }
}

TEST(AahPolicyTest, GoesOnFromASavedState) {
  for (const char* regime :
       {"full_adaptive", "shallow_freeze", "deep_practical_reuse", "grouping_off", "fixed_random",
        "shuffle_post_select", "random_uniform", "control_off", "fixed:12"}) {
    AahPolicy whole = MakePolicy(Options(regime));
    for (int64_t step = 0; step < 6; ++step) {
      AahPolicy resumed = MakePolicy(Options(regime));
      resumed.Restore(whole.Save());
      EXPECT_EQ(resumed.windows(), whole.windows());
      EXPECT_EQ(Step(resumed, step, {2 * step, 2 * step + 1}),
                Step(whole, step, {2 * step, 2 * step + 1}))
          << regime << ", step " << step;
      EXPECT_EQ(resumed.control().layers[0]->state(), whole.control().layers[0]->state());
    }
  }
}

std::string Refusal(const PolicyState& state) {
  AahPolicy policy = MakePolicy();
  try {
    policy.Restore(state);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadInput);
    return error.what();
  }
  ADD_FAILURE() << "the state was taken";
  return {};
}

TEST(AahPolicyTest, RefusesStatesOfAnotherKindOrShape) {
  AahPolicy policy = MakePolicy();
  Step(policy, 0, {0});
  Step(policy, 1, {1});
  const PolicyState good = policy.Save();
  EXPECT_THAT(Refusal({}), HasSubstr("full_adaptive"));
  EXPECT_THAT(Refusal({good.tensors, "{"}), HasSubstr("controller"));
  AahPolicy other = MakePolicy(Options("shallow_freeze"));
  EXPECT_THAT(Refusal(other.Save()),
              AllOf(HasSubstr("shallow_freeze"), HasSubstr("full_adaptive")));
  EXPECT_THAT(Refusal(AahPolicy(Options(), 3, kHeads, kHeads, kTokens).Save()),
              HasSubstr("expected 2 layers, got 3"));
  PolicyState bad = good;
  bad.tensors.erase("layer1.group_of_head");
  EXPECT_THAT(Refusal(bad), HasSubstr("layer1.group_of_head is missing"));
  bad = good;
  bad.tensors["layer0.decided_index"] = torch::full({kHeads}, 4, torch::kInt);
  EXPECT_THAT(Refusal(bad), HasSubstr("decided_index holds 4"));
  bad = good;
  bad.tensors["layer0.decided_index"] = torch::zeros({kHeads});
  EXPECT_THAT(Refusal(bad), AllOf(HasSubstr("Int"), HasSubstr("Float")));
  bad = good;
  bad.tensors["layer0.projection_sums"] = torch::zeros({3}, torch::kDouble);
  EXPECT_THAT(Refusal(bad), HasSubstr("projection_sums: expected 72 numbers, got 3"));
  bad = good;
  bad.tensors["layer2.extra"] = torch::zeros({1});
  EXPECT_THAT(Refusal(bad), HasSubstr("arrays"));
}

TEST(AahPolicyTest, NumbersThatTrainingDroveToInfinityStopTheStep) {
  AahPolicy policy = MakePolicy();
  Step(policy, 0, {0});
  const PolicyState before = policy.Save();
  policy.BeginStep(1, 1);
  AttentionInputs inputs = Inputs(0, 1);
  inputs.key[0][2][3][4] = std::numeric_limits<float>::quiet_NaN();
  try {
    policy.Decide(inputs);
    ADD_FAILURE() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMachine);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("layer 0"), HasSubstr("mean|k|")));
  }
}

TEST(AahPolicyTest, GroupedQueryAttentionHasWindowsPerQueryHead) {
  AahPolicy policy(Options(), 1, kHeads, 2, kTokens);
  for (int64_t step = 0; step < 2; ++step) {
    policy.BeginStep(step, 1);
    AttentionInputs inputs = Inputs(0, step);
    inputs.key = inputs.key.narrow(1, 0, 2);
    inputs.value = inputs.value.narrow(1, 0, 2);
    EXPECT_EQ(policy.Decide(inputs).size(), static_cast<size_t>(kHeads));
  }
}

TEST(AahPolicyTest, DoublePrecisionDecidesAsFloatDoes) {
  AahPolicy policy = MakePolicy();
  AahPolicy wide = MakePolicy();
  for (int64_t step = 0; step < 2; ++step) {
    Step(policy, step, {step});
    wide.BeginStep(step, 1);
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      AttentionInputs inputs = Inputs(layer, step);
      for (at::Tensor* tensor : {&inputs.query, &inputs.key, &inputs.value}) {
        *tensor = tensor->to(torch::kDouble);
      }
      wide.Decide(inputs);
      const LayerStatistics narrow = Statistics(step);
      if (!wide.WantsStatistics(inputs)) continue;
      wide.Observe(inputs, {narrow.entropy.to(torch::kDouble), narrow.norm.to(torch::kDouble),
                            narrow.usage.to(torch::kDouble)});
    }
  }
  EXPECT_EQ(wide.windows(), policy.windows());
}

}  // namespace
}  // namespace aah
