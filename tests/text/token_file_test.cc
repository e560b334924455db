#include "aah/text/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "aah/random.h"
#include "tests/text/test_support.h"
#include "text/src/token_file_format.h"

namespace aah {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using token_file_format::Header;

const std::string kHash(64, 'a');

TokenFileWriter::Options Options(const std::string& path, int32_t vocabulary) {
  return {.path = path,
          .vocabulary_size = vocabulary,
          .end_of_document = std::nullopt,
          .tokenizer_name = "test",
          .tokenizer_hash = kHash};
}

// Three documents of 3, 2 and 4 tokens: two to train on, none to validate, one to test.
TokenFileInfo WriteSample(const std::string& path, int32_t vocabulary = 300) {
  TokenFileWriter writer(Options(path, vocabulary));
  writer.AddDocument(Split::kTrain, std::vector<int32_t>{1, 2, 3}, 30);
  writer.AddDocument(Split::kTrain, std::vector<int32_t>{4, 5}, 20);
  writer.AddDocument(Split::kTest, std::vector<int32_t>{6, 7, 8, 299}, 40);
  return writer.Finish();
}

std::string Bytes(const std::string& path) { return ReadFile(path); }

TokenFile Parse(const std::string& bytes) {
  return TokenFile::FromMemory(std::as_bytes(std::span(bytes)), "mem");
}

// The file's bytes with a header changed by `change` and made valid again by its hash.
std::string WithHeader(std::string bytes, const std::function<void(Header&)>& change) {
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  change(header);
  header.header_hash =
      Sha256Of(std::as_bytes(std::span(&header, 1)).first(token_file_format::kHashedHeaderBytes));
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

TEST(TokenFile, GivesBackWhatWasWritten) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("tokens.bin");
  const TokenFileInfo written = WriteSample(path);
  for (const std::string& name : {path, folder.Path("")}) {
    const TokenFile file = TokenFile::Open(name);
    const TokenFileInfo& info = file.info();
    EXPECT_EQ(file.path(), path);
    EXPECT_EQ(info.bytes_per_token, 2);
    EXPECT_EQ(info.token_count, 9);
    EXPECT_EQ(info.document_count, 3);
    EXPECT_EQ(info.vocabulary_size, 300);
    EXPECT_EQ(info.end_of_document, std::nullopt);
    EXPECT_EQ(info.tokenizer_name, "test");
    EXPECT_EQ(info.tokenizer_hash, kHash);
    EXPECT_EQ(info.content_hash, written.content_hash);
    const SplitInfo& train = file.split(Split::kTrain);
    EXPECT_EQ(train.tokens.begin, 0);
    EXPECT_EQ(train.tokens.end, 5);
    EXPECT_EQ(train.documents.size(), 2);
    EXPECT_EQ(train.text_bytes, 50);
    EXPECT_EQ(file.split(Split::kValidation).tokens.size(), 0);
    EXPECT_EQ(file.split(Split::kTest).tokens.begin, 5);
    EXPECT_EQ(file.split(Split::kTest).tokens.end, 9);
    EXPECT_EQ(file.split(Split::kTest).documents.begin, 2);
    EXPECT_EQ(file.split(Split::kTest).text_bytes, 40);
    EXPECT_EQ(file.Document(1).begin, 3);
    EXPECT_EQ(file.Document(1).end, 5);
    std::vector<int32_t> narrow(9);
    file.Read(0, std::span(narrow));
    EXPECT_THAT(narrow, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 299));
    std::vector<int64_t> wide(2);
    file.Read(7, std::span(wide));
    EXPECT_THAT(wide, ElementsAre(8, 299));
    file.VerifyContent();
  }
}

