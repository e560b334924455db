#include "aah/model/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "aah/model/evaluate.h"
#include "tests/model/train_support.h"

namespace aah {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TrainerTest : public ::testing::Test {
 protected:
  TrainerTest() { WriteTokens(data_); }

  RunConfig Run(const std::string& name) const { return TinyRun(folder_ / name, data_); }

  TemporaryFolder folder_;
  std::string data_ = folder_ / "tokens.bin";
};

TEST_F(TrainerTest, TrainsLogsAndSaves) {
  RunConfig config = Run("run");
  config.training.steps = 40;
  config.validation.every = 20;
  config.checkpoint = {.every = 10, .keep = 2};
  config.attention.variant = "windows";
  config.attention.windows = {{8, 32}};
  config.attention.sinks = 1;
  const Recorder recorder = Train(config);

  ASSERT_EQ(recorder.starts.size(), 1u);
  EXPECT_FALSE(recorder.starts[0].resumed);
  EXPECT_EQ(recorder.starts[0].tokens_per_step, 4 * 32);
  ASSERT_EQ(recorder.steps.size(), 40u);
  EXPECT_NEAR(recorder.steps[0].loss, std::log(256.0), 0.2);
  EXPECT_LT(recorder.steps[39].loss, 3.5);
  EXPECT_EQ(recorder.steps[39].tokens, 40 * 4 * 32);
  EXPECT_DOUBLE_EQ(recorder.steps[39].learning_rate, config.optimizer.min_learning_rate);
  for (const StepRecord& step : recorder.steps) {
    EXPECT_GT(step.attention_share, 0);
    EXPECT_LT(step.attention_share, 1);
    EXPECT_DOUBLE_EQ(step.allocated_context_ratio, (9.0 + 32.0) / 64);
    EXPECT_LT(step.visible_pair_ratio, 1);
  }
  ASSERT_EQ(recorder.validations.size(), 2u);
  // One byte a token: bits per byte are bits per token.
  EXPECT_NEAR(recorder.validations[1].bits_per_byte, recorder.validations[1].loss / std::log(2.0),
              1e-12);
  EXPECT_THAT(recorder.checkpoints, ElementsAre(10, 20, 30, 40));
  EXPECT_THAT(CheckpointSteps(config.out), ElementsAre(30, 40));
  ASSERT_EQ(recorder.summaries.size(), 1u);
  EXPECT_EQ(recorder.summaries[0].validation_loss, recorder.validations[1].loss);
  EXPECT_GT(recorder.summaries[0].peak_memory_bytes, 1 << 20);
  EXPECT_EQ(recorder.summaries[0].parameters, recorder.starts[0].parameters);

  EXPECT_EQ(ReadMetrics(config.out).steps.size(), 40u);
  const std::vector<WindowRecord> windows = ReadWindows(config.out);
  ASSERT_EQ(windows.size(), 4u);
  EXPECT_EQ(windows[3].window, 32);
  EXPECT_EQ(windows[3].layer, 1);
  EXPECT_EQ(windows[0].step, 1);
  const RunConfig written = ReadRunConfig(ConfigPath(config.out), {});
  EXPECT_EQ(written.model.vocabulary, 256);
  EXPECT_GT(std::filesystem::file_size(EventsPath(config.out)), 40u * 3 * 40);
}

TEST_F(TrainerTest, EqualRunsAreBitIdenticalWithDropoutToo) {
  RunConfig first = Run("first");
  RunConfig second = Run("second");
  first.model.dropout = second.model.dropout = 0.2;
  Train(first);
  Train(second);
  ExpectSameRun(first.out, second.out, 12);
  RunConfig third = Run("third");
  third.seed = 8;
  EXPECT_NE(Train(third).steps[0].loss, ReadMetrics(first.out).steps[0].loss);
}

TEST_F(TrainerTest, StoppedAnywhereAndResumedEqualsUninterrupted) {
  RunConfig whole = Run("whole");
  whole.model.dropout = 0.2;
  whole.threads = 2;
  Train(whole);
  for (const int64_t stop_after : {1, 5, 7, 11}) ExpectResumesAs(whole, stop_after);
}

TEST_F(TrainerTest, KilledBetweenCheckpointsAndResumedEqualsUninterrupted) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  // The child process runs this test from its beginning: the folder must be the same in both.
  const char* parent = std::getenv("AAH_TEST_KILLED_RUN");
  const std::string root = parent != nullptr ? parent : folder_ / "killed";
  setenv("AAH_TEST_KILLED_RUN", root.c_str(), 1);
  const std::string data = root + "_tokens.bin";
  if (parent == nullptr) WriteTokens(data);
  const RunConfig config = TinyRun(root, data);
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
  unsetenv("AAH_TEST_KILLED_RUN");

