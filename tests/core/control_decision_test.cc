#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "aah/error.h"
#include "aah/hierarchy.h"
#include "aah/random.h"
#include "aah/window_decision.h"

namespace aah {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::array<ControllerInput, 5> kInputs = {
    ControllerInput::kBase, ControllerInput::kEnriched, ControllerInput::kContrastive,
    ControllerInput::kPositionAware, ControllerInput::kRelativeSiblingMean};

FeatureRow Constant(float value) {
  FeatureRow row;
  row.fill(value);
  return row;
}

// Two levels: groups {0,1}, {2}, {3} of four heads; the first two under one parent.
Hierarchy SmallHierarchy() {
  Hierarchy hierarchy;
  hierarchy.levels.push_back(
      {{{0, 1}, {2}, {3}}, {Constant(1), Constant(3), Constant(8)}, {0, 0, 1}});
  hierarchy.levels.push_back({{{0, 1}, {2}}, {Constant(2), Constant(8)}, {}});
  return hierarchy;
}

TEST(ControllerInputs, AreAsLongAsTheySay) {
  for (const ControllerInput input : kInputs) {
    for (const std::vector<float>& row : ControllerInputs(SmallHierarchy(), 0, input)) {
      EXPECT_EQ(row.size(), static_cast<size_t>(ControllerInputSize(input)));
    }
  }
}

TEST(ControllerInputs, EnrichedIsFeaturesDepthParentLevelAndShare) {
  const auto inputs = ControllerInputs(SmallHierarchy(), 0, ControllerInput::kEnriched);
  const std::vector<float>& row = inputs[1];
  EXPECT_EQ(row[0], 3);
  EXPECT_EQ(row[9], 0);          // level 0 of 0..1
  EXPECT_EQ(row[10], 3 - 2);     // f - f(parent)
  EXPECT_EQ(row[19], 3 - 4);     // f - mean of the level
  EXPECT_EQ(row[28], 1.0F / 4);  // one head of four
  const auto top = ControllerInputs(SmallHierarchy(), 1, ControllerInput::kEnriched);
  EXPECT_EQ(top[0][9], 1);
  EXPECT_EQ(top[0][10], 0);
  EXPECT_EQ(top[0][28], 2.0F / 3);
}

TEST(ControllerInputs, SiblingsAreTheOthersUnderTheSameParent) {
  const auto contrastive = ControllerInputs(SmallHierarchy(), 0, ControllerInput::kContrastive);
  EXPECT_EQ(contrastive[0][29], 1 - 3);
  EXPECT_EQ(contrastive[2][29], 0);  // an only child
  const auto positions = ControllerInputs(SmallHierarchy(), 0, ControllerInput::kPositionAware);
  EXPECT_THAT((std::vector<float>(positions[1].end() - 3, positions[1].end())),
              ElementsAre(1, 0, 1));
  EXPECT_THAT((std::vector<float>(positions[2].end() - 3, positions[2].end())),
              ElementsAre(0, 1, 0));
  const auto relative =
      ControllerInputs(SmallHierarchy(), 1, ControllerInput::kRelativeSiblingMean);
  EXPECT_EQ(relative[0][9], 2 - 8);  // at the top every other group is a sibling
  EXPECT_EQ(relative[0][18], 0);
  EXPECT_EQ(relative[0][27], 1);
}

TEST(RunMlp, IsLinearGeluLinear) {
  const std::vector<float> first_weight = {1, -1, 2, 0.5F};
  const std::vector<float> first_bias = {0.25F, -1};
  const std::vector<float> second_weight = {3, -2};
  const std::vector<float> second_bias = {0.5F};
  const MlpWeights mlp = {{first_weight, first_bias}, {second_weight, second_bias}};
  const auto gelu = [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  const double a = gelu(1 * 0.5 - 1 * 2 + 0.25);
  const double b = gelu(2 * 0.5 + 0.5 * 2 - 1);
  EXPECT_THAT(RunMlp(mlp, std::vector<float>{0.5F, 2}),
              ElementsAre(FloatEq(static_cast<float>(3 * a - 2 * b + 0.5))));
}

struct Scorers {
  Scorers(const DecisionOptions& options, int32_t windows, uint64_t seed) {
    const int32_t inputs = ControllerInputSize(options.input);
    base = OwnedMlp(std::vector<int32_t>{inputs, 6, windows}, seed);
    if (options.siblings == SiblingScoring::kJoint) {
      siblings = OwnedMlp(std::vector<int32_t>{4 * inputs, 5, 2 * windows}, seed + 1);
    } else if (options.siblings == SiblingScoring::kBias) {
      siblings = OwnedMlp(std::vector<int32_t>{inputs, 5, windows}, seed + 1);
    }
  }
  ScorerWeights weights() const { return {base.weights(), siblings.weights()}; }

  OwnedMlp base;
  OwnedMlp siblings;
};

TEST(DecideWindows, NeverExceedsTheParentWhereThatIsConstrained) {
  Random random(3);
  int64_t constrained = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<FeatureRow> heads(12);
    for (FeatureRow& row : heads) {
      for (float& x : row) x = static_cast<float>(2 * random.Uniform());
    }
    HierarchyOptions levels;
    levels.min_group_size = 1;
    levels.super_threshold = 0.2;
    levels.norm_difference_scale = 1;
    levels.sim_threshold = 0.9;
    const Hierarchy hierarchy = BuildHierarchy(heads, levels, {});
    DecisionOptions options;
    options.input = kInputs[seed % 5];
    options.siblings =
        std::array{SiblingScoring::kNone, SiblingScoring::kJoint, SiblingScoring::kBias}[seed % 3];
    options.logit_scale = 3;
    const Scorers scorers(options, 4, seed);
    const auto decisions = DecideWindows(hierarchy, scorers.weights(), options, 4);
    options.parent_constraint = false;
    const auto free = DecideWindows(hierarchy, scorers.weights(), options, 4);
    ASSERT_EQ(decisions.size(), hierarchy.levels.size());
    for (size_t level = 0; level < decisions.size(); ++level) {
      EXPECT_EQ(free[level].index, free[level].raw);
      EXPECT_EQ(decisions[level].raw, free[level].raw);
      for (size_t group = 0; group < decisions[level].index.size(); ++group) {
        int32_t expected = decisions[level].raw[group];
        if (level + 1 < decisions.size()) {
          const auto parent = static_cast<size_t>(hierarchy.levels[level].parent[group]);
          expected = std::min(expected, decisions[level + 1].index[parent]);
        }
        EXPECT_EQ(decisions[level].index[group], expected);
        constrained += static_cast<int64_t>(expected < decisions[level].raw[group]);
      }
    }
  }
  EXPECT_GT(constrained, 0);
}

TEST(DecideWindows, AnOddSiblingKeepsItsBaseLogits) {
  Hierarchy hierarchy;
  hierarchy.levels.push_back({{{0}, {1}, {2}}, {Constant(1), Constant(2), Constant(3)}, {}});
  DecisionOptions options;
  const Scorers joint(options, 3, 5);
  const auto scored = DecideWindows(hierarchy, joint.weights(), options, 3);
  options.siblings = SiblingScoring::kNone;
  const auto base = DecideWindows(hierarchy, joint.weights(), options, 3);
  EXPECT_NE(scored[0].logits[0], base[0].logits[0]);
  EXPECT_NE(scored[0].logits[1], base[0].logits[1]);
  EXPECT_EQ(scored[0].logits[2], base[0].logits[2]);
}

TEST(DecideWindows, TakesTheFirstOfEqualLogits) {
  const std::vector<float> zeros(9 * 3, 0.0F);
  const std::vector<float> bias = {1, 2, 2};
  const ScorerWeights scorers = {{{zeros, bias}}, {}};
  DecisionOptions options;
  options.input = ControllerInput::kBase;
  options.siblings = SiblingScoring::kNone;
  EXPECT_THAT(DecideWindows(SmallHierarchy(), scorers, options, 3)[0].index, Each(1));
}

TEST(DecideWindows, RefusesWeightsThatDoNotFitOrHaveDiverged) {
  DecisionOptions options;
  Scorers scorers(options, 4, 1);
  EXPECT_THAT(
      [&] { DecideWindows(SmallHierarchy(), scorers.weights(), options, 3); },
      ThrowsMessage<Error>(HasSubstr("the base scorer should give 3 numbers, but gives 4")));
  options.input = ControllerInput::kContrastive;
  EXPECT_THAT([&] { CheckScorerWeights(scorers.weights(), options, 4); },
              ThrowsMessage<Error>(HasSubstr("takes 38 inputs, but has 174 weights for 6")));
  options.input = ControllerInput::kEnriched;
  options.siblings = SiblingScoring::kBias;
  EXPECT_THROW(CheckScorerWeights(scorers.weights(), options, 4), Error);
  EXPECT_THROW(CheckScorerWeights({}, options, 4), Error);
  options.siblings = SiblingScoring::kJoint;
  scorers.base.layers()[1].bias[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT([&] { DecideWindows(SmallHierarchy(), scorers.weights(), options, 4); },
              ThrowsMessage<Error>(HasSubstr("not finite")));
}

TEST(OwnedMlp, IsUniformWithinOneOverTheRootOfItsInputs) {
  const OwnedMlp mlp(std::vector<int32_t>{100, 50, 4}, 9);
  const MlpWeights weights = mlp.weights();
  ASSERT_EQ(weights.size(), 2U);
  EXPECT_EQ(weights[0].weight.size(), 5000U);
  EXPECT_EQ(weights[1].bias.size(), 4U);
  EXPECT_THAT(weights[0].weight, Each(testing::AllOf(testing::Ge(-0.1F), testing::Le(0.1F))));
  EXPECT_GT(*std::max_element(weights[0].weight.begin(), weights[0].weight.end()), 0.095F);
  EXPECT_LT(*std::min_element(weights[0].weight.begin(), weights[0].weight.end()), -0.095F);
}

}  // namespace
}  // namespace aah