// Random documents of each width against a plain vector.
TEST(TokenFile, HoldsEveryWidth) {
  const TemporaryFolder folder;
  for (const int32_t vocabulary : {1, 256, 257, 65536, 65537, INT32_MAX}) {
    Random random(static_cast<uint64_t>(vocabulary));
    TokenFileWriter::Options options = Options(folder.Path("wide"), vocabulary);
    options.end_of_document = vocabulary - 1;
    TokenFileWriter writer(options);
    std::vector<int32_t> expected;
    for (int document = 0; document < 40; ++document) {
      std::vector<int32_t> ids(1 + random.Below(50));
      for (int32_t& id : ids) id = static_cast<int32_t>(random.Below(vocabulary));
      writer.AddDocument(static_cast<Split>(document / 14), ids, 1);
      expected.insert(expected.end(), ids.begin(), ids.end());
      expected.push_back(vocabulary - 1);
    }
    const TokenFileInfo info = writer.Finish();
    EXPECT_EQ(info.bytes_per_token, vocabulary <= 256 ? 1 : vocabulary <= 65536 ? 2 : 4);
    EXPECT_EQ(info.end_of_document, vocabulary - 1);
    const TokenFile file = TokenFile::Open(folder.Path("wide"));
    std::vector<int32_t> read(static_cast<size_t>(file.info().token_count));
    file.Read(0, std::span(read));
    EXPECT_EQ(read, expected) << vocabulary;
    file.VerifyContent();
  }
}

TEST(TokenFile, IsThereOnlyWhenFinished) {
  const TemporaryFolder folder;
  {
    TokenFileWriter writer(Options(folder.Path("t"), 10));
    writer.AddDocument(Split::kTrain, std::vector<int32_t>{1}, 1);
    EXPECT_FALSE(std::filesystem::exists(folder.Path("t")));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.Path("")));
}

TEST(TokenFileWriter, RefusesBadInput) {
  const TemporaryFolder folder;
  TokenFileWriter writer(Options(folder.Path("t"), 10));
  const auto add = [&](Split split, std::vector<int32_t> ids) {
    return BadInput([&] { writer.AddDocument(split, ids, 1); });
  };
  EXPECT_EQ(add(Split::kTrain, {1, 10}), "token id 10 is not in a vocabulary of 10");
  EXPECT_EQ(add(Split::kTrain, {-1}), "token id -1 is not in a vocabulary of 10");
  EXPECT_THAT(add(Split::kTrain, {}), HasSubstr("at least one token"));
  writer.AddDocument(Split::kTest, std::vector<int32_t>{1}, 1);
  EXPECT_THAT(add(Split::kTrain, {1}), HasSubstr("train after test"));
  EXPECT_THAT(BadInput([&] { TokenFileWriter(Options(folder.Path("u"), 0)); }),
              HasSubstr("a vocabulary of at least 1"));
  TokenFileWriter::Options options = Options(folder.Path("u"), 10);
  options.end_of_document = 10;
  EXPECT_THAT(BadInput([&] { TokenFileWriter{options}; }), HasSubstr("end-of-document id 10"));
  options = Options(folder.Path("u"), 10);
  options.tokenizer_hash = "abc";
  EXPECT_THAT(BadInput([&] { TokenFileWriter{options}; }), HasSubstr("64 hexadecimal digits"));
  options = Options(folder.Path("u"), 10);
  options.tokenizer_name = std::string(64, 'n');
  EXPECT_THAT(BadInput([&] { TokenFileWriter{options}; }), HasSubstr("at most 63 bytes"));
}

TEST(TokenFile, RefusesEveryTruncation) {
  const TemporaryFolder folder;
  WriteSample(folder.Path("t"));
  const std::string bytes = Bytes(folder.Path("t"));
  EXPECT_EQ(Parse(bytes).info().token_count, 9);
  for (size_t size = 0; size < bytes.size(); ++size) {
    BadInput([&] { Parse(bytes.substr(0, size)); });
  }
  EXPECT_THAT(BadInput([&] { Parse(bytes.substr(0, 100)); }),
              HasSubstr("mem: expected a token file of at least 512 bytes, got 100"));
  EXPECT_THAT(BadInput([&] { Parse(bytes.substr(0, 520)); }),
              HasSubstr("9 tokens and 3 documents do not make a file of 520 bytes"));
  BadInput([&] { Parse(bytes + "x"); });
}