  ASSERT_THAT(CheckpointSteps(config.out), ElementsAre(5));
  EXPECT_EQ(ReadMetrics(config.out).steps.size(), 8u);
  // What a process killed while it writes may leave.
  std::ofstream(MetricsPath(config.out), std::ios::app) << R"({"kind":"train","st)";
  std::filesystem::create_directories(config.out + "/checkpoints/.step-8.tmp-1-2");

  const Recorder resumed = Train(config);
  EXPECT_EQ(resumed.starts[0].step, 5);
  const RunConfig whole = Run("whole");
  Train(whole);
  ExpectSameRun(whole.out, config.out, 12);
  EXPECT_FALSE(std::filesystem::exists(config.out + "/checkpoints/.step-8.tmp-1-2"));
}

TEST_F(TrainerTest, KilledBeforeTheFirstCheckpointBeginsAgain) {
  RunConfig config = Run("run");
  const std::atomic<bool> stop{false};
  Recorder broken;
  broken.at_step = [](int64_t step) {
    if (step == 3) throw std::runtime_error("the terminal is gone");
  };
  EXPECT_THROW(TrainRun(config, broken, stop), std::runtime_error);
  EXPECT_EQ(Train(config).starts[0].step, 0);
  const RunConfig whole = Run("whole");
  Train(whole);
  ExpectSameRun(whole.out, config.out, 12);
}

TEST_F(TrainerTest, ADamagedCheckpointIsRefusedWithTheWayOn) {
  RunConfig config = Run("run");
  Train(config);
  ASSERT_THAT(CheckpointSteps(config.out), ElementsAre(10, 12));
  config.training.steps = 14;
  const std::string newest = CheckpointPath(config.out, 12);
  for (const char* file : {"optimizer.safetensors", "model.safetensors", "state.json"}) {
    std::filesystem::resize_file(newest + "/" + file, 20);
    const auto damaged = ErrorOf([&] { Train(config); });
    EXPECT_EQ(damaged.second, ErrorKind::kBadInput);
    EXPECT_THAT(damaged.first,
                AllOf(HasSubstr(file), HasSubstr("; remove " + newest + " to go on")));
  }
  std::filesystem::remove_all(newest);
  EXPECT_EQ(Train(config).starts[0].step, 10);
}

TEST_F(TrainerTest, AResumeWithAnotherConfigIsRefused) {
  RunConfig config = Run("run");
  TrainUntil(2, config);
  const std::string metrics = FileText(MetricsPath(config.out));

  RunConfig other = config;
  other.optimizer.learning_rate = 0.02;
  const auto [message, kind] = ErrorOf([&] { Train(other); });
  EXPECT_EQ(kind, ErrorKind::kBadInput);
  EXPECT_THAT(message, AllOf(HasSubstr("optimizer.learning_rate"), HasSubstr("was 0.01"),
                             HasSubstr("is 0.02")));
  other = config;
  other.attention.variant = "sdpa";
  EXPECT_THAT(ErrorOf([&] { Train(other); }).first, HasSubstr("attention.variant"));
  other = config;
  other.training.steps = 11;
  EXPECT_THAT(ErrorOf([&] { Train(other); }).first, HasSubstr("training.steps"));
  EXPECT_EQ(FileText(MetricsPath(config.out)), metrics);

  WriteTokens(data_, /*test_seed=*/4);
  EXPECT_THAT(ErrorOf([&] { Train(config); }).first, HasSubstr("other data"));
  WriteTokens(data_);
  other = config;
  other.threads = 2;
  other.checkpoint.every = 0;
  EXPECT_EQ(Train(other).starts[0].step, 2);
}

