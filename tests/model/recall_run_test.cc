#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <string>

#include "aah/model/evaluate.h"
#include "aah/model/trainer.h"
#include "aah/text/recall_task.h"
#include "tests/model/train_support.h"

namespace aah {
namespace {

class RecallRunTest : public ::testing::Test {
 protected:
  RecallRunTest() {
    RecallOptions options;
    options.context = 32;
    options.pairs = 4;
    options.queries = 4;
    options.keys = 16;
    options.values = 16;
    options.fillers = 2;
    options.sequences = {200, 30, 20};
    options.output = data_;
    PrepareRecall(options);
  }

  TemporaryFolder folder_;
  std::string data_ = folder_ / "recall";
};

TEST_F(RecallRunTest, OnlyAnswersCount) {
  RunConfig config = TinyRun(folder_ / "run", data_);
  config.training.steps = 40;
  const Recorder recorder = Train(config);
  // The whole vocabulary at first; then, before any recall, the 16 values equally.
  EXPECT_NEAR(recorder.steps.front().loss, std::log(34.0), 0.2);
  EXPECT_NEAR(recorder.steps.back().loss, std::log(16.0), 0.3);

  EXPECT_TRUE(recorder.starts.front().scored);

  EvaluateOptions options;
  options.run = config.out;
  options.threads = 1;
  options.split = "validation";
  options.stretches = config.validation.stretches;
  EXPECT_EQ(recorder.validations.back().accuracy, EvaluateRun(options).accuracy);
  EXPECT_EQ(ReadMetrics(config.out).validations.back().accuracy,
            recorder.validations.back().accuracy);
  options.split = "test";
  options.stretches = 0;
  const EvaluationResult result = EvaluateRun(options);
  EXPECT_EQ(result.tokens, 20 * 4);
  EXPECT_NEAR(result.loss, std::log(16.0), 0.3);
  EXPECT_GE(result.accuracy, 0);
  EXPECT_LT(result.accuracy, 0.5);
  const double answers = result.accuracy * 80;
  EXPECT_NEAR(answers, std::round(answers), 1e-9);
  ASSERT_EQ(result.by_position.size(), 4U);
  double mean = 0;
  for (size_t i = 0; i < 4; ++i) {
    const PositionLoss& answer = result.by_position[i];
    EXPECT_EQ(answer.begin, 25 + 2 * static_cast<int64_t>(i));
    EXPECT_EQ(answer.end, answer.begin + 1);
    mean += answer.loss / 4;
  }
  EXPECT_NEAR(mean, result.loss, 1e-9);
}

TEST_F(RecallRunTest, MicroBatchesCountTheSameAnswers) {
  RunConfig config = TinyRun(folder_ / "two", data_);
  const Recorder two = Train(config);
  config.out = folder_ / "four";
  config.training.micro_batch_size = 4;
  const Recorder four = Train(config);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(two.steps[i].loss, four.steps[i].loss, 1e-4);
}

TEST_F(RecallRunTest, AnotherContextIsRefused) {
  RunConfig config = TinyRun(folder_ / "run", data_);
  config.model.context = 16;
  const auto [message, kind] = ErrorOf([&] { Train(config); });
  EXPECT_EQ(kind, ErrorKind::kBadInput);
  EXPECT_THAT(message, ::testing::HasSubstr("32, within documents, got 16"));
}

}  // namespace
}  // namespace aah
