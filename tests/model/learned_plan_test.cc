// Attention whose windows are learned: decisions, tracking, budgets, state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <optional>
#include <string>
#include <vector>

#include "aah/error.h"
#include "aah/model/learned_attention.h"
#include "tests/model/learned_support.h"

namespace aah {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LearnedAttention, ATrackingStepSaysWhatItComputed) {
  LearnedAttention attention(Options(), Model(), 0);
  SetLogits(attention, LogitsFor({0, 0, 0, 0, 0, 0, 0, 0}, 1));
  Begin(attention, 30);
  attention.Attend(Inputs(0));
  EXPECT_EQ(attention.computed_windows(), attention.windows());
  Begin(attention, 40);
  attention.Attend(Inputs(0));
  attention.Attend(Inputs(1, /*training=*/false));
  EXPECT_THAT(attention.computed_windows()[0], Each(64));
  EXPECT_THAT(attention.windows()[0], Each(4));
}

TEST(LearnedAttention, PlanStaysWithinTheBudgetAndSaysWhatItCosts) {
  // All heads want everything; two of eight can have it.
  LearnedAttention attention(Options(), Model(), 0);
  at::Tensor logits = LogitsFor(std::vector<int64_t>(8, 2), 2);
  logits[0][1][2] = 5;
  logits[1][3][2] = 4;
  SetLogits(attention, logits);
  Begin(attention, 30);
  const std::optional<WindowPlan> plan = attention.plan();
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->windows[0][1], 64);
  const double cost = CostRatio(plan->windows, plan->model.shape, 0, *plan->budget);
  EXPECT_LE(cost, 0.3);
  EXPECT_EQ(plan->predicted.at("cost"), cost);
  EXPECT_EQ(attention.selection()->hard_cost, cost);
  EXPECT_GE(attention.selection()->duality_gap, 0);
  EXPECT_TRUE(attention.selection()->decided);
  EXPECT_EQ(plan->provenance.method, "learned, softmax");
  CheckWindowPlan(*plan, "plan");
}

TEST(LearnedAttention, TrackingMovesHeadsWithHysteresis) {
  LearnedAttention attention(Options(), Model(), 0);
  SetLogits(attention, LogitsFor({0, 0, 0, 0, 0, 0, 0, 2}));
  Begin(attention, 30);
  Begin(attention, 40);
  // A little better than the current window is not enough (0.02 / 0.3 < 0.5), more is.
  at::Tensor logits = LogitsFor({0, 0, 0, 0, 0, 0, 0, 2});
  logits[0][0][1] = 3.02;
  logits[0][1][1] = 3.5;
  SetLogits(attention, logits);
  Begin(attention, 41);
  EXPECT_TRUE(attention.selection()->decided);
  EXPECT_EQ(attention.selection()->moved, 1);
  EXPECT_THAT(attention.windows()[0], ElementsAre(4, 16, 4, 4));
  Begin(attention, 42);
  EXPECT_FALSE(attention.selection()->decided);
  EXPECT_EQ(attention.selection()->moved, 0);
}

TEST(LearnedAttention, WithoutTrackingThePlanStays) {
  LearnedOptions options = Options();
  options.track_every = 0;
  LearnedAttention attention(options, Model(), 0);
  Begin(attention, 30);
  const auto windows = attention.windows();
  SetLogits(attention, LogitsFor({2, 2, 2, 2, 2, 2, 2, 2}));
  for (int64_t step = 31; step < 100; ++step) Begin(attention, step);
  EXPECT_EQ(attention.windows(), windows);
}