TEST_F(TrainerTest, AFinishedRunIsNotWrittenOverButMayGrow) {
  RunConfig config = Run("run");
  Train(config);
  const std::string metrics = FileText(MetricsPath(config.out));
  EXPECT_THAT(ErrorOf([&] { Train(config); }).first,
              AllOf(HasSubstr("finished run of 12 steps"), HasSubstr("training.steps")));
  EXPECT_EQ(FileText(MetricsPath(config.out)), metrics);
  config.training.steps = 14;
  const Recorder grown = Train(config);
  EXPECT_EQ(grown.starts[0].step, 12);
  EXPECT_EQ(grown.steps.size(), 2u);
  const RunMetrics all = ReadMetrics(config.out);
  EXPECT_EQ(all.steps.size(), 14u);
  EXPECT_EQ(all.summary->step, 14);
}

TEST_F(TrainerTest, AFolderWithSomethingElseIsLeftAlone) {
  std::filesystem::create_directories(folder_ / "mine");
  std::ofstream(folder_ / "mine/letter.txt") << "Dear";
  EXPECT_THAT(ErrorOf([&] { Train(Run("mine")); }).first,
              AllOf(HasSubstr("mine"), HasSubstr("something else"), HasSubstr("`out`")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "mine/config.yaml"));
  EXPECT_THAT(ErrorOf([&] { Train(Run("mine/letter.txt")); }).first, HasSubstr("a file"));
}

TEST_F(TrainerTest, TwoProcessesDoNotShareAFolder) {
  const RunConfig config = Run("run");
  const std::atomic<bool> stop{false};
  Recorder outer;
  std::string refusal;
  outer.at_step = [&](int64_t step) {
    if (step == 6) refusal = ErrorOf([&] { Train(config); }).first;
  };
  TrainRun(config, outer, stop);
  EXPECT_THAT(refusal, HasSubstr("another process"));
}

TEST_F(TrainerTest, NothingIsMadeWhereTheDataDoesNotFit) {
  RunConfig config = Run("run");
  config.model.vocabulary = 100;
  EXPECT_THAT(ErrorOf([&] { Train(config); }).first,
              AllOf(HasSubstr("model.vocabulary"), HasSubstr("256"), HasSubstr("100")));
  config = Run("run");
  config.model.context = 100000;
  EXPECT_THAT(ErrorOf([&] { Train(config); }).first, HasSubstr("100001"));
  config = Run("run");
  config.data = folder_ / "nothing.bin";
  EXPECT_THAT(ErrorOf([&] { Train(config); }).first, HasSubstr("nothing.bin"));
  EXPECT_FALSE(std::filesystem::exists(config.out));
}

TEST_F(TrainerTest, NothingIsMadeWhereMemoryCouldNeverDo) {
  RunConfig config = Run("run");
  config.training.batch_size = int64_t{1} << 50;
  config.training.micro_batch_size = 1;
  EXPECT_THAT(ErrorOf([&] { Train(config); }).first, HasSubstr("training.batch_size"));
  EXPECT_FALSE(std::filesystem::exists(config.out));
}

TEST_F(TrainerTest, BeginsFromAnotherRunsWeightsWithAnotherVariant) {
  const RunConfig first = Run("first");
  const double reached = Train(first).validations.back().loss;
  RunConfig second = Run("second");
  second.attention.variant = "window";
  second.attention.window = 32;
  second.init_from = first.out;
  second.optimizer.learning_rate = second.optimizer.min_learning_rate = 0;
  second.training.steps = 3;
  const Recorder continued = Train(second);
  EXPECT_EQ(continued.starts[0].step, 0);
  // The window is the whole context and nothing is learned: the same model.
  EXPECT_NEAR(continued.validations.back().loss, reached, 1e-6);

  RunConfig wider = Run("wider");
  wider.init_from = first.out;
  wider.model.mlp_width = 24;
  EXPECT_THAT(ErrorOf([&] { Train(wider); }).first, HasSubstr("mlp"));
  EXPECT_FALSE(std::filesystem::exists(wider.out));
}