TEST(TokenFile, NoticesEveryDamagedByte) {
  const TemporaryFolder folder;
  WriteSample(folder.Path("t"));
  const std::string bytes = Bytes(folder.Path("t"));
  const size_t padding = token_file_format::kHeaderBytes + 9 * 2;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i >= padding && i < (padding + 7) / 8 * 8) continue;  // holds nothing
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    BadInput([&] { Parse(damaged).VerifyContent(); });
  }
}

TEST(TokenFile, ChecksWhatTheHeaderClaims) {
  const TemporaryFolder folder;
  WriteSample(folder.Path("t"));
  const std::string bytes = Bytes(folder.Path("t"));
  const auto refusal = [&](const std::function<void(Header&)>& change) {
    const std::string changed = WithHeader(bytes, change);
    return BadInput([&] { Parse(changed); });
  };
  EXPECT_THAT(refusal([](Header& h) { h.version = 2; }), HasSubstr("version 1, got 2"));
  EXPECT_THAT(refusal([](Header& h) { h.magic[0] = 'B'; }), HasSubstr("not a token file"));
  EXPECT_THAT(refusal([](Header& h) { h.vocabulary_size = 0; }), HasSubstr("got 0"));
  EXPECT_THAT(refusal([](Header& h) { h.vocabulary_size = 1ULL << 40; }), HasSubstr("vocabulary"));
  EXPECT_THAT(refusal([](Header& h) { h.bytes_per_token = 4; }), HasSubstr("2 bytes a token"));
  EXPECT_THAT(refusal([](Header& h) { h.bytes_per_token = 0; }), HasSubstr("2 bytes a token"));
  EXPECT_THAT(refusal([](Header& h) { h.end_of_document = 300; }), HasSubstr("300"));
  EXPECT_THAT(refusal([](Header& h) { h.end_of_document = -2; }), HasSubstr("-2"));
  for (const uint64_t count : {0ULL, 8ULL, 10ULL, 1ULL << 63, ~0ULL, (1ULL << 63) + 9}) {
    EXPECT_THAT(refusal([&](Header& h) { h.token_count = count; }), HasSubstr("mem: "));
    if (count != 0) {
      EXPECT_THAT(refusal([&](Header& h) { h.document_count = count; }),
                  HasSubstr("do not make a file"));
    }
  }
  EXPECT_THAT(refusal([](Header& h) { h.tokenizer_name.fill('n'); }), HasSubstr("name has no end"));
  EXPECT_THAT(refusal([](Header& h) { h.splits[1].first_token = 4; }), HasSubstr("splits"));
  EXPECT_THAT(refusal([](Header& h) { h.splits[2].first_document = 4; }), HasSubstr("splits"));
  EXPECT_THAT(refusal([](Header& h) { h.splits[1] = {0, 0, 0}, h.splits[0] = {3, 1, 0}; }),
              HasSubstr("splits"));
  EXPECT_THAT(refusal([](Header& h) { h.splits[0] = {3, 1, 0}; }),
              HasSubstr("does not begin at the first document"));
  EXPECT_THAT(refusal([](Header& h) { h.splits[0].text_bytes = ~0ULL; }), HasSubstr("splits"));
}

TEST(TokenFile, RefusesBoundsThatDoNotRise) {
  const TemporaryFolder folder;
  WriteSample(folder.Path("t"));
  std::string bytes = Bytes(folder.Path("t"));
  bytes[token_file_format::BoundsOffset(9, 2) + 8] = 5;  // the first document's end, once 3
  EXPECT_THAT(BadInput([&] { Parse(bytes); }), HasSubstr("bounds do not rise"));
}

TEST(TokenFile, RefusesIdsOverTheVocabularyAsTheyAreRead) {
  const TemporaryFolder folder;
  WriteSample(folder.Path("t"));
  std::string bytes = Bytes(folder.Path("t"));
  bytes[token_file_format::kHeaderBytes + 2 * 8 + 1] = 2;  // 299 becomes 555
  const TokenFile file = Parse(bytes);
  std::vector<int32_t> ids(8);
  file.Read(0, std::span(ids));
  ids.resize(9);
  EXPECT_THAT(BadInput([&] { file.Read(0, std::span(ids)); }),
              HasSubstr("token id 555 among tokens 0 to 9 is not below the vocabulary size 300"));
  EXPECT_THAT(BadInput([&] { file.VerifyContent(); }), HasSubstr("token id 555"));
}

