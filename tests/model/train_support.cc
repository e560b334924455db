#include "tests/model/train_support.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <sstream>

#include "aah/random.h"
#include "aah/text/token_file.h"
#include "aah/text/tokenizer.h"

namespace aah {
namespace {

std::vector<int32_t> MadeUpText(uint64_t seed, int64_t words) {
  const std::vector<std::string> vocabulary = {"and ", "the ", "light ", "was ", "good ", "so "};
  Random random(seed);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < words; ++i) {
    for (const char letter : vocabulary[random.Below(vocabulary.size())]) ids.push_back(letter);
  }
  return ids;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  static std::atomic<int> counter{0};
  path_ = std::filesystem::temp_directory_path() /
          ("aah_test_" + std::to_string(getpid()) + "_" + std::to_string(counter++));
  std::filesystem::create_directories(path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void WriteTokens(const std::string& path, uint64_t test_seed) {
  const auto tokenizer = MakeByteTokenizer();
  TokenFileWriter writer({.path = path,
                          .vocabulary_size = tokenizer->vocabulary_size(),
                          .end_of_document = {},
                          .tokenizer_name = tokenizer->name(),
                          .tokenizer_hash = tokenizer->hash()});
  const auto add = [&](Split split, uint64_t seed, int64_t words) {
    const std::vector<int32_t> ids = MadeUpText(seed, words);
    writer.AddDocument(split, ids, static_cast<int64_t>(ids.size()));
  };
  add(Split::kTrain, 1, 2000);
  add(Split::kValidation, 2, 200);
  add(Split::kTest, test_seed, 200);
  writer.Finish();
}

RunConfig TinyRun(const std::string& out, const std::string& data) {
  RunConfig config;
  config.out = out;
  config.data = data;
  config.seed = 7;
  config.threads = 1;
  config.model.layers = 2;
  config.model.heads = 2;
  config.model.width = 16;
  config.model.context = 32;
  config.training = {.steps = 12, .batch_size = 4, .micro_batch_size = 2};
  config.optimizer.learning_rate = 1e-2;
  config.optimizer.min_learning_rate = 1e-3;
  config.optimizer.warmup_steps = 3;
  config.validation = {.every = 4, .stretches = 4};
  config.checkpoint = {.every = 5, .keep = 2};
  return config;
}

Recorder Train(const RunConfig& config) {
  const std::atomic<bool> stop{false};
  Recorder recorder;
  const TrainOutcome outcome = TrainRun(config, recorder, stop);
  EXPECT_EQ(outcome.end, RunEnd::kFinished);
  EXPECT_EQ(outcome.step, config.training.steps);
  return recorder;
}

Recorder TrainUntil(int64_t step, const RunConfig& config) {
  std::atomic<bool> stop{false};
  Recorder recorder;
  recorder.at_step = [&](int64_t done) { stop = done == step; };
  const TrainOutcome outcome = TrainRun(config, recorder, stop);
  recorder.at_step = nullptr;
  EXPECT_EQ(outcome.end, RunEnd::kStopped);
  EXPECT_EQ(outcome.step, step);
  EXPECT_EQ(outcome.checkpoint, CheckpointPath(config.out, step));
  EXPECT_TRUE(recorder.summaries.empty());
  return recorder;
}

void ExpectValidationChangesNothing(const RunConfig& config) {
  RunConfig often = config;
  often.out += "_often";
  often.validation.every = 1;
  RunConfig seldom = config;
  seldom.out += "_seldom";
  seldom.validation.every = 0;
  Train(often);
  Train(seldom);
  EXPECT_EQ(FileText(WindowsPath(often.out)), FileText(WindowsPath(seldom.out)));
  EXPECT_EQ(FileText(SelectionPath(often.out)), FileText(SelectionPath(seldom.out)));
  for (const char* file : {"/model.safetensors", "/optimizer.safetensors"}) {
    EXPECT_EQ(FileText(CheckpointPath(often.out, config.training.steps) + file),
              FileText(CheckpointPath(seldom.out, config.training.steps) + file));
  }
}

std::pair<std::string, ErrorKind> ErrorOf(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return {error.what(), error.kind()};
  }
  ADD_FAILURE() << "expected an aah::Error, got none";
  return {};
}

std::string FileText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void ExpectSameRun(const std::string& run, const std::string& other, int64_t steps) {
  for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
    EXPECT_EQ(FileText(CheckpointPath(run, steps) + "/" + name),
              FileText(CheckpointPath(other, steps) + "/" + name))
        << name;
  }
  EXPECT_EQ(FileText(WindowsPath(run)), FileText(WindowsPath(other)));
  EXPECT_EQ(FileText(GroupsPath(run)), FileText(GroupsPath(other)));
  const RunMetrics metrics = ReadMetrics(run);
  const RunMetrics others = ReadMetrics(other);
  ASSERT_EQ(metrics.steps.size(), others.steps.size());
  for (size_t i = 0; i < metrics.steps.size(); ++i) {
    EXPECT_EQ(metrics.steps[i].step, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(others.steps[i].step, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(metrics.steps[i].loss, others.steps[i].loss) << "step " << i + 1;
    EXPECT_EQ(metrics.steps[i].grad_norm, others.steps[i].grad_norm);
    EXPECT_EQ(metrics.steps[i].learning_rate, others.steps[i].learning_rate);
    EXPECT_EQ(metrics.steps[i].tokens, others.steps[i].tokens);
  }
  ASSERT_EQ(metrics.validations.size(), others.validations.size());
  for (size_t i = 0; i < metrics.validations.size(); ++i) {
    EXPECT_EQ(metrics.validations[i].step, others.validations[i].step);
    EXPECT_EQ(metrics.validations[i].loss, others.validations[i].loss);
  }
  ASSERT_TRUE(metrics.summary && others.summary);
  EXPECT_EQ(metrics.summary->validation_loss, others.summary->validation_loss);
}

void ExpectResumesAs(const RunConfig& whole, int64_t stop_after) {
  RunConfig config = whole;
  config.out = whole.out + "_stopped" + std::to_string(stop_after);
  TrainUntil(stop_after, config);
  const Recorder resumed = Train(config);
  EXPECT_TRUE(resumed.starts[0].resumed);
  EXPECT_EQ(resumed.starts[0].step, stop_after);
  ExpectSameRun(whole.out, config.out, config.training.steps);
}

}  // namespace aah