TEST_F(TrainerTest, TheTestSplitIsNeverRead) {
  const RunConfig config = Run("run");
  const Recorder recorder = Train(config);
  WriteTokens(data_, /*test_seed=*/99);
  const Recorder other = Train(Run("other"));
  ASSERT_EQ(recorder.steps.size(), other.steps.size());
  for (size_t i = 0; i < recorder.steps.size(); ++i) {
    EXPECT_EQ(recorder.steps[i].loss, other.steps[i].loss);
  }
  EXPECT_EQ(recorder.validations.back().loss, other.validations.back().loss);
}

TEST_F(TrainerTest, WeightsDropoutAndDataDoNotDependOnTheVariant) {
  RunConfig full = Run("full");
  full.model.dropout = 0.1;
  RunConfig sdpa = full;
  sdpa.out = folder_ / "sdpa";
  sdpa.attention.variant = "sdpa";
  const Recorder one = Train(full);
  const Recorder other = Train(sdpa);
  // Both compute the same function; rounding grows over the steps.
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(one.steps[i].loss, other.steps[i].loss, 1e-4);
}

TEST_F(TrainerTest, ALossThatIsNotFiniteKeepsTheLastGoodCheckpoint) {
  RunConfig config = Run("run");
  config.optimizer.learning_rate = 1e3;
  config.optimizer.min_learning_rate = 1e3;
  config.optimizer.weight_decay = 1e3;
  config.optimizer.warmup_steps = 0;
  config.checkpoint.every = 1;
  config.training.steps = 60;
  const auto [message, kind] = ErrorOf([&] { Train(config); });
  EXPECT_EQ(kind, ErrorKind::kMachine);
  EXPECT_THAT(message, AllOf(HasSubstr("not finite"), HasSubstr("step "),
                             HasSubstr("last good checkpoint is " + config.out)));
  const std::vector<int64_t> steps = CheckpointSteps(config.out);
  ASSERT_FALSE(steps.empty());
  EXPECT_THAT(message, HasSubstr("step-" + std::to_string(steps.back())));
}

TEST_F(TrainerTest, EvaluationAgreesWithValidationAndKnowsPositions) {
  const RunConfig config = Run("run");
  const double validated = Train(config).validations.back().loss;
  EvaluateOptions options;
  options.run = config.out;
  options.stretches = 4;
  options.buckets = 5;
  options.threads = 1;
  EvaluationResult result = EvaluateRun(options);
  EXPECT_NEAR(result.loss, validated, 1e-6);
  EXPECT_NEAR(result.perplexity, std::exp(result.loss), 1e-9);
  EXPECT_EQ(result.tokens, 4 * 32);
  EXPECT_EQ(result.step, 12);
  EXPECT_EQ(result.attention, "full");
  EXPECT_EQ(result.visible_pair_ratio, 1);
  ASSERT_EQ(result.by_position.size(), 5u);
  EXPECT_EQ(result.by_position[0].begin, 0);
  EXPECT_EQ(result.by_position[4].end, 32);
  double sum = 0;
  for (const PositionLoss& bucket : result.by_position) {
    sum += bucket.loss * static_cast<double>(bucket.end - bucket.begin);
  }
  EXPECT_NEAR(sum / 32, result.loss, 1e-9);

  options.run = CheckpointPath(config.out, 10);
  options.split = "test";
  options.data = data_;
  options.stretches = 0;
  result = EvaluateRun(options);
  EXPECT_EQ(result.step, 10);
  EXPECT_GT(result.tokens, 4 * 32);
  options.split = "tset";
  EXPECT_THAT(ErrorOf([&] { EvaluateRun(options); }).first, HasSubstr("'test'"));
  options.split = "test";
  for (const int64_t threads : {int64_t{-1}, kMaxThreads + 1}) {
    options.threads = threads;
    EXPECT_THAT(ErrorOf([&] { EvaluateRun(options); }).first, HasSubstr("0 (as many as"));
  }
  options.threads = 0;
  options.run = folder_ / "nowhere";
  EXPECT_THAT(ErrorOf([&] { EvaluateRun(options); }).first, HasSubstr("not exist"));
}

}  // namespace
}  // namespace aah
