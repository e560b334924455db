// Runs whose windows the controller decides, from the recipe to the logs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "aah/model/allocation_measures.h"
#include "aah/model/evaluate.h"
#include "aah/model/trainer.h"
#include "tests/model/train_support.h"

namespace aah {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// TinyRun with six heads whose windows `regime` decides after two steps, then every third step.
RunConfig AdaptiveRun(const std::string& out, const std::string& data,
                      const std::string& regime = "full_adaptive") {
  RunConfig config = TinyRun(out, data);
  config.model.heads = 6;
  config.model.width = 48;
  config.attention.variant = "aah";
  ControlOptions& control = config.attention.control;
  control.regime = regime;
  control.windows = {4, 8, 16, 32};
  control.warmup_steps = 2;
  control.control_interval = 3;
  control.hierarchy.min_group_size = 1;
  control.logit_scale = 8;
  control.joint_output_scale = 8;
  control.seed = 3;
  return config;
}

class AdaptiveRunTest : public ::testing::Test {
 protected:
  AdaptiveRunTest() { WriteTokens(data_); }

  RunConfig Run(const std::string& name, const std::string& regime = "full_adaptive") const {
    return AdaptiveRun(folder_ / name, data_, regime);
  }

  TemporaryFolder folder_;
  std::string data_ = folder_ / "tokens.bin";
};

TEST_F(AdaptiveRunTest, EveryRegimeTrains) {
  for (const char* regime :
       {"full_attention", "grouping_off", "full_adaptive", "shallow_freeze", "deep_practical_reuse",
        "control_off", "fixed_random", "fixed_deterministic", "freeze_after_warmup",
        "independent_scoring", "no_parent_constraint", "no_feature_ema", "fixed:8",
        "random_uniform", "shuffle_post_select"}) {
    RunConfig config = Run(regime, regime);
    config.training.steps = 4;
    const Recorder recorder = Train(config);
    EXPECT_EQ(recorder.starts[0].attention, regime);
    ASSERT_EQ(recorder.steps.size(), 4u);
    ASSERT_TRUE(recorder.steps[3].control.has_value()) << regime;
    EXPECT_EQ(recorder.steps[0].allocated_context_ratio, 1) << regime;
  }
  EXPECT_EQ(ReadMetrics(folder_ / "fixed:8").steps[3].allocated_context_ratio, 0.25);
  EXPECT_EQ(ReadMetrics(folder_ / "control_off").steps[3].allocated_context_ratio, 1);
}

TEST_F(AdaptiveRunTest, LogsDecisionsGroupsAndMeasures) {
  const RunConfig config = Run("run");
  const Recorder recorder = Train(config);
  const RunMetrics metrics = ReadMetrics(config.out);
  std::map<std::string, std::vector<int64_t>> steps_of_path;
  for (const StepRecord& step : metrics.steps) {
    ASSERT_TRUE(step.control.has_value());
    steps_of_path[step.control->path].push_back(step.step);
    EXPECT_LE(step.allocated_context_ratio, 1);
    EXPECT_GT(step.flops_per_token, 0);
    // In the shadow heads are grouped first, then measured as groups.
    const bool groups = step.control->path == "update" || step.control->path == "shadow";
    EXPECT_EQ(step.control->groups_per_level.size(), groups ? 2u : 0u) << step.step;
    const double spent = step.control->features_seconds + step.control->grouping_seconds;
    EXPECT_EQ(spent > 0, groups || step.step % 3 == 2) << step.step;  // or by-products gathered
  }
  EXPECT_THAT(steps_of_path["shadow"], ElementsAre(1, 2));
  EXPECT_THAT(steps_of_path["update"], ElementsAre(3, 6, 9, 12));
  EXPECT_THAT(steps_of_path["cached"], ElementsAre(4, 5, 7, 8, 10, 11));
  ASSERT_TRUE(metrics.summary.has_value());
  EXPECT_GT(metrics.summary->control_share, 0);
  EXPECT_LT(metrics.summary->control_share, 1);

  std::map<int64_t, int> decisions;
  std::set<int> windows;
  for (const WindowRecord& record : ReadWindows(config.out)) {
    if (!record.decision) continue;
    ++decisions[record.step];
    windows.insert(record.window);
    EXPECT_LE(record.decision->index, record.decision->raw_index);
    EXPECT_FALSE(record.decision->groups.empty());
  }
  // Every head of both layers, at every decision.
  EXPECT_EQ(decisions, (std::map<int64_t, int>{{3, 12}, {6, 12}, {9, 12}, {12, 12}}));
  EXPECT_GT(windows.size(), 1u) << "the decided windows should vary";

  std::map<std::pair<int64_t, int>, std::vector<int32_t>> heads;
  for (const GroupRecord& group : ReadGroups(config.out)) {
    EXPECT_EQ(group.features.size(), 9u);
    EXPECT_EQ(group.window.has_value(), group.step > 2);
    if (group.level > 0) continue;
    auto& all = heads[{group.step, group.layer}];
    all.insert(all.end(), group.heads.begin(), group.heads.end());
  }
  EXPECT_EQ(heads.size(), 12u);  // of both layers: twice in the shadow, and at four decisions
  for (auto& [where, all] : heads) {
    std::sort(all.begin(), all.end());
    EXPECT_THAT(all, ElementsAre(0, 1, 2, 3, 4, 5)) << "step " << where.first;
  }
}

TEST_F(AdaptiveRunTest, WhatIsLoggedIsWhatIsMeasured) {
  const RunConfig config = Run("run");
  const Recorder recorder = Train(config);
  const std::vector<WindowRecord> records = ReadWindows(config.out);
  std::vector<std::vector<int32_t>> windows(2, std::vector<int32_t>(6));
  for (const WindowRecord& record : records) {
    windows[static_cast<size_t>(record.layer)][static_cast<size_t>(record.head)] = record.window;
  }
  EXPECT_DOUBLE_EQ(recorder.steps.back().allocated_context_ratio,
                   AllocatedContextRatio(windows, 0, 32));
  EXPECT_DOUBLE_EQ(recorder.steps.back().visible_pair_ratio, VisiblePairRatio(windows, 0, 32));
  ModelConfig model = config.model;
  model.vocabulary = 256;
  EXPECT_DOUBLE_EQ(recorder.steps.back().flops_per_token, ForwardFlopsPerToken(model, windows, 0));
  EvaluateOptions options;
  options.run = config.out;
  const EvaluationResult evaluated = EvaluateRun(options);
  EXPECT_DOUBLE_EQ(evaluated.allocated_context_ratio,
                   recorder.steps.back().allocated_context_ratio);
  EXPECT_EQ(evaluated.attention, "full_adaptive");
}

TEST(ForwardFlopsPerTokenTest, IsTheFormula) {
  ModelConfig model;
  model.layers = 2;
  model.heads = 4;
  model.width = 32;
  model.mlp_width = 100;
  model.context = 4;
  model.vocabulary = 10;
  const std::vector<std::vector<int32_t>> full(2, std::vector<int32_t>(4, 4));
  // Ten visible pairs a head: 4 * 8 * 10 / 4 = 80.
  EXPECT_DOUBLE_EQ(ForwardFlopsPerToken(model, full, 0),
                   8 * 80 + 2 * (8 * 32 * 32 + 4 * 32 * 100) + 2 * 32 * 10);
  model.kv_heads = 2;
  EXPECT_DOUBLE_EQ(ForwardFlopsPerToken(model, full, 0),
                   8 * 80 + 2 * (6 * 32 * 32 + 4 * 32 * 100) + 2 * 32 * 10);
}

TEST_F(AdaptiveRunTest, ValidationChangesNothing) { ExpectValidationChangesNothing(Run("run")); }

TEST_F(AdaptiveRunTest, StoppedAnywhereAndResumedEqualsUninterrupted) {
  for (const char* regime : {"full_adaptive", "deep_practical_reuse", "random_uniform"}) {
    for (const int64_t micro_batch : {0, 2}) {
      const std::string name = regime + std::to_string(micro_batch);
      RunConfig whole = Run(name + "whole", regime);
      whole.training.micro_batch_size = micro_batch;
      whole.model.dropout = 0.1;
      Train(whole);
      for (const int64_t stop_after : {1, 5, 8}) ExpectResumesAs(whole, stop_after);
    }
  }
}

TEST_F(AdaptiveRunTest, KilledBetweenCheckpointsAndResumedEqualsUninterrupted) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  // The child process runs this test from its beginning: the folder must be the same in both.
  const char* parent = std::getenv("AAH_TEST_KILLED_ADAPTIVE_RUN");
  const std::string root = parent != nullptr ? parent : folder_ / "killed";
  setenv("AAH_TEST_KILLED_ADAPTIVE_RUN", root.c_str(), 1);
  const std::string data = root + "_tokens.bin";
  if (parent == nullptr) WriteTokens(data);
  const RunConfig config = AdaptiveRun(root, data);
  EXPECT_EXIT(
      {
        const std::atomic<bool> stop{false};
        Recorder recorder;
        recorder.at_step = [](int64_t step) {
          if (step == 8) raise(SIGKILL);
        };
        TrainRun(config, recorder, stop);
      },
      ::testing::KilledBySignal(SIGKILL), "");
  unsetenv("AAH_TEST_KILLED_ADAPTIVE_RUN");
  ASSERT_THAT(CheckpointSteps(config.out), ElementsAre(5));
  EXPECT_EQ(Train(config).starts[0].step, 5);
  const RunConfig whole = Run("whole");
  Train(whole);
  ExpectSameRun(whole.out, config.out, 12);
}

TEST_F(AdaptiveRunTest, AResumeWithAnotherRegimeIsRefused) {
  RunConfig config = Run("run");
  TrainUntil(2, config);
  RunConfig other = config;
  other.attention.control.regime = "shallow_freeze";
  EXPECT_THAT(ErrorOf([&] { Train(other); }).first, HasSubstr("attention.regime"));
  other = config;
  other.attention.control.control_interval = 4;
  EXPECT_THAT(ErrorOf([&] { Train(other); }).first,
              HasSubstr("attention.control.control_interval was 3, is 4"));
}

TEST_F(AdaptiveRunTest, CandidatesLeftOutAreThoseOfTheContext) {
  RunConfig config = Run("run");
  config.training.steps = 3;
  config.attention.control.windows.clear();
  Train(config);
  EXPECT_THAT(ReadRunConfig(ConfigPath(config.out), {}).attention.control.windows,
              ElementsAre(4, 8, 16, 32));
  config.training.steps = 4;
  EXPECT_TRUE(Train(config).starts[0].resumed);
}

}  // namespace
}  // namespace aah
