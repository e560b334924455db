// The variant `aah_learned` from the recipe to the run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "aah/model/train_config.h"
#include "aah/model/trainer.h"
#include "tests/model/train_support.h"

namespace aah {
namespace {

using ::testing::HasSubstr;

RunConfig Parse(const std::string& more) {
  return ParseRunConfig(
      "out: runs/x\ndata: data/x\nmodel: {context: 1024}\ntraining: {steps: 100}\n" + more,
      "recipe.yaml", {});
}

TEST(AahLearnedConfigTest, IsReadAndWritten) {
  EXPECT_EQ(Parse("attention: aah_learned\n").attention.variant, "aah_learned");
  const RunConfig config = Parse(
      "attention:\n  variant: aah_learned\n  regime: shallow_freeze\n"
      "  learned: {budget: 0.3, candidates: [8, 1024], scorer_learning_rate: 0.02}\n"
      "  control: {control_interval: 7, siblings: sibling_bias}\n");
  EXPECT_EQ(config.attention.control.regime, "shallow_freeze");
  EXPECT_EQ(config.attention.control.control_interval, 7);
  EXPECT_EQ(config.attention.learned.budget, 0.3);
  EXPECT_EQ(config.attention.learned.scorer_learning_rate, 0.02);
  const std::string yaml = RunConfigYaml(config);
  EXPECT_THAT(yaml, HasSubstr("scorer_learning_rate: 0.02"));
  EXPECT_EQ(RunConfigYaml(ParseRunConfig(yaml, "again.yaml", {})), yaml);
}

TEST(AahLearnedConfigTest, SettingsWithoutUseAreRefused) {
  const auto refusal = [](const std::string& more) {
    return ErrorOf([&] { Parse("attention:\n  variant: aah_learned\n" + more); }).first;
  };
  EXPECT_THAT(refusal("  control: {windows: [8, 1024]}\n"),
              HasSubstr("candidates are attention.learned.candidates; remove it"));
  EXPECT_THAT(refusal("  control: {warmup_steps: 8}\n"), HasSubstr("attention.learned.warmup"));
  EXPECT_THAT(refusal("  control: {window_ema: 0.5}\n"), HasSubstr("attention.learned.hysteresis"));
  EXPECT_THAT(refusal("  learned: {warmup: 0.001}\n"),
              HasSubstr("attention.learned.warmup: expected at least one of the 100 training"));
  EXPECT_THAT(refusal("  learned: {budget: 2}\n"), HasSubstr("attention.learned: budget"));
  EXPECT_THAT(refusal("  regime: random_uniform\n"), HasSubstr("regime: expected one whose"));
  EXPECT_THAT(refusal("  window: 8\n"), HasSubstr("learned.candidates"));
}

class AahLearnedRunTest : public ::testing::Test {
 protected:
  AahLearnedRunTest() { WriteTokens(data_); }

  // Warm-up 3 steps, search 6, then a tracking step every other one.
  RunConfig Run(const std::string& name) const {
    RunConfig config = TinyRun(folder_ / name, data_);
    config.training.steps = 16;
    config.model.heads = 6;
    config.model.width = 48;
    config.model.dropout = 0.1;
    config.attention.variant = "aah_learned";
    LearnedOptions& learned = config.attention.learned;
    learned.candidates = {4, 8, 16, 32};
    learned.budget = 0.5;
    learned.warmup = 3.0 / 16;
    learned.search = 6.0 / 16;
    learned.track_every = 2;
    ControlOptions& control = config.attention.control;
    control.windows.clear();
    control.control_interval = 3;
    control.hierarchy.min_group_size = 1;
    control.seed = 5;
    return config;
  }

  TemporaryFolder folder_;
  std::string data_ = folder_ / "tokens.bin";
};

TEST_F(AahLearnedRunTest, StoppedAnywhereAndResumedEqualsUninterrupted) {
  const RunConfig whole = Run("whole");
  const Recorder recorder = Train(whole);
  std::vector<std::string> phases;
  for (const StepRecord& step : recorder.steps) phases.push_back(step.selection->phase);
  EXPECT_EQ(phases[2], "warmup");
  EXPECT_EQ(phases[3], "search");
  EXPECT_EQ(phases[8], "search");
  EXPECT_EQ(phases[9], "plan");
  EXPECT_LE(recorder.steps.back().selection->hard_cost, 0.5);
  for (const int64_t stop_after : {1, 3, 5, 9, 10, 12, 13}) ExpectResumesAs(whole, stop_after);
}

TEST_F(AahLearnedRunTest, ValidationChangesNothing) { ExpectValidationChangesNothing(Run("run")); }

TEST_F(AahLearnedRunTest, TrainingMovesTheScorers) {
  std::vector<std::vector<double>> weights;  // of a head, as the search ends
  for (const double rate : {1e-9, 0.05}) {
    RunConfig config = Run("rate" + std::to_string(weights.size()));
    config.attention.learned.scorer_learning_rate = rate;
    Train(config);
    for (const SelectionRecord& snapshot : ReadSelection(config.out)) {
      if (snapshot.step == 9 && snapshot.layer == 0) weights.push_back(snapshot.weights[0]);
    }
  }
  ASSERT_EQ(weights.size(), 2);
  double moved = 0;
  for (size_t n = 0; n < 4; ++n) moved += std::abs(weights[0][n] - weights[1][n]);
  EXPECT_GT(moved, 0.02);
}

TEST_F(AahLearnedRunTest, TheSearchEndsWithinTheBudget) {
  RunConfig config = Run("run");
  config.training.steps = 64;  // the search from 12 to 35
  config.attention.learned.budget = 0.3;
  const Recorder recorder = Train(config);
  for (size_t step = 12; step < 36; ++step) {
    const SelectionSummary& selection = *recorder.steps[step].selection;
    EXPECT_LE(selection.expected_cost, selection.target_cost + 1e-9) << step;
  }
  EXPECT_NEAR(recorder.steps[35].selection->target_cost, 0.3, 1e-12);
  EXPECT_LE(recorder.steps[63].selection->hard_cost, 0.3);
}

}  // namespace
}  // namespace aah