TEST(TokenFile, RefusesRangesOutsideTheFile) {
  const TemporaryFolder folder;
  WriteSample(folder.Path("t"));
  const TokenFile file = TokenFile::Open(folder.Path("t"));
  std::vector<int32_t> ids(3);
  EXPECT_THAT(BadInput([&] { file.Read(7, std::span(ids)); }),
              HasSubstr("expected a stretch within 9 tokens, got 3 tokens from 7"));
  BadInput([&] { file.Read(-1, std::span(ids)); });
  BadInput([&] { file.Read(INT64_MAX - 1, std::span(ids)); });
  BadInput([&] { file.Document(3); });
  BadInput([&] { file.Document(-1); });
  file.Read(9, std::span(ids).first(0));
}

TEST(TokenFile, SaysWhatIsWrongWithAPath) {
  const TemporaryFolder folder;
  EXPECT_THAT(BadInput([&] { TokenFile::Open(folder.Path("none")); }), HasSubstr("none"));
  EXPECT_THAT(BadInput([&] { TokenFile::Open(folder.Path("")); }), HasSubstr("tokens.bin"));
}

TEST(TokenFile, SaysWhichPredictionsCount) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("tokens.bin");
  EXPECT_EQ(WriteSample(path).scored, std::nullopt);
  const auto options = [&](int64_t context, int64_t first, int64_t step, int64_t count) {
    TokenFileWriter::Options result = Options(path, 300);
    result.scored = {.context = context, .first = first, .step = step, .count = count};
    return result;
  };
  TokenFileWriter writer(options(3, 0, 2, 2));
  writer.AddDocument(Split::kTrain, std::vector<int32_t>{1, 2, 3, 4}, 4);
  EXPECT_THAT(BadInput([&] { writer.AddDocument(Split::kTrain, std::vector<int32_t>{1, 2}, 2); }),
              HasSubstr("2 tokens is not the 4"));
  writer.AddDocument(Split::kTest, std::vector<int32_t>{5, 6, 7, 8}, 4);
  const TokenFileInfo written = writer.Finish();
  const ScoredPredictions expected = {.context = 3, .first = 0, .step = 2, .count = 2};
  EXPECT_EQ(written.scored, expected);
  EXPECT_EQ(TokenFile::Open(path).info().scored, expected);
  EXPECT_THAT(expected.Positions(), ElementsAre(0, 2));

  for (const auto& bad : {options(3, 0, 2, 3), options(3, 3, 1, 1), options(3, 0, 0, 2),
                          options(3, 0, -1, 1), options(3, -1, 1, 1), options(0, 0, 1, 1),
                          options(3, 0, 1, 0), options(int64_t{1} << 62, 0, 1, 1)}) {
    EXPECT_THAT(BadInput([&] { TokenFileWriter{bad}; }), HasSubstr("scored predictions"));
  }
}

TEST(TokenFile, RefusesScoredPredictionsThatDoNotFit) {
  const TemporaryFolder folder;
  WriteSample(folder.Path("tokens.bin"));
  const std::string bytes = Bytes(folder.Path("tokens.bin"));
  const auto refused = [&](token_file_format::ScoredRecord scored) {
    return BadInput([&] { Parse(WithHeader(bytes, [&](Header& h) { h.scored = scored; })); });
  };
  const uint64_t huge = ~uint64_t{0};
  EXPECT_THAT(refused({2, 0, 1, 3}), HasSubstr("scored predictions"));
  EXPECT_THAT(refused({2, 1, 1, 0}), HasSubstr("scored predictions"));
  EXPECT_THAT(refused({huge, 0, 1, huge}), HasSubstr("scored predictions"));
  EXPECT_THAT(refused({2, 0, huge, 1}), HasSubstr("scored predictions"));
  EXPECT_THAT(refused({2, 0, 1, 2}), HasSubstr("document 1 has 2 tokens, not the 3"));
}

}  // namespace
}  // namespace aah
