// Attention whose windows are learned: phases, mixture, gradients, cost.
#include "aah/model/learned_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "aah/error.h"
#include "aah/model/nested_operator.h"
#include "aah/model/optimizer.h"
#include "tests/model/learned_support.h"

namespace aah {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Refusal(const LearnedOptions& options, const ModelConfig& model = Model()) {
  try {
    const LearnedAttention attention(options, model, 0);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadInput);
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

TEST(SelectionSchedule, SharesOfTheRun) {
  const SelectionSchedule schedule(Options(), 100);
  EXPECT_EQ(schedule.search_begin, 10);
  EXPECT_EQ(schedule.search_end, 30);
  EXPECT_EQ(schedule.Phase(9), SelectionPhase::kWarmup);
  EXPECT_EQ(schedule.Phase(10), SelectionPhase::kSearch);
  EXPECT_EQ(schedule.Phase(29), SelectionPhase::kSearch);
  EXPECT_EQ(schedule.Phase(30), SelectionPhase::kPlan);
  EXPECT_EQ(schedule.Progress(10), 0);
  EXPECT_EQ(schedule.Progress(29), 1);
  EXPECT_EQ(SelectionSchedule(Options(), 2).Progress(0), 1);  // one step is the last one
  // 0.1 * 30 is below 3 in binary.
  EXPECT_EQ(SelectionSchedule(Options(), 30).search_begin, 3);
}

TEST(SelectionSchedule, RunsTooShortAreRefused) {
  EXPECT_EQ(SelectionSchedule(Options(), 2).search_end, 1);
  try {
    SelectionSchedule(Options(), 1);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("more training steps than the 1 of warm-up and search"));
  }
}

TEST(LearnedAttention, BadOptionsAreRefusedInOneLine) {
  const auto with = [](auto change) {
    LearnedOptions options = Options();
    change(options);
    return options;
  };
  EXPECT_THAT(Refusal(with([](auto& o) { o.budget = 0; })),
              HasSubstr("budget: expected a share of full attention's cost in (0, 1], got 0"));
  EXPECT_THAT(Refusal(with([](auto& o) { o.budget = 1.5; })), HasSubstr("(0, 1], got 1.5"));
  EXPECT_THAT(Refusal(with([](auto& o) { o.budget = std::nan(""); })), HasSubstr("(0, 1], got"));
  EXPECT_THAT(Refusal(with([](auto& o) { o.candidates = {4, 32}; })),
              HasSubstr("the last window to reach model.context, 64"));
  EXPECT_THAT(Refusal(with([](auto& o) { o.candidates = {16, 4, 64}; })),
              HasSubstr("ascending windows, got 4 after 16"));
  EXPECT_THAT(Refusal(with([](auto& o) { o.candidates = {0, 64}; })), HasSubstr("at least 1"));
  EXPECT_THAT(Refusal(with([](auto& o) { o.candidates = {4, 64, 128}; })),
              HasSubstr("only one window that reaches model.context, 64, got 64 and 128"));
  EXPECT_THAT(Refusal(with([](auto& o) { o.budget = 0.05; })),
              HasSubstr("raise the budget, add a smaller candidate"));
  EXPECT_THAT(Refusal(with([](auto& o) { o.search = 0; })), HasSubstr("search"));
  EXPECT_THAT(Refusal(with([](auto& o) { o.warmup = 0.9; })),
              HasSubstr("warmup + search: expected less than the whole run"));
  EXPECT_THAT(Refusal(with([](auto& o) { o.final_temperature = 0; })), HasSubstr("more than 0"));
  EXPECT_THAT(Refusal(with([](auto& o) { o.temperature = 0.1; })),
              HasSubstr("at least final_temperature"));
  EXPECT_THAT(Refusal(with([](auto& o) {
                o.budget_kind = BudgetKind::kCacheBytes;
                o.cache_element = CacheElement::kQ8;
              })),
              HasSubstr("32"));
}

TEST(LearnedAttention, AttendsAsItsPhaseSays) {
  LearnedAttention attention(Options(), Model(), 0);
  Begin(attention, 0);
  EXPECT_THAT(attention.windows()[1], Each(64));
  const AttentionInputs inputs = Inputs(0);
  EXPECT_TRUE(attention.Attend(inputs).equal(Plain(inputs, {64, 64, 64, 64})));
  EXPECT_FALSE(attention.Mixes(true));
  EXPECT_FALSE(attention.plan().has_value());

  // The search begins near it.
  Begin(attention, 10);
  EXPECT_TRUE(attention.Mixes(true));
  EXPECT_GT(attention.Weights()[0][2].item<double>(), 0.85);
  EXPECT_LT((attention.Attend(inputs) - Plain(inputs, {64, 64, 64, 64})).abs().max().item<double>(),
            0.5);
  const NestedOperatorResult mixed = NestedAttention(
      inputs.query, inputs.key, inputs.value, attention.Weights().slice(0, 0, 4).to(at::kFloat),
      std::vector<int64_t>{4, 16, 64});
  EXPECT_TRUE(attention.Attend(inputs).allclose(mixed.out, 1e-6, 1e-6));
  EXPECT_THAT(attention.windows()[0], Each(64));

  SetLogits(attention, LogitsFor({0, 0, 0, 0, 0, 0, 0, 2}, 1));
  Begin(attention, 30);
  EXPECT_EQ(attention.selection()->phase, "plan");
  EXPECT_THAT(attention.windows()[0], ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(attention.windows()[1], ElementsAre(4, 4, 4, 64));
  const AttentionInputs last = Inputs(1);
  EXPECT_TRUE(attention.Attend(last).equal(Plain(last, {4, 4, 4, 64})));
  EXPECT_FALSE(attention.Mixes(true));

  // A tracking step mixes in training alone.
  Begin(attention, 40);
  EXPECT_FALSE(attention.Attend(last).equal(Plain(last, {4, 4, 4, 64})));
  EXPECT_TRUE(attention.Mixes(true));
  EXPECT_FALSE(attention.Mixes(false));
  const AttentionInputs evaluated = Inputs(1, /*training=*/false);
  EXPECT_TRUE(attention.Attend(evaluated).equal(Plain(evaluated, {4, 4, 4, 64})));
  Begin(attention, 41);
  EXPECT_TRUE(attention.Attend(last).equal(Plain(last, {4, 4, 4, 64})));
}

TEST(LearnedAttention, TemperatureAndTargetFallOverTheSearch) {
  LearnedAttention attention(Options(), Model(), 0);
  Begin(attention, 10);
  EXPECT_EQ(attention.selection()->temperature, 1);
  // 0.9 for the widest, 0.05 for the others: of 64 tokens 4 sees 250 pairs, 16 sees 904, 64 2080.
  EXPECT_NEAR(attention.selection()->target_cost, 0.9 + 0.05 * (250.0 + 904) / 2080, 1e-12);
  Begin(attention, 24);  // 0.7 of 19 steps and a little more
  EXPECT_DOUBLE_EQ(attention.selection()->target_cost, 0.3);
  Begin(attention, 29);
  EXPECT_DOUBLE_EQ(attention.selection()->temperature, 0.3);
  EXPECT_DOUBLE_EQ(attention.selection()->target_cost, 0.3);
  Begin(attention, 30);
  EXPECT_DOUBLE_EQ(attention.selection()->temperature, 0.3);
}

// The loss that a logit sees, and its gradient by differences: through the multiplier that keeps
// the cost, softmax, temperature and the nested operator, over two micro-batches, in double.
TEST(LearnedAttention, LogitsMoveByTheGradientOfTheLossAtTheCostOfTheStep) {
  for (const int64_t step : {15, 29}) {
    LearnedOptions options = Options();
    options.drop_below = 0;  // where a candidate is dropped, the loss jumps a little
    LearnedAttention attention(options, Model(), 2);
    at::manual_seed(9);
    const at::Tensor logits = at::randn({2, 4, 3});
    const AttentionInputs near = Inputs(0, true, 4, at::kDouble);
    const AttentionInputs inputs = Inputs(1, true, 4, at::kDouble);
    const at::Tensor weight = at::randn({2, 4, kContext, 8}, at::kDouble);
    const auto loss = [&] {
      Begin(attention, step);
      return ((attention.Attend(inputs) + attention.Attend(near)) * weight).sum();
    };
    SetLogits(attention, logits);
    loss().backward();
    ((attention.Attend(inputs) + attention.Attend(near)) * weight).sum().backward();
    attention.EndBackward();
    EXPECT_NEAR(attention.selection()->expected_cost, attention.selection()->target_cost, 1e-9);
    const at::Tensor gradient = attention.parameters().front().value.grad() / 2;
    constexpr double kStep = 1e-2;
    for (int64_t i = 0; i < gradient.numel(); ++i) {
      at::Tensor moved = logits.clone();
      const at::Tensor entry = moved.view({-1})[i];
      entry.add_(kStep);
      SetLogits(attention, moved);
      const double above = loss().item<double>();
      entry.sub_(2 * kStep);
      SetLogits(attention, moved);
      const double below = loss().item<double>();
      const double expected = (above - below) / (2 * kStep);
      // Logits are float: losses of some ten are exact to 1e-6 here, the step's own error is h^2.
      EXPECT_NEAR(gradient.view({-1})[i].item<double>(), expected, 2e-3 * (1 + std::abs(expected)));
    }
  }
}

// However much the logits want to see, the cost is the target's; what wants less may have less.
TEST(LearnedAttention, WeightsCostWhatTheStepsTargetSays) {
  LearnedAttention attention(Options(), Model(), 0);
  for (const double height : {-3.0, 0.0, 8.0}) {
    SetLogits(attention, LogitsFor(std::vector<int64_t>(8, 2), height));
    for (const int64_t step : {10, 17, 23}) {
      Begin(attention, step);
      EXPECT_NEAR(attention.selection()->expected_cost, attention.selection()->target_cost, 1e-9);
    }
    Begin(attention, 29);
    EXPECT_LE(attention.selection()->expected_cost, 0.3 + 1e-9);
  }
  EXPECT_GT(attention.selection()->multiplier, 10);
  SetLogits(attention, LogitsFor(std::vector<int64_t>(8, 0), 8));
  Begin(attention, 29);
  EXPECT_EQ(attention.selection()->multiplier, 0);
  EXPECT_LT(attention.selection()->expected_cost, 0.13);
}

// Heads for which a logit says more keep what the others give up.
TEST(LearnedAttention, TheHeadThatGainsMostKeepsItsSight) {
  LearnedAttention attention(Options(), Model(), 0);
  at::Tensor logits = torch::zeros({2, 4, 3});
  logits[1][2][2] = 2;
  SetLogits(attention, logits);
  Begin(attention, 29);
  const at::Tensor widest = attention.Weights().select(-1, 2);
  EXPECT_EQ(widest.argmax().item<int64_t>(), 6);
  EXPECT_GT(widest[6].item<double>(), 0.8);
  EXPECT_LT(widest[5].item<double>(), 0.2);
}

// What lowers the loss by lowering the cost is followed once the target has come down; what raises
// the cost is not. Free logits, for which only the cost counts.
TEST(LearnedAttention, ASearchThatWantsLessThanTheBudgetGetsLess) {
  for (const bool wants_less : {true, false}) {
    LearnedAttention attention(Options(), Model(), 0);
    AdamW optimizer(torch::nn::Linear(1, 1).operator*(), OptimizerConfig(), attention.parameters());
    // The search of 400 steps goes from 40 to 120; its target has come down at 96.
    for (int64_t step = 40; step < 120; ++step) {
      attention.BeginStep({.step = step, .steps = 400, .micro_batches = 1});
      optimizer.ZeroGradients();
      for (int64_t layer = 0; layer < 2; ++layer) {
        // Earlier values are larger, and so is what a longer window gives.
        AttentionInputs inputs = {layer, torch::zeros({1, 4, kContext, 8}),
                                  torch::zeros({1, 4, kContext, 8}),
                                  torch::arange(kContext, 0, -1)
                                      .to(at::kFloat)
                                      .view({1, 1, -1, 1})
                                      .expand({1, 4, kContext, 8})
                                      .contiguous(),
                                  true};
        ((wants_less ? 1 : -1) * attention.Attend(inputs).sum()).backward();
      }
      attention.EndBackward();
      optimizer.Step(0);
      if (step < 95) {
        EXPECT_NEAR(attention.selection()->expected_cost, attention.selection()->target_cost, 1e-9);
      }
    }
    if (wants_less) {
      EXPECT_LT(attention.selection()->expected_cost, 0.29);
    } else {
      EXPECT_NEAR(attention.selection()->expected_cost, 0.3, 1e-9);
    }
  }
}

// A budget of nearly everything is risen to.
TEST(LearnedAttention, ABudgetAboveTheFirstTargetIsReached) {
  LearnedOptions options = Options();
  options.budget = 1;
  LearnedAttention attention(options, Model(), 0);
  Begin(attention, 10);
  EXPECT_LT(attention.selection()->target_cost, 0.95);
  Begin(attention, 22);
  EXPECT_GT(attention.selection()->target_cost, 0.97);
  Begin(attention, 29);
  EXPECT_EQ(attention.selection()->target_cost, 1);
  EXPECT_EQ(attention.selection()->multiplier, 0);
}

// A whole search by the optimiser that trains use, where one head alone needs to see far: it keeps
// its sight although every step's noise is as large, and the cost falls faster than logits can.
TEST(LearnedAttention, ASearchLeavesItsSightToTheHeadThatNeedsIt) {
  for (const uint64_t seed : {1, 2, 3}) {
    LearnedAttention attention(Options(), Model(), 0);
    const std::vector<OwnParameter> own = attention.parameters();
    AdamW optimizer(torch::nn::Linear(1, 1).operator*(), OptimizerConfig(), own);
    at::manual_seed(seed);
    const auto random = [] { return torch::randn({2, 4, kContext, 8}); };
    for (int64_t step = 10; step < 30; ++step) {
      Begin(attention, step);
      optimizer.ZeroGradients();
      for (int64_t layer = 0; layer < 2; ++layer) {
        const AttentionInputs inputs = {layer, random(), random(), random(), true};
        const at::Tensor out = attention.Attend(inputs);
        at::Tensor loss = (out * random()).sum();
        if (layer == 1) {
          const at::Tensor full = Plain(inputs, {64, 64, 64, 64});
          loss = loss + 5 * (out - full).select(1, 2).square().sum();
        }
        loss.backward();
      }
      attention.EndBackward();
      optimizer.Step(0);
    }
    Begin(attention, 30);
    EXPECT_EQ(attention.windows()[1][2], 64) << seed;
    EXPECT_LE(attention.selection()->hard_cost, 0.3);
  }
}

TEST(LearnedAttention, DroppedCandidatesHaveNoGradient) {
  LearnedAttention attention(Options(), Model(), 0);
  at::Tensor logits = torch::zeros({2, 4, 3});
  logits.select(-1, 1).fill_(-20);
  SetLogits(attention, logits);
  Begin(attention, 20);
  attention.Attend(Inputs(0)).square().sum().backward();
  attention.EndBackward();
  const at::Tensor gradient = attention.parameters().front().value.grad()[0];
  EXPECT_EQ(gradient.select(-1, 1).abs().max().item<float>(), 0);
  EXPECT_GT(gradient.select(-1, 0).abs().min().item<float>(), 0);
}

TEST(LearnedAttention, HeadsThatShareAWindowAddTheirGradients) {
  LearnedOptions options = Options();
  LearnedAttention free(options, Model(2), 0);
  options.share = WindowShare::kKvHead;
  LearnedAttention shared(options, Model(2), 0);
  at::manual_seed(4);
  const at::Tensor logits = at::randn({2, 2, 3});
  SetLogits(shared, logits);
  SetLogits(free, logits.repeat_interleave(2, 1));
  const at::Tensor weight = at::randn({2, 4, kContext, 8});
  for (LearnedAttention* attention : {&free, &shared}) {
    Begin(*attention, 20);
    (attention->Attend(Inputs(1, true, 2)) * weight).sum().backward();
    attention->EndBackward();
  }
  const at::Tensor each = free.parameters().front().value.grad();
  EXPECT_TRUE(shared.parameters().front().value.grad().allclose(each.view({2, 2, 2, 3}).sum(2),
                                                                1e-5, 1e-5));
}

TEST(LearnedAttention, CandidatesOfNoWeightAreNotComputed) {
  LearnedAttention attention(Options(), Model(), 0);
  SetLogits(attention, LogitsFor({0, 1, 2, 0, 0, 0, 0, 0}, 20));
  Begin(attention, 29);  // for 0.27, within the budget
  EXPECT_THAT(attention.windows()[0], ElementsAre(4, 16, 64, 4));
  const AttentionInputs inputs = Inputs(0);
  EXPECT_TRUE(attention.Attend(inputs).allclose(Plain(inputs, {4, 16, 64, 4}), 1e-6, 1e-6));
}

TEST(LearnedAttention, CacheBytesOfFreeHeadsExpectTheLargestWindow) {
  LearnedOptions options = Options();
  options.budget_kind = BudgetKind::kCacheBytes;
  LearnedAttention attention(options, Model(2), 0);
  at::manual_seed(6);
  SetLogits(attention, at::randn({2, 4, 3}));
  for (const int64_t step : {12, 29}) {
    Begin(attention, step);
    // Of two heads that share keys, every pair of choices.
    const at::Tensor weights = attention.Weights();
    double cost = 0;
    for (int64_t pair = 0; pair < 4; ++pair) {
      for (int64_t i = 0; i < 3; ++i) {
        for (int64_t j = 0; j < 3; ++j) {
          cost += (weights[2 * pair][i] * weights[2 * pair + 1][j]).item<double>() *
                  std::vector{4, 16, 64}[static_cast<size_t>(std::max(i, j))] / 64.0 / 4;
        }
      }
    }
    EXPECT_NEAR(cost, attention.selection()->target_cost, 1e-8);
    EXPECT_NEAR(attention.selection()->expected_cost, cost, 1e-8);
  }
}

TEST(LearnedAttention, GumbelDrawsOneCandidateAndPassesSoftGradients) {
  const AttentionInputs inputs = Inputs(0);
  const AttentionInputs evaluated = Inputs(0, false);
  std::vector<at::Tensor> one;
  for (const int32_t window : {4, 16, 64}) {
    one.push_back(Plain(inputs, std::vector<int32_t>(4, window)));
  }
  std::vector<int64_t> drawn(3, 0);
  for (const uint64_t seed : {5, 6, 7, 8}) {
    LearnedOptions options = Options();
    options.estimator = SelectionEstimator::kGumbel;
    options.seed = seed;
    options.budget = 0.6;  // above 0.518, what equal odds cost
    LearnedAttention attention(options, Model(), 0);
    for (int64_t step = 24; step < 30; ++step) {
      Begin(attention, step);
      EXPECT_EQ(attention.selection()->multiplier, 0);
      const at::Tensor out = attention.Attend(inputs);
      // The other micro-batches of the step draw the same.
      EXPECT_TRUE(out.equal(attention.Attend(inputs)));
      for (int64_t head = 0; head < 4; ++head) {
        int64_t matches = 0;
        for (size_t n = 0; n < 3; ++n) {
          if (out.select(1, head).allclose(one[n].select(1, head), 1e-5, 1e-5)) {
            ++matches;
            ++drawn[n];
          }
        }
        EXPECT_EQ(matches, 1);
      }
      attention.parameters().front().value.mutable_grad() = at::Tensor();
      out.sum().backward();
      attention.EndBackward();
      EXPECT_GT(attention.parameters().front().value.grad().abs().max().item<double>(), 0);
    }
    // In evaluation nothing is drawn.
    EXPECT_TRUE(attention.Attend(evaluated).allclose((one[0] + one[1] + one[2]) / 3, 1e-5, 1e-5));
  }
  // 96 draws at equal odds; below 10 of one kind has a probability of 1e-7.
  EXPECT_THAT(drawn, Each(::testing::Ge(10)));
}

// Within a budget, the odds of a draw are those of weights that cost it.
TEST(LearnedAttention, GumbelDrawsWithinTheBudget) {
  LearnedOptions options = Options();
  options.estimator = SelectionEstimator::kGumbel;
  options.budget = 0.15;  // the widest has odds of a hundredth, of a third without a budget
  const AttentionInputs inputs = Inputs(0);
  const at::Tensor widest = Plain(inputs, {64, 64, 64, 64});
  int64_t drawn = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    options.seed = seed;
    LearnedAttention attention(options, Model(), 0);
    Begin(attention, 29);
    EXPECT_NEAR(attention.selection()->expected_cost, 0.15, 1e-9);
    EXPECT_LT(attention.Weights()[0][2].item<double>(), 0.02);
    const at::Tensor out = attention.Attend(inputs);
    for (int64_t head = 0; head < 4; ++head) {
      drawn += out.select(1, head).allclose(widest.select(1, head), 1e-5, 1e-5) ? 1 : 0;
    }
  }
  EXPECT_LE(drawn, 4);  // of 32
}

// Evaluation in a search mixes by the weights that the log tells of.
TEST(LearnedAttention, EvaluationMixesByTheWeightsOfTheBudget) {
  LearnedAttention attention(Options(), Model(), 0);
  Begin(attention, 29);
  ASSERT_GT(attention.selection()->multiplier, 0);
  const AttentionInputs inputs = Inputs(0, /*training=*/false);
  const NestedOperatorResult mixed = NestedAttention(
      inputs.query, inputs.key, inputs.value, attention.Weights().slice(0, 0, 4).to(at::kFloat),
      std::vector<int64_t>{4, 16, 64});
  EXPECT_TRUE(attention.Attend(inputs).allclose(mixed.out, 1e-6, 1e-6));
}

}  // namespace
}  // namespace aah