TEST(LearnedAttention, KeyValueHeadsShareAWindow) {
  LearnedOptions options = Options();
  options.share = WindowShare::kKvHead;
  options.budget_kind = BudgetKind::kCacheBytes;
  LearnedAttention attention(options, Model(2), 0);
  at::Tensor logits = torch::zeros({2, 2, 3});
  logits[1][0][1] = 3;
  logits[0][0][0] = logits[0][1][0] = logits[1][1][0] = 3;
  SetLogits(attention, logits);
  Begin(attention, 20);
  const AttentionInputs inputs = Inputs(1, true, 2);
  EXPECT_EQ(attention.Attend(inputs).sizes(), inputs.query.sizes());
  Begin(attention, 30);
  EXPECT_THAT(attention.windows()[0], ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(attention.windows()[1], ElementsAre(16, 16, 4, 4));
  // Three caches of 4 and one of 16 of 64 tokens.
  EXPECT_DOUBLE_EQ(attention.selection()->hard_cost, (3 * 4 + 16) / 256.0);
}

TEST(LearnedAttention, StateGoesOnToTheBit) {
  for (const int64_t stop : {5, 15, 29, 30, 40, 41, 55}) {
    LearnedAttention whole(Options(), Model(), 0);
    LearnedAttention resumed(Options(), Model(), 0);
    at::manual_seed(3);
    const at::Tensor drift = at::randn({2, 4, 3});
    const auto run = [&](LearnedAttention& attention, int64_t first, int64_t last) {
      for (int64_t step = first; step < last; ++step) {
        Begin(attention, step);
        if (attention.Mixes(true)) {
          SetLogits(attention, attention.parameters().front().value.detach() + 0.1 * drift);
        }
      }
    };
    run(whole, 0, stop);
    resumed.Restore(whole.Save());
    EXPECT_EQ(resumed.windows(), whole.windows());
    EXPECT_TRUE(resumed.Weights().equal(whole.Weights()));
    EXPECT_EQ(resumed.selection()->expected_cost, whole.selection()->expected_cost);
    run(whole, stop, 70);
    run(resumed, stop, 70);
    EXPECT_EQ(resumed.windows(), whole.windows()) << stop;
    EXPECT_EQ(resumed.Save().json, whole.Save().json) << stop;
    EXPECT_TRUE(resumed.Weights().equal(whole.Weights()));
  }
}

TEST(LearnedAttention, StatesOfAnotherKindOrShapeAreRefused) {
  LearnedAttention attention(Options(), Model(), 0);
  Begin(attention, 30);
  const PolicyState good = attention.Save();
  const auto refusal = [&](const PolicyState& state) -> std::string {
    LearnedAttention other(Options(), Model(), 0);
    try {
      other.Restore(state);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(good), "");
  EXPECT_THAT(refusal({}), HasSubstr("expected learned windows, got nothing"));
  PolicyState bad = good;
  bad.json = R"({"policy": "aah"})";
  EXPECT_THAT(refusal(bad), HasSubstr("got another"));
  bad = good;
  bad.tensors["logits.logits"] = at::zeros({2, 4, 4});
  EXPECT_THAT(refusal(bad), HasSubstr("3 candidates"));
  bad = good;
  bad.tensors["plan"] = at::zeros({7}, at::kInt);
  EXPECT_THAT(refusal(bad), HasSubstr("each of 8 heads, got 7"));
  bad.tensors["plan"] = at::full({8}, 3, at::kInt);
  EXPECT_THAT(refusal(bad), HasSubstr("indices below 3, got 3"));
  bad = good;
  bad.tensors["more"] = at::zeros({1});
  EXPECT_THAT(refusal(bad), HasSubstr("unknown tensor 'more'"));
}

TEST(LearnedAttention, ARunMadeLongerKeepsItsPlan) {
  LearnedAttention attention(Options(), Model(), 0);
  SetLogits(attention, LogitsFor({0, 0, 0, 0, 0, 0, 0, 2}));
  Begin(attention, 30);
  attention.BeginStep({.step = 31, .steps = 1000, .micro_batches = 1});
  EXPECT_EQ(attention.selection()->phase, "plan");
}

TEST(LearnedAttention, ARunMadeLongerInItsSearchGoesOnWithIt) {
  LearnedAttention attention(Options(), Model(), 0);
  Begin(attention, 15);
  LearnedAttention resumed(Options(), Model(), 0);
  resumed.Restore(attention.Save());
  Begin(attention, 16);
  resumed.BeginStep({.step = 16, .steps = 1000, .micro_batches = 1});
  EXPECT_EQ(resumed.selection()->phase, "search");
  EXPECT_EQ(resumed.selection()->target_cost, attention.selection()->target_cost);
  resumed.BeginStep({.step = 30, .steps = 1000, .micro_batches = 1});
  EXPECT_EQ(resumed.selection()->phase, "plan");
}

TEST(LearnedAttention, OtherBudgetsAndLengthsAreCountedAsTheySay) {
  LearnedOptions options = Options();
  options.budget_kind = BudgetKind::kAllocatedContext;
  options.budget_length = 128;
  LearnedAttention attention(options, Model(), 4);
  SetLogits(attention, LogitsFor({0, 1, 2, 0, 0, 0, 0, 0}));
  Begin(attention, 30);
  // Windows of 4, 16 and 64 and four sinks, of 128 tokens.
  EXPECT_DOUBLE_EQ(attention.selection()->hard_cost, (6 * 8 + 20 + 68) / (8 * 128.0));
  EXPECT_EQ(attention.plan()->sinks, 4);
  EXPECT_EQ(attention.plan()->budget->length, 128);
}

}  // namespace
}  // namespace aah
