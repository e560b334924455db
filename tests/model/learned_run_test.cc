// Runs that learn their windows, from the recipe to the logs and the plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "aah/io/window_plan_file.h"
#include "aah/model/evaluate.h"
#include "aah/model/trainer.h"
#include "tests/model/train_support.h"

namespace aah {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Of three equal weights.
const double kFirstEntropy = std::log(3);

class LearnedRunTest : public ::testing::Test {
 protected:
  LearnedRunTest() { WriteTokens(data_); }

  // 20 steps: 2 of full attention, 8 of search, then a plan, looked at every 3 steps.
  RunConfig Run(const std::string& name) const {
    RunConfig config = TinyRun(folder_ / name, data_);
    config.training.steps = 20;
    config.attention.variant = "learned";
    LearnedOptions& learned = config.attention.learned;
    learned.candidates = {2, 8, 32};
    learned.budget = 0.4;
    learned.warmup = 0.1;
    learned.search = 0.4;
    learned.track_every = 3;
    learned.learning_rate = 0.3;
    return config;
  }

  TemporaryFolder folder_;
  std::string data_ = folder_ / "tokens.bin";
};

TEST_F(LearnedRunTest, GoesThroughItsPhasesAndKeepsTheBudget) {
  const RunConfig config = Run("run");
  const Recorder recorder = Train(config);
  EXPECT_EQ(recorder.starts[0].attention, "learned");
  const RunMetrics metrics = ReadMetrics(config.out);
  ASSERT_THAT(metrics.steps, SizeIs(20));
  for (const StepRecord& step : metrics.steps) {
    ASSERT_TRUE(step.selection.has_value());
    const SelectionSummary& selection = *step.selection;
    EXPECT_EQ(selection.phase, step.step <= 2 ? "warmup" : step.step <= 10 ? "search" : "plan");
    EXPECT_EQ(selection.decided, step.step == 11 || step.step == 15 || step.step == 18)
        << step.step;
    if (selection.phase == "plan") {
      EXPECT_LE(selection.hard_cost, 0.4);
      const bool tracks = step.step == 14 || step.step == 17 || step.step == 20;
      if (tracks) {
        EXPECT_GE(step.visible_pair_ratio, selection.hard_cost);
      } else {
        EXPECT_EQ(step.visible_pair_ratio, selection.hard_cost);
      }
    }
  }
  // Nothing is left out until weights vanish.
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(metrics.steps[i].visible_pair_ratio, 1);
  // Untouched while full, then moving.
  EXPECT_NEAR(metrics.steps[1].selection->entropy, kFirstEntropy, 1e-6);
  EXPECT_NE(metrics.steps[2].selection->entropy, metrics.steps[1].selection->entropy);
  EXPECT_LT(metrics.steps[9].selection->expected_cost, metrics.steps[1].selection->expected_cost);

  // A snapshot of both layers in each of the 8 steps of the search, and at each decision.
  const std::vector<SelectionRecord> snapshots = ReadSelection(config.out);
  ASSERT_THAT(snapshots, SizeIs(2 * (8 + 3)));
  EXPECT_EQ(snapshots.front().step, 3);
  EXPECT_EQ(snapshots.back().step, 18);
  // Training moves logits: the heads of a layer, equal at first, are not when the search ends.
  EXPECT_NE(snapshots[14].weights[0], snapshots[14].weights[1]);
  for (const SelectionRecord& snapshot : snapshots) {
    ASSERT_THAT(snapshot.weights, SizeIs(2));
    for (const std::vector<double>& weights : snapshot.weights) {
      EXPECT_NEAR(weights[0] + weights[1] + weights[2], 1, 1e-5);
    }
  }

  const WindowPlan plan = ReadWindowPlan(PlanPath(config.out), PlanModelOf(config.model));
  EXPECT_EQ(plan.budget->value, 0.4);
  EXPECT_EQ(plan.predicted.at("cost"), metrics.steps.back().selection->hard_cost);
  EXPECT_EQ(plan.provenance.tokens, 20 * 4 * 32);
  EXPECT_EQ(plan.provenance.data, data_);
}

TEST_F(LearnedRunTest, StoppedInAnyPhaseAndResumedEqualsUninterrupted) {
  for (const SelectionEstimator estimator :
       {SelectionEstimator::kSoftmax, SelectionEstimator::kGumbel}) {
    RunConfig whole = Run(estimator == SelectionEstimator::kGumbel ? "gumbel" : "softmax");
    whole.attention.learned.estimator = estimator;
    whole.training.micro_batch_size = 2;
    whole.model.dropout = 0.1;
    Train(whole);
    for (const int64_t stop_after : {1, 6, 10, 11, 14, 15}) ExpectResumesAs(whole, stop_after);
  }
}

TEST_F(LearnedRunTest, SharedWindowsOfKeyValueHeadsResumeAsWell) {
  RunConfig whole = Run("shared");
  whole.model.heads = 4;
  whole.model.kv_heads = 2;
  whole.model.width = 32;
  whole.attention.learned.share = WindowShare::kKvHead;
  whole.attention.learned.budget_kind = BudgetKind::kCacheBytes;
  Train(whole);
  for (const int64_t stop_after : {6, 14}) ExpectResumesAs(whole, stop_after);
  const WindowPlan plan = ReadWindowPlan(PlanPath(whole.out), PlanModelOf(whole.model));
  for (const auto& windows : plan.windows) {
    EXPECT_EQ(windows[0], windows[1]);
    EXPECT_EQ(windows[2], windows[3]);
  }
}

TEST_F(LearnedRunTest, ThePlanFileIsThatOfTheNewestCheckpoint) {
  const RunConfig config = Run("run");
  Train(config);
  RunConfig other = Run("other");
  other.checkpoint.keep = 9;
  TrainUntil(17, other);
  // As a kill would leave it between a plan and its checkpoint.
  std::filesystem::remove(PlanPath(other.out));
  std::filesystem::remove_all(CheckpointPath(other.out, 17));
  TrainUntil(16, other);
  EXPECT_TRUE(std::filesystem::exists(PlanPath(other.out)));
  // Back in the search there is none.
  for (const int64_t step : {10, 15, 16}) {
    std::filesystem::remove_all(CheckpointPath(other.out, step));
  }
  EXPECT_EQ(TrainUntil(6, other).steps.front().step, 6);
  EXPECT_FALSE(std::filesystem::exists(PlanPath(other.out)));
  EvaluateOptions options;
  options.run = other.out;
  options.threads = 1;
  EXPECT_EQ(EvaluateRun(options).attention, "learned (search)");
  Train(other);
  EXPECT_EQ(FileText(PlanPath(other.out)), FileText(PlanPath(config.out)));
}

TEST_F(LearnedRunTest, ValidationChangesNothing) { ExpectValidationChangesNothing(Run("run")); }

TEST_F(LearnedRunTest, ThePlanTrainsAndEvaluatesAsTheRunDoes) {
  const RunConfig config = Run("run");
  Train(config);
  EvaluateOptions options;
  options.run = config.out;
  options.threads = 1;
  const EvaluationResult own = EvaluateRun(options);
  options.plan = PlanPath(config.out);
  EXPECT_EQ(EvaluateRun(options).loss, own.loss);

  const RunConfig planned =
      ParseRunConfig(RunConfigYaml(TinyRun(folder_ / "planned", data_)), "planned",
                     std::vector<std::string>{"attention={plan: " + PlanPath(config.out) + "}"});
  EXPECT_EQ(Train(planned).steps.back().visible_pair_ratio, own.visible_pair_ratio);
}

TEST_F(LearnedRunTest, WeightsOfALearnedRunStartAnotherWithoutItsLogits) {
  const RunConfig config = Run("run");
  Train(config);
  RunConfig next = Run("next");
  next.init_from = config.out;
  const Recorder recorder = Train(next);
  EXPECT_NEAR(recorder.steps[0].selection->entropy, kFirstEntropy, 1e-6);
  EXPECT_LT(recorder.steps[0].loss, ReadMetrics(config.out).steps[0].loss);
}

TEST_F(LearnedRunTest, BadRecipesAreRefused) {
  const auto refusal = [&](const std::vector<std::string>& overrides) {
    const std::string recipe = RunConfigYaml(TinyRun(folder_ / "bad", data_));
    return ErrorOf([&] { ParseRunConfig(recipe, "recipe", overrides); }).first;
  };
  EXPECT_THAT(refusal({"attention={learned: {budget: 2}}"}),
              HasSubstr("attention.learned: budget: expected a share"));
  EXPECT_THAT(refusal({"attention={learned: {budgt: 0.2}}"}), HasSubstr("budget"));
  EXPECT_THAT(refusal({"attention={learned: {candidates: [4, 8]}}"}),
              HasSubstr("reach model.context, 32"));
  EXPECT_THAT(refusal({"attention={learned: {share: heads}}"}), HasSubstr("head"));
  EXPECT_THAT(refusal({"attention={learned: {}, window: 4}"}),
              HasSubstr("has no use where windows are chosen by 'learned'"));
  EXPECT_THAT(refusal({"attention={variant: full, learned: {}}"}),
              HasSubstr("remove it or set the variant to learned"));
  for (const char* variant : {"", "variant: learned, ", "variant: aah, "}) {
    EXPECT_THAT(refusal({"attention={" + std::string(variant) + "learned: {}, control: {}}"}),
                HasSubstr("set the variant to aah_learned"));
  }
  EXPECT_THAT(refusal({"attention={learned: {candidates: [2, 32]}}", "training.steps=1",
                       "optimizer.warmup_steps=0"}),
              HasSubstr("more training steps"));
}

TEST_F(LearnedRunTest, RecipesReadBackEqual) {
  RunConfig config = Run("run");
  config.attention.learned.share = WindowShare::kKvHead;
  config.attention.learned.budget_kind = BudgetKind::kCacheBytes;
  config.attention.learned.estimator = SelectionEstimator::kGumbel;
  const RunConfig again = ParseRunConfig(RunConfigYaml(config), "again", {});
  EXPECT_THAT(CompareRunConfigs(config, again), IsEmpty());
  EXPECT_EQ(again.attention.learned.candidates, config.attention.learned.candidates);
  EXPECT_EQ(again.attention.learned.estimator, SelectionEstimator::kGumbel);
}

}  // namespace
}  // namespace aah
