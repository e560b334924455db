#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "aah/io/json.h"
#include "aah/text/tokenizer.h"
#include "tests/text/test_support.h"
#include "text/src/byte_level.h"
#include "text/src/pattern.h"

namespace aah {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A tokenizer of the 256 bytes, "th" and "the".
Json Sample() {
  Json vocabulary = Json::object();
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[BytesToByteLevel(std::string(1, static_cast<char>(byte)))] = byte;
  }
  vocabulary["th"] = 256;
  vocabulary["the"] = 257;
  return {
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", {"t h", Json{"th", "e"}}}}}};
}

Json AddedToken(int id, const std::string& content) {
  return {{"id", id}, {"content", content}, {"special", true}};
}

std::string Refusal(const Json& root) {
  return BadInput([&] { ParseTokenizerJson(root.dump(), "t.json"); });
}

std::unique_ptr<Tokenizer> Load(const Json& root) {
  return ParseTokenizerJson(root.dump(), "t.json");
}

TEST(TokenizerJson, LoadsTheSample) {
  EXPECT_THAT(Load(Sample())->Encode("the hat"), ElementsAre(257, 32, 104, 97, 116));
}

TEST(TokenizerJson, RefusesByName) {
  Json root = Sample();
  root["model"]["type"] = "Unigram";
  EXPECT_EQ(Refusal(root), "t.json: the model 'Unigram' is not supported, only BPE");
  root = Sample();
  root["model"]["dropout"] = 0.1;
  EXPECT_THAT(Refusal(root), HasSubstr("dropout"));
  root = Sample();
  root["model"]["byte_fallback"] = true;
  EXPECT_THAT(Refusal(root), HasSubstr("byte_fallback"));
  root = Sample();
  root["model"]["end_of_word_suffix"] = "</w>";
  EXPECT_THAT(Refusal(root), HasSubstr("end_of_word_suffix"));
  root = Sample();
  root["normalizer"] = {{"type", "Lowercase"}};
  EXPECT_EQ(Refusal(root), "t.json: the normaliser 'Lowercase' is not supported, only NFC or none");
  root = Sample();
  root["pre_tokenizer"] = {{"type", "Metaspace"}};
  EXPECT_THAT(Refusal(root), HasSubstr("the pre-tokenizer 'Metaspace' is not supported"));
  root = Sample();
  root["pre_tokenizer"] = nullptr;
  EXPECT_THAT(Refusal(root), HasSubstr("must end with one ByteLevel"));
  root = Sample();
  root["pre_tokenizer"] = {{"type", "Digits"}};
  EXPECT_THAT(Refusal(root), HasSubstr("must end with one ByteLevel"));
  root = Sample();
  root["decoder"] = {{"type", "WordPiece"}};
  EXPECT_THAT(Refusal(root), HasSubstr("only the decoder ByteLevel"));
  root = Sample();
  root["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"String", "a"}}}, {"behavior", "MergedWithNext"}};
  EXPECT_THAT(Refusal(root), HasSubstr("the behaviour 'MergedWithNext' is not supported"));
}

TEST(TokenizerJson, RefusesManySteps) {
  const auto with_steps = [](int count) {
    Json root = Sample();
    Json steps = Json::array();
    for (int i = 1; i < count; ++i) steps.push_back({{"type", "Digits"}});
    steps.push_back(root["pre_tokenizer"]);
    root["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps}};
    return root;
  };
  EXPECT_EQ(Refusal(with_steps(65)),
            "t.json: the pre-tokenizer has more than 64 steps, which no tokenizer needs");
  EXPECT_THAT(Load(with_steps(64))->Encode("the1"), ElementsAre(257, 49));
}

TEST(TokenizerJson, RefusesAVocabularyThatWouldLoseText) {
  Json root = Sample();
  root["model"]["vocab"].erase("a");
  EXPECT_EQ(Refusal(root),
            "t.json: the vocabulary has no token for the byte 97; train it with "
            "initial_alphabet=ByteLevel.alphabet()");
  // 0xff never occurs in UTF-8.
  root = Sample();
  root["model"]["vocab"].erase("\u00ff");
  EXPECT_EQ(Load(root)->vocabulary_size(), 258);
}

TEST(TokenizerJson, RefusesBadIds) {
  Json root = Sample();
  root["model"]["vocab"]["the"] = 256;
  EXPECT_THAT(Refusal(root), HasSubstr("share the id 256"));
  root["model"]["vocab"]["the"] = -1;
  EXPECT_THAT(Refusal(root), HasSubstr("the token 'the' needs a whole id from 0 to"));
  root["model"]["vocab"]["the"] = 2000000000;
  EXPECT_THAT(Refusal(root), HasSubstr("the token 'the' needs a whole id from 0 to"));
  root["model"]["vocab"]["the"] = 257.5;
  EXPECT_THAT(Refusal(root), HasSubstr("the token 'the' needs a whole id from 0 to"));
  root["model"]["vocab"]["the"] = "257";
  EXPECT_THAT(Refusal(root), HasSubstr("the token 'the' needs a whole id from 0 to"));
}

TEST(TokenizerJson, RefusesBadMerges) {
  Json root = Sample();
  root["model"]["merges"] = {"t x"};
  EXPECT_THAT(Refusal(root), HasSubstr("merge 0: 't', 'x' or both together are not in"));
  root["model"]["merges"] = {"t h e"};
  EXPECT_THAT(Refusal(root), HasSubstr("merge 0: expected two tokens with a space, got 't h e'"));
  root["model"]["merges"] = {Json{"t"}};
  EXPECT_THAT(Refusal(root), HasSubstr("merge 0: expected two texts"));
  root["model"]["merges"] = {3};
  EXPECT_THAT(Refusal(root), HasSubstr("merge 0: expected a text"));
  root["model"]["merges"] = 3;
  EXPECT_THAT(Refusal(root), HasSubstr("merges: expected a list, got 3"));
}

TEST(TokenizerJson, AddedTokensFollowTheVocabulary) {
  Json root = Sample();
  root["added_tokens"] = {AddedToken(258, "<eos>"), AddedToken(257, "the")};
  EXPECT_THAT(Load(root)->Encode("the<eos>then"), ElementsAre(257, 258, 257, 110));
  EXPECT_EQ(Load(root)->vocabulary_size(), 259);
  EXPECT_EQ(Load(root)->end_of_document(), 258);
  root["added_tokens"] = {AddedToken(300, "<eos>")};
  EXPECT_THAT(Refusal(root), HasSubstr("'<eos>' has the id 300, expected 258"));
  root["added_tokens"] = {AddedToken(5, "the")};
  EXPECT_THAT(Refusal(root), HasSubstr("'the' has the id 5, expected 257"));
  root["added_tokens"] = {AddedToken(258, "")};
  EXPECT_THAT(Refusal(root), HasSubstr("the added token 258 is empty"));
  root["added_tokens"] = {AddedToken(258, "x!"), AddedToken(259, "x!")};
  EXPECT_THAT(Refusal(root), HasSubstr("'x!' is there twice"));
  root["added_tokens"] = {AddedToken(258, "<eos>")};
  root["added_tokens"][0]["single_word"] = true;
  EXPECT_THAT(Refusal(root), HasSubstr("single_word"));
}

TEST(TokenizerJson, RefusesWhatIsNoTokenizer) {
  EXPECT_THAT(Refusal(Json::array()), HasSubstr("expected a tokenizer.json, an object"));
  EXPECT_THAT(Refusal(Json::object()), HasSubstr("t.json"));
  EXPECT_THAT(BadInput([] { ParseTokenizerJson("{\"model\": ", "t.json"); }), HasSubstr("t.json"));
  EXPECT_THAT(BadInput([] { LoadTokenizer("/nowhere/at-all"); }),
              HasSubstr("there is no tokenizer '/nowhere/at-all'"));
  const TemporaryFolder folder;
  EXPECT_THAT(BadInput([&] { LoadTokenizer(folder.Path("")); }),
              HasSubstr("expected tokenizer.json, or vocab.json and merges.txt"));
}

TEST(TranslatePattern, KeepsTheMeaning) {
  EXPECT_EQ(TranslatePattern(R"(a|\s+(?!\S))", "t"), R"(a|\p{White_Space}+(?!\P{White_Space}))");
  EXPECT_EQ(TranslatePattern(".", "t"), R"([^\n])");
  EXPECT_EQ(TranslatePattern(R"([\s\r\n-])", "t"), R"([\p{White_Space}\r\n\-])");
  EXPECT_EQ(TranslatePattern(R"(\v\u00e9\x41\x{1F600})", "t"), R"(\x0b\x{00e9}\x{41}\x{1F600})");
  EXPECT_EQ(TranslatePattern(R"(\p{Zs}{1,3}\P{Zs}?+)", "t"), R"([\p{Zs}]{1,3}[^\p{Zs}]?+)");
  EXPECT_THAT(TranslatePattern(R"([^\p{Han}])", "t"), testing::StartsWith(R"([^\p{sc:Han}\x{)"));
}

TEST(TranslatePattern, RefusesWhatDiffers) {
  for (const char* pattern :
       {R"(\w+)",     R"(\b)",     R"([\b])",   "^a",          "a$",
        R"(\Aa)",     R"(\h)",     R"([a&&b])", "[[:alpha:]]", "[a[b]]",
        "[]a]",       "(?i:stra)", "(?i:a.)",   "(?i)a",       "(?<=a)b",
        "(?<n>a)",    "(?<!a)b",   "(*UTF8)a",  "a{,3}",       "a{2}+",
        "a{2}?",      "a{2}{3}",   "a{100}",    "a{060,}",     "a**",
        "a+++",       "{",         "*a",        R"(\p{Foo})",  R"(\p{Mn})",
        R"([\P{L}])", R"([\D])",   R"(\1)",     R"(\xe9)",     R"(\x{110000000})",
        R"(\uD)",     R"([a-\s])", R"([\s-a])", "[a-b-c]",     "[a",
        R"([a\)",     R"(\)",      "(?i:a",     R"(\p)",       R"(\p{)",
        R"(\é)"}) {
    EXPECT_THAT(BadInput([&] { TranslatePattern(pattern, "t"); }), HasSubstr("is not supported"))
        << pattern;
  }
}

TEST(Pattern, RefusesWhatMatchesNothing) {
  EXPECT_THAT(BadInput([] { Pattern::FromRegex("a*", "t"); }), HasSubstr("empty text"));
  EXPECT_THAT(BadInput([] { Pattern::FromRegex("(a", "t"); }), HasSubstr("malformed"));
  EXPECT_THAT(BadInput([] { Pattern::FromRegex("[z-a]", "t"); }), HasSubstr("malformed"));
}

TEST(Pattern, RefusesWhatMakesStepsCostly) {
  EXPECT_EQ(BadInput([] { Pattern::FromRegex(std::string(4097, 'a'), "t"); }),
            "t: the pre-tokenizer's pattern has 4097 bytes, expected at most 4096");
  Pattern::FromRegex(std::string(4096, 'a'), "t");
}

size_t CountPieces(std::string_view expression, std::string_view text) {
  const Pattern pattern = Pattern::FromRegex(expression, "t");
  Pattern::Matcher matcher(pattern);
  size_t count = 0;
  matcher.ForEachPiece(text, [&](std::string_view, bool) { ++count; });
  return count;
}

std::string GivenUp(std::string_view expression, std::string_view text) {
  return BadInput([&] { CountPieces(expression, text); });
}

std::string Repeat(std::string_view unit, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += unit;
  return text;
}

constexpr char kTooManySteps[] =
    "t: the pre-tokenizer's pattern gave up at byte 0 of 64: it takes too many steps; use a "
    "pattern that tries less, or shorter texts";

TEST(Pattern, GivesUpOnExponentialTime) {
  EXPECT_EQ(GivenUp("(a+)+[bc]", std::string(64, 'a')), kTooManySteps);
  EXPECT_EQ(GivenUp("(a|[ax])+[bc]", std::string(64, 'a')), kTooManySteps);
  EXPECT_EQ(GivenUp("(?>(?=(a+)+[bc])x|(a+)+[bc])", std::string(64, 'a')), kTooManySteps);
  // Compiled code keeps to no limit of PCRE2's where there are only alternatives.
  EXPECT_EQ(GivenUp(Repeat("(x|" + std::string(18, '|') + ")", 30) + "[yz]", std::string(64, 'x')),
            kTooManySteps);
}

TEST(Pattern, GivesUpOnPolynomialTime) {
  const std::string text(200000, 'a');
  for (const char* expression : {"a+[bc]", "a*a*a*[bc]", "a*?a*[bc]", "(?=a+[bc])b|a+[bc]"}) {
    EXPECT_THAT(GivenUp(expression, text), HasSubstr("of 200000: it takes too many steps"))
        << expression;
  }
}

// Steps are counted over all the texts of a matcher: hard ones do not get a new allowance each.
TEST(Pattern, GivesUpOnManySmallTexts) {
  const Pattern pattern = Pattern::FromRegex("(a+)+[bc]", "t");
  Pattern::Matcher matcher(pattern);
  const std::string text(17, 'a');
  size_t pieces = 0;
  EXPECT_THAT(BadInput([&] {
                for (int i = 0; i < 1000; ++i) {
                  matcher.ForEachPiece(text, [&](std::string_view, bool) { ++pieces; });
                }
              }),
              HasSubstr("of 17: it takes too many steps"));
  EXPECT_GT(pieces, 10);
}

TEST(Pattern, TakesLongTextsInLinearTime) {
  constexpr char kLlama3[] =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
      R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
  constexpr int kLength = 1 << 20;
  EXPECT_EQ(CountPieces(kLlama3, std::string(kLength, ' ')), 1);
  EXPECT_EQ(CountPieces(kLlama3, std::string(kLength, '\n')), 1);
  EXPECT_EQ(CountPieces(kLlama3, std::string(kLength, 'a')), 1);
  EXPECT_EQ(CountPieces(kLlama3, std::string(kLength, '.')), 1);
  EXPECT_EQ(CountPieces(kLlama3, std::string(kLength, ' ') + "a"), 2);
  EXPECT_EQ(CountPieces(kLlama3, Repeat("the 12 ", kLength / 8)), kLength / 8 * 3 + 1);
  std::string words;
  for (int i = 10; i < 40; ++i) words += "w" + std::to_string(i) + "|";
  EXPECT_EQ(CountPieces(words + ".", std::string(kLength, 'w')), kLength);
}

}  // namespace
}  // namespace aah
