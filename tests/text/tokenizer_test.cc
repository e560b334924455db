#include "aah/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "aah/io/file.h"
#include "aah/io/json.h"
#include "tests/text/test_support.h"

namespace aah {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string CasesFolder() {
  const char* folder = std::getenv("AAH_TOKENIZER_CASES");
  return folder == nullptr ? AAH_TOKENIZER_CASES : folder;
}

// Little-endian numbers and texts of a fixture, in order.
class FixtureReader {
 public:
  explicit FixtureReader(const std::string& path) : content_(ReadFile(path)) {}

  template <typename Number>
  Number Next() {
    Number number;
    std::memcpy(&number, Take(sizeof(number)).data(), sizeof(number));
    return number;
  }
  std::string_view Take(size_t size) {
    AAH_CHECK(content_.size() - position_ >= size, "the fixture is cut short");
    position_ += size;
    return std::string_view(content_).substr(position_ - size, size);
  }
  bool AtEnd() const { return position_ == content_.size(); }

 private:
  std::string content_;
  size_t position_ = 0;
};

std::vector<std::string> ReadStrings() {
  FixtureReader reader(CasesFolder() + "/strings.bin");
  std::vector<std::string> strings(reader.Next<uint32_t>());
  for (std::string& string : strings) string = reader.Take(reader.Next<uint32_t>());
  EXPECT_TRUE(reader.AtEnd());
  return strings;
}

class HuggingFaceIds : public testing::TestWithParam<const char*> {};

TEST_P(HuggingFaceIds, AreEqual) {
  const std::string base = CasesFolder() + "/" + GetParam();
  const auto tokenizer = LoadTokenizer(base + ".json");
  const std::vector<std::string> strings = ReadStrings();
  ASSERT_GE(strings.size(), 10000U);
  FixtureReader reader(base + ".ids");
  ASSERT_EQ(reader.Next<uint32_t>(), strings.size());
  int different = 0;
  for (const std::string& string : strings) {
    std::vector<int32_t> expected(reader.Next<uint16_t>());
    for (int32_t& id : expected) id = reader.Next<uint16_t>();
    const std::vector<int32_t> ids = tokenizer->Encode(string);
    if (ids != expected && ++different <= 10) {
      ADD_FAILURE() << testing::PrintToString(string) << "\n got      "
                    << testing::PrintToString(ids) << " = "
                    << testing::PrintToString(tokenizer->Decode(ids)) << "\n expected "
                    << testing::PrintToString(expected) << " = "
                    << testing::PrintToString(tokenizer->Decode(expected));
    }
  }
  EXPECT_TRUE(reader.AtEnd());
  EXPECT_EQ(different, 0) << "of " << strings.size();
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, HuggingFaceIds,
                         testing::Values("gpt2", "llama3", "qwen2", "o200k", "roberta"),
                         [](const auto& test) { return std::string(test.param); });

TEST(BpeTokenizer, DecodesToTheSameText) {
  for (const char* name : {"gpt2", "llama3", "o200k"}) {
    const auto tokenizer = LoadTokenizer(CasesFolder() + "/" + name + ".json");
    for (const std::string& string : ReadStrings()) {
      ASSERT_EQ(tokenizer->Decode(tokenizer->Encode(string)), string) << name;
    }
  }
}

TEST(BpeTokenizer, SaysWhatItIs) {
  const auto tokenizer = LoadTokenizer(CasesFolder() + "/gpt2.json");
  EXPECT_EQ(tokenizer->vocabulary_size(), 901);
  EXPECT_EQ(tokenizer->name(), "bpe-901");
  EXPECT_EQ(tokenizer->end_of_document(), 900);
  EXPECT_EQ(tokenizer->FindToken("<|endoftext|>"), 900);
  EXPECT_EQ(tokenizer->FindToken("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer->hash().size(), 64U);
  const std::optional<int32_t> letter = tokenizer->FindToken("e");
  ASSERT_TRUE(letter.has_value());
  EXPECT_THAT(tokenizer->Encode("e<|endoftext|>"), ElementsAre(*letter, 900));
  EXPECT_EQ(tokenizer->Decode(std::vector<int32_t>{*letter, 900}), "e<|endoftext|>");
  EXPECT_THAT(BadInput([&] { tokenizer->Decode(std::vector<int32_t>{901}); }),
              HasSubstr("token id 901 is not in a vocabulary of 901"));
  EXPECT_THAT(BadInput([&] { tokenizer->Decode(std::vector<int32_t>{-1}); }),
              HasSubstr("token id -1"));
}

TEST(BpeTokenizer, RefusesTextThatIsNotUtf8) {
  const auto tokenizer = LoadTokenizer(CasesFolder() + "/gpt2.json");
  EXPECT_THAT(BadInput([&] { tokenizer->Encode("ab\xed\xa0\x80"); }), HasSubstr("byte 2"));
}

TEST(BpeTokenizer, SavesWhatItLoaded) {
  const TemporaryFolder folder;
  const auto tokenizer = LoadTokenizer(CasesFolder() + "/qwen2.json");
  tokenizer->Save(folder.Path(""));
  EXPECT_EQ(ReadFile(folder.Path("tokenizer.json")), ReadFile(CasesFolder() + "/qwen2.json"));
  EXPECT_EQ(LoadTokenizer(folder.Path(""))->hash(), tokenizer->hash());
}

TEST(BpeTokenizer, HashesDifferBetweenTokenizers) {
  std::vector<std::string> hashes;
  for (const char* name : {"gpt2", "llama3", "qwen2", "o200k", "roberta"}) {
    hashes.push_back(LoadTokenizer(CasesFolder() + "/" + name + ".json")->hash());
  }
  for (size_t i = 0; i < hashes.size(); ++i) {
    EXPECT_EQ(std::count(hashes.begin(), hashes.end(), hashes[i]), 1) << i;
  }
}

// vocab.json and merges.txt of the gpt2 fixture, as GPT-2's own files are written.
TEST(BpeTokenizer, LoadsVocabularyAndMerges) {
  const std::string path = CasesFolder() + "/gpt2.json";
  const Json root = ReadJsonFile(path);
  Json vocabulary = root["model"]["vocab"];
  vocabulary["<|endoftext|>"] = 900;
  std::string merges = "#version: 0.2\n";
  for (const Json& merge : root["model"]["merges"]) {
    merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  }
  const TemporaryFolder folder;
  folder.Write("vocab.json", vocabulary.dump());
  folder.Write("merges.txt", merges);
  const auto two_files = LoadTokenizer(folder.Path(""));
  const auto one_file = LoadTokenizer(path);
  EXPECT_EQ(two_files->end_of_document(), 900);
  for (const std::string& string : ReadStrings()) {
    ASSERT_EQ(two_files->Encode(string), one_file->Encode(string));
  }
  const TemporaryFolder saved;
  two_files->Save(saved.Path(""));
  const auto again = LoadTokenizer(saved.Path("tokenizer.json"));
  EXPECT_EQ(again->hash(), two_files->hash());
  EXPECT_EQ(again->Encode("the <|endoftext|> 123"), two_files->Encode("the <|endoftext|> 123"));

  folder.Write("merges.txt", "#version: 0.2\nt h e\n");
  EXPECT_THAT(BadInput([&] { LoadTokenizer(folder.Path("")); }),
              HasSubstr("merges.txt:2: expected two tokens with a space, got 't h e'"));
}

TEST(ByteTokenizer, IsTheBytes) {
  const auto tokenizer = MakeByteTokenizer();
  EXPECT_EQ(tokenizer->vocabulary_size(), 256);
  EXPECT_EQ(tokenizer->name(), "bytes");
  EXPECT_EQ(tokenizer->end_of_document(), 0);
  EXPECT_THAT(tokenizer->Encode("a\xff\n"), ElementsAre(97, 255, 10));
  EXPECT_THAT(tokenizer->Encode(""), IsEmpty());
  std::vector<int32_t> all(256);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(tokenizer->Encode(tokenizer->Decode(all)), all);
  EXPECT_THAT(BadInput([&] { tokenizer->Decode(std::vector<int32_t>{256}); }),
              HasSubstr("token id 256"));
}

TEST(ByteTokenizer, SavesAsBpeWithoutMerges) {
  const TemporaryFolder folder;
  const auto bytes = LoadTokenizer("bytes");
  bytes->Save(folder.Path(""));
  const auto bpe = LoadTokenizer(folder.Path("tokenizer.json"));
  EXPECT_EQ(bpe->hash(), bytes->hash());
  EXPECT_EQ(bpe->vocabulary_size(), 256);
  for (const std::string& string : ReadStrings()) {
    ASSERT_EQ(bpe->Encode(string), bytes->Encode(string));
  }
}

}  // namespace
}  // namespace aah
