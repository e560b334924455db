#include "aah/text/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "tests/text/test_support.h"

namespace aah {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A file in which token i has the id i, so that a stretch shows where it was read.
TokenFile MakeFile(const TemporaryFolder& folder, const std::vector<int>& train,
                   const std::vector<int>& validation) {
  const std::string path = folder.Path("tokens");
  TokenFileWriter writer({.path = path,
                          .vocabulary_size = 60000,
                          .end_of_document = std::nullopt,
                          .tokenizer_name = "t",
                          .tokenizer_hash = std::string(64, '0')});
  int32_t next = 0;
  const auto add = [&](Split split, int length) {
    std::vector<int32_t> ids(static_cast<size_t>(length));
    std::iota(ids.begin(), ids.end(), next);
    next += length;
    writer.AddDocument(split, ids, 2 * length);
  };
  for (const int length : train) add(Split::kTrain, length);
  for (const int length : validation) add(Split::kValidation, length);
  writer.Finish();
  return TokenFile::Open(path);
}

TEST(StretchSpace, CountsStartsInsideDocuments) {
  const TemporaryFolder folder;
  const TokenFile file = MakeFile(folder, {10, 3, 5, 4}, {});
  const StretchSpace space(file, Split::kTrain, 4, BoundaryRule::kDocument);
  EXPECT_EQ(space.start_count(), 6 + 1);
  EXPECT_EQ(space.usable_tokens(), 15);
  std::vector<int64_t> starts;
  for (int64_t i = 0; i < space.start_count(); ++i) starts.push_back(space.Start(i));
  EXPECT_THAT(starts, ElementsAre(0, 1, 2, 3, 4, 5, 13));
  EXPECT_THAT(space.Disjoint(), ElementsAre(0, 4, 13));
  BadInput([&] { space.Start(7); });
  BadInput([&] { space.Start(-1); });
}

TEST(StretchSpace, StreamsOverDocumentsButNotOverTheSplit) {
  const TemporaryFolder folder;
  const TokenFile file = MakeFile(folder, {3, 3, 3}, {2, 4});
  const StretchSpace train(file, Split::kTrain, 4, BoundaryRule::kStream);
  EXPECT_EQ(train.start_count(), 5);
  EXPECT_EQ(train.Start(4), 4);
  EXPECT_THAT(train.Disjoint(), ElementsAre(0, 4));
  const StretchSpace validation(file, Split::kValidation, 4, BoundaryRule::kStream);
  EXPECT_EQ(validation.start_count(), 2);
  EXPECT_EQ(validation.Start(0), 9);
  EXPECT_EQ(validation.Start(1), 10);
}

TEST(StretchSpace, ChoosesTheRuleByLongDocuments) {
  const TemporaryFolder folder;
  EXPECT_EQ(
      StretchSpace(MakeFile(folder, {90, 10}, {}), Split::kTrain, 20, BoundaryRule::kAuto).rule(),
      BoundaryRule::kDocument);
  EXPECT_EQ(
      StretchSpace(MakeFile(folder, {89, 11}, {}), Split::kTrain, 20, BoundaryRule::kAuto).rule(),
      BoundaryRule::kStream);
}

TEST(StretchSpace, RefusesTooLittleText) {
  const TemporaryFolder folder;
  const TokenFile file = MakeFile(folder, {10, 12}, {});
  EXPECT_THAT(BadInput([&] { StretchSpace(file, Split::kTrain, 12, BoundaryRule::kDocument); }),
              HasSubstr("a context of 12 needs 13 tokens in a row, the train split has 12"));
  EXPECT_THAT(BadInput([&] { StretchSpace(file, Split::kTrain, 22, BoundaryRule::kAuto); }),
              HasSubstr("needs 23 tokens in a row, the train split has 22"));
  EXPECT_THAT(BadInput([&] { StretchSpace(file, Split::kTest, 1, BoundaryRule::kAuto); }),
              HasSubstr("the test split has 0"));
  EXPECT_THAT(BadInput([&] { StretchSpace(file, Split::kTrain, 0, BoundaryRule::kAuto); }),
              HasSubstr("at least 1 token, got 0"));
  BadInput([&] { StretchSpace(file, Split::kTrain, INT64_MAX, BoundaryRule::kAuto); });
}

TEST(TrainingBatches, NeverLeaveADocument) {
  const TemporaryFolder folder;
  const TokenFile file = MakeFile(folder, {40, 7, 25, 33}, {50});
  const TrainingBatches batches(file, 8, 1, BoundaryRule::kDocument);
  std::vector<int32_t> rows(500 * 9);
  batches.Fill(0, 500, std::span(rows));
  for (int row = 0; row < 500; ++row) {
    const int32_t first = rows[row * 9];
    for (int i = 1; i < 9; ++i) ASSERT_EQ(rows[row * 9 + i], first + i);
    const bool inside =
        first + 8 < 40 || (first >= 47 && first + 8 < 72) || (first >= 72 && first + 8 < 105);
    EXPECT_TRUE(inside) << first;
  }
}

TEST(TrainingBatches, DrawEveryStartEquallyOften) {
  const TemporaryFolder folder;
  const TokenFile file = MakeFile(folder, {14, 13}, {});
  const TrainingBatches batches(file, 4, 3, BoundaryRule::kDocument);
  constexpr int kSamples = 19000;
  std::vector<int64_t> rows(kSamples * 5);
  batches.Fill(0, kSamples, std::span(rows));
  std::map<int64_t, int> counts;
  for (int row = 0; row < kSamples; ++row) ++counts[rows[row * 5]];
  ASSERT_EQ(std::ssize(counts), batches.space().start_count());
  ASSERT_EQ(counts.size(), 19U);
  // Chi-square with 18 degrees of freedom: 42.3 is exceeded once in a thousand seeds.
  double chi_square = 0;
  for (const auto& [start, count] : counts) chi_square += (count - 1000.0) * (count - 1000.0) / 1e3;
  EXPECT_LT(chi_square, 42.3);
}

// A sample depends on its number only: batches may be cut and resumed anywhere.
TEST(TrainingBatches, AreTheSameHoweverTheyAreCut) {
  const TemporaryFolder folder;
  const TokenFile file = MakeFile(folder, {1000}, {});
  const TrainingBatches batches(file, 16, 42);
  std::vector<int32_t> whole(24 * 17);
  batches.Fill(100, 24, std::span(whole));
  std::vector<int32_t> pieces(24 * 17);
  const TrainingBatches again(file, 16, 42);
  again.Fill(112, 12, std::span(pieces).subspan(12 * 17));
  again.Fill(100, 12, std::span(pieces).first(12 * 17));
  EXPECT_EQ(whole, pieces);
  std::vector<int32_t> other(24 * 17);
  TrainingBatches(file, 16, 43).Fill(100, 24, std::span(other));
  EXPECT_NE(whole, other);
  std::set<int32_t> starts;
  for (int row = 0; row < 24; ++row) starts.insert(whole[row * 17]);
  EXPECT_GT(starts.size(), 20U);
}

// These starts are part of what "the same seed" means: a change would break resumed runs.
TEST(TrainingBatches, KeepTheirSequence) {
  const TemporaryFolder folder;
  const TokenFile file = MakeFile(folder, {50000}, {});
  std::vector<int32_t> rows(4 * 2);
  TrainingBatches(file, 1, 7).Fill(0, 4, std::span(rows));
  EXPECT_THAT((std::vector<int32_t>{rows[0], rows[2], rows[4], rows[6]}),
              ElementsAre(14848, 30538, 18398, 7383));
}

TEST(TrainingBatches, RefuseAWrongBuffer) {
  const TemporaryFolder folder;
  const TokenFile file = MakeFile(folder, {100}, {});
  const TrainingBatches batches(file, 8, 1);
  std::vector<int32_t> rows(18);
  EXPECT_THAT(BadInput([&] { batches.Fill(0, 3, std::span(rows)); }),
              HasSubstr("needs room for 3 x 9 ids, got 18"));
  BadInput([&] { batches.Fill(-1, 2, std::span(rows)); });
  BadInput([&] { batches.Fill(0, -2, std::span(rows)); });
}

TEST(EvaluationStretches, AreSpreadOverTheSplit) {
  const TemporaryFolder folder;
  const TokenFile file = MakeFile(folder, {100}, {101});
  const EvaluationStretches all(file, Split::kValidation, 10, 0);
  EXPECT_EQ(all.count(), 10);
  const EvaluationStretches some(file, Split::kValidation, 10, 4);
  EXPECT_THAT(some.starts(), ElementsAre(100, 120, 150, 170));
  EXPECT_DOUBLE_EQ(some.bytes_per_token(), 2);
  std::vector<int64_t> rows(2 * 11);
  some.Fill(2, 2, std::span(rows));
  EXPECT_EQ(rows[0], 150);
  EXPECT_EQ(rows[10], 160);
  EXPECT_EQ(rows[11], 170);
  std::vector<int32_t> narrow(11);
  some.Fill(0, 1, std::span(narrow));
  EXPECT_EQ(narrow[10], 110);
  EXPECT_THAT(BadInput([&] { some.Fill(3, 2, std::span(rows)); }),
              HasSubstr("expected stretches among 4, got 2 from 3"));
}

TEST(EvaluationStretches, PredictEveryTokenOnceAtMost) {
  const TemporaryFolder folder;
  const TokenFile file = MakeFile(folder, {100}, {33, 57, 8, 200});
  const EvaluationStretches all(file, Split::kValidation, 7, 0);
  std::vector<int32_t> rows(static_cast<size_t>(all.count()) * 8);
  all.Fill(0, all.count(), std::span(rows));
  std::set<int32_t> predicted;
  for (int64_t row = 0; row < all.count(); ++row) {
    for (int i = 1; i < 8; ++i) EXPECT_TRUE(predicted.insert(rows[row * 8 + i]).second);
  }
  EXPECT_EQ(std::ssize(predicted), all.count() * 7);
}

}  // namespace
}  // namespace aah
