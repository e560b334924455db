#include "aah/text/recall_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "aah/io/json.h"
#include "aah/text/batches.h"
#include "tests/text/test_support.h"

namespace aah {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::array kSplits = {Split::kTrain, Split::kValidation, Split::kTest};

RecallOptions Small() {
  RecallOptions options;
  options.context = 70;  // not a multiple of four
  options.pairs = 7;
  options.queries = 5;
  options.keys = 20;
  options.values = 30;
  options.fillers = 3;
  options.sequences = {40, 6, 5};
  options.seed = 11;
  return options;
}

// Every property that the task promises of one sequence.
void CheckSequence(const RecallTask& task, const std::vector<int32_t>& tokens) {
  const RecallOptions& options = task.options();
  const auto is_key = [&](int32_t id) { return id >= 0 && id < options.keys; };
  const auto is_value = [&](int32_t id) { return id >= options.keys && id < task.first_filler(); };
  const auto is_filler = [&](int32_t id) {
    return id >= task.first_filler() && id < task.vocabulary_size();
  };
  ASSERT_EQ(std::ssize(tokens), options.context + 1);
  std::map<int32_t, int32_t> value_of;
  std::map<int32_t, int64_t> place_of;
  int64_t at = 0;
  for (int64_t i = 0; i < options.pairs; ++i, at += 2) {
    ASSERT_TRUE(is_key(tokens[at]) && is_value(tokens[at + 1]));
    EXPECT_TRUE(value_of.emplace(tokens[at], tokens[at + 1]).second) << "key " << tokens[at];
    place_of[tokens[at]] = at + 1;
  }
  EXPECT_LE(at, options.context / 4);

  const std::vector<int64_t> scored = task.scored().Positions();
  ASSERT_EQ(std::ssize(scored), options.queries);
  EXPECT_GT(scored.front(), options.context - options.context / 4);
  EXPECT_EQ(scored.back(), options.context - 1);
  for (; at < scored.front(); ++at) ASSERT_TRUE(is_filler(tokens[at])) << "token " << at;

  std::set<int32_t> asked;
  for (const int64_t position : scored) {
    EXPECT_EQ(position, at);
    const int32_t key = tokens[position];
    ASSERT_TRUE(value_of.contains(key)) << "query " << key;
    EXPECT_TRUE(asked.insert(key).second) << "asked twice: " << key;
    EXPECT_EQ(tokens[position + 1], value_of[key]);
    EXPECT_GE(position - place_of[key], task.gap());
    at += 2;
  }
}

TEST(RecallTask, AsksForKeysOfTheFirstQuarterInTheLast) {
  for (const RecallOptions& options : {Small(), RecallOptions{}}) {
    const RecallTask task(options);
    EXPECT_GT(task.gap(), options.context / 2);
    for (const Split split : kSplits) {
      for (int64_t i = 0; i < 50; ++i) CheckSequence(task, task.Sequence(split, i));
    }
  }
  RecallOptions full = Small();
  full.context = 256;
  full.pairs = full.queries = full.keys = 32;
  const RecallTask task(full);
  EXPECT_EQ(task.gap(), 256 + 2 - 128);
  for (int64_t i = 0; i < 50; ++i) CheckSequence(task, task.Sequence(Split::kTest, i));
}

TEST(RecallTask, EveryPairIsAskedForAndEveryAnswerIsPossible) {
  const RecallTask task(Small());
  std::map<int64_t, int> asked_place;
  std::map<int32_t, int> answers;
  constexpr int kSequences = 3000;
  for (int64_t i = 0; i < kSequences; ++i) {
    const std::vector<int32_t> tokens = task.Sequence(Split::kTrain, i);
    const int64_t first = task.scored().first;
    ++asked_place[std::ranges::find(tokens, tokens[first]) - tokens.begin()];
    ++answers[tokens[first + 1]];
  }
  // Binomial counts: seven standard deviations never happen.
  EXPECT_EQ(asked_place.size(), 7U);
  for (const auto& [place, count] : asked_place) EXPECT_NEAR(count, kSequences / 7.0, 135) << place;
  EXPECT_EQ(answers.size(), 30U);
  for (const auto& [value, count] : answers) EXPECT_NEAR(count, kSequences / 30.0, 69) << value;
}

TEST(RecallTask, SequencesAreFunctionsOfSeedSplitAndIndex) {
  const RecallTask task(Small());
  RecallOptions other_seed = Small();
  other_seed.seed = 12;
  std::set<std::vector<int32_t>> seen;
  for (const Split split : kSplits) {
    for (int64_t i = 0; i < 200; ++i) {
      const std::vector<int32_t> tokens = task.Sequence(split, i);
      EXPECT_EQ(tokens, RecallTask(Small()).Sequence(split, i));
      EXPECT_TRUE(seen.insert(tokens).second) << SplitName(split) << " " << i;
      EXPECT_TRUE(seen.insert(RecallTask(other_seed).Sequence(split, i)).second);
    }
  }
  // The generator is part of what a data set's seed means.
  RecallOptions tiny = Small();
  tiny.context = 16;
  tiny.pairs = tiny.queries = 2;
  tiny.values = 10000;
  tiny.sequences = {1, 1, 1};
  EXPECT_THAT(RecallTask(tiny).Sequence(Split::kTrain, 0),
              ElementsAre(9, 7923, 14, 7634, 10021, 10022, 10020, 10020, 10020, 10022, 10021, 10020,
                          10021, 14, 7634, 9, 7923));
}

TEST(RecallTask, PreparesDataThatTrainingReads) {
  const TemporaryFolder folder;
  RecallOptions options = Small();
  options.output = folder.Path("recall");
  std::vector<int64_t> progress;
  const TokenFileInfo info = PrepareRecall(options, [&](int64_t done, int64_t all) {
    progress.push_back(done);
    EXPECT_EQ(all, 51);
  });
  EXPECT_EQ(info.vocabulary_size, 53);
  const TokenFile file = TokenFile::Open(options.output);
  file.VerifyContent();
  const RecallTask task(options);
  ASSERT_EQ(file.info().scored, task.scored());
  EXPECT_EQ(file.split(Split::kTest).documents.size(), 5);
  EXPECT_EQ(file.split(Split::kTest).text_bytes, 5 * 71);

  const TrainingBatches batches(file, 70, 0);
  EXPECT_EQ(batches.space().start_count(), 40);
  std::vector<int32_t> rows(20 * 71);
  batches.Fill(0, 20, std::span(rows));
  for (int64_t row = 0; row < 20; ++row) {
    CheckSequence(task, {rows.begin() + row * 71, rows.begin() + (row + 1) * 71});
  }
  const EvaluationStretches stretches(file, Split::kValidation, 70, 0);
  ASSERT_EQ(stretches.count(), 6);
  EXPECT_EQ(stretches.bytes_per_token(), 1);
  stretches.Fill(3, 1, std::span(rows).first(71));
  EXPECT_EQ(std::vector<int32_t>(rows.begin(), rows.begin() + 71),
            task.Sequence(Split::kValidation, 3));

  const Json description = ReadJsonFile(options.output + "/data.json");
  EXPECT_EQ(description["task"]["name"], "recall");
  EXPECT_EQ(description["task"]["gap"], task.gap());
  EXPECT_EQ(description["scored"]["first"], 61);
  EXPECT_EQ(description["scored"]["count"], 5);
  EXPECT_EQ(description["content_hash"], file.info().content_hash);
}

TEST(RecallTask, PreparesTheSameBytesAgain) {
  const TemporaryFolder folder;
  RecallOptions options = Small();
  options.output = folder.Path("a");
  PrepareRecall(options);
  EXPECT_THAT(BadInput([&] { PrepareRecall(options); }), HasSubstr("already"));
  const std::string first = ReadFile(folder.Path("a/tokens.bin"));
  options.overwrite = true;
  PrepareRecall(options);
  EXPECT_EQ(ReadFile(folder.Path("a/tokens.bin")), first);
  options.seed = 12;
  PrepareRecall(options);
  EXPECT_NE(ReadFile(folder.Path("a/tokens.bin")), first);
}

TEST(RecallTask, OtherContextsAreRefusedForItsData) {
  const TemporaryFolder folder;
  RecallOptions options = Small();
  options.output = folder.Path("recall");
  PrepareRecall(options);
  const TokenFile file = TokenFile::Open(options.output);
  EXPECT_THAT(BadInput([&] { TrainingBatches(file, 69, 0); }), HasSubstr("70"));
  EXPECT_THAT(BadInput([&] { TrainingBatches(file, 71, 0); }), HasSubstr("got 71"));
  EXPECT_THAT(BadInput([&] { TrainingBatches(file, 70, 0, BoundaryRule::kStream); }),
              HasSubstr("across documents"));
}

TEST(RecallTask, RefusesSizesThatDoNotFit) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::function<void(RecallOptions&)>& change) {
    RecallOptions options = Small();
    options.output = folder.Path("none");
    change(options);
    const std::string message = BadInput([&] { PrepareRecall(options); });
    EXPECT_FALSE(std::filesystem::exists(folder.Path("none"))) << message;
    return message;
  };
  EXPECT_THAT(refused([](auto& o) { o.context = 15; }), HasSubstr("a context from 16"));
  EXPECT_THAT(refused([](auto& o) { o.context = int64_t{1} << 40; }), HasSubstr("a context"));
  EXPECT_THAT(refused([](auto& o) { o.pairs = 9; }), HasSubstr("from 1 to 8, got 9"));
  EXPECT_THAT(refused([](auto& o) { o.pairs = 0; }), HasSubstr("pairs"));
  EXPECT_THAT(refused([](auto& o) { o.queries = 8; }), HasSubstr("from 1 to 7, got 8"));
  EXPECT_THAT(refused([](auto& o) { o.queries = 0; }), HasSubstr("queries"));
  EXPECT_THAT(refused([](auto& o) { o.keys = 6; }), HasSubstr("keys"));
  EXPECT_THAT(refused([](auto& o) { o.values = 1; }), HasSubstr("values from 2"));
  EXPECT_THAT(refused([](auto& o) { o.fillers = 0; }), HasSubstr("fillers"));
  EXPECT_THAT(refused([](auto& o) { o.fillers = 1 << 30; }), HasSubstr("fillers"));
  EXPECT_THAT(refused([](auto& o) { o.sequences[1] = 0; }), HasSubstr("sequences"));
  EXPECT_THAT(refused([](auto& o) { o.sequences[2] = int64_t{1} << 60; }), HasSubstr("sequences"));
  // Two pairs of 20 keys and 30 values are 684,000 exercises: too few for 50,000 different ones.
  EXPECT_THAT(refused([](auto& o) {
                o.pairs = o.queries = 2;
                o.sequences[0] = 50000;
              }),
              HasSubstr("too few exercises for 50011 sequences"));
  EXPECT_THAT(refused([](auto& o) { o.output.clear(); }), HasSubstr("folder"));
}

}  // namespace
}  // namespace aah
