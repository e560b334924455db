#include "aah/io/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aah/error.h"
#include "aah/io/file.h"
#include "tests/io/error_of.h"
#include "tests/io/temporary_folder.h"

namespace aah {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

ConfigReader Read(std::string_view text, const std::vector<std::string>& overrides = {}) {
  return ConfigReader::FromText(text, "r.yaml", overrides);
}

constexpr std::string_view kRecipe = R"(# a comment
name: small run
training:
  steps: 200
  learning_rate: 3e-4
  decay: true
windows: [[16, 32], [64, 128]]
)";

TEST(Config, ReadsEveryType) {
  ConfigReader config = Read(kRecipe);
  EXPECT_EQ(config.Get<std::string>("name", ""), "small run");
  ConfigReader training = config.Section("training");
  EXPECT_EQ(training.Get<int64_t>("steps", 1), 200);
  EXPECT_EQ(training.Get<double>("learning_rate", 1), 3e-4);
  EXPECT_TRUE(training.Get<bool>("decay", false));
  EXPECT_THAT(config.Get<std::vector<std::vector<int32_t>>>("windows", {}),
              ElementsAre(ElementsAre(16, 32), ElementsAre(64, 128)));
  EXPECT_EQ(config.Get<int32_t>("training.steps", 1), 200);
  EXPECT_EQ(config.Get<uint64_t>("seed", 18446744073709551615U), 18446744073709551615U);
  EXPECT_EQ(config.Find<double>("absent"), std::nullopt);
  EXPECT_EQ(config.Section("absent_section").Get<int64_t>("x", 5), 5);
  config.Finish();
}

TEST(Config, AnEmptyFileIsAllDefaults) {
  for (const char* text : {"", "# only a comment\n", "---\n", "training:\n"}) {
    ConfigReader config = Read(text);
    EXPECT_EQ(config.Section("training").Get<int64_t>("steps", 9), 9) << text;
    config.Finish();
  }
}

TEST(Config, SaysWhereWhatWasExpectedAndWhatCame) {
  ConfigReader config = Read(
      "training:\n  steps: ten\n  rate: 2\n  flag: yes\n  list: 3\n  text: \"12\"\n  none:\n"
      "  section: {a: 1}\n");
  ConfigReader training = config.Section("training");
  EXPECT_EQ(ErrorOf([&] { training.Get<int64_t>("steps", 1, kAtLeastOne); }),
            "r.yaml:2: training.steps: expected an integer of at least 1, got "
            "'ten'");
  EXPECT_EQ(ErrorOf([&] { training.Get<double>("rate", 1, {.min = 0, .max = 1}); }),
            "r.yaml:3: training.rate: expected a number in 0..1, got '2'");
  EXPECT_EQ(ErrorOf([&] { training.Get<bool>("flag", true); }),
            "r.yaml:4: training.flag: expected true or false, got 'yes'");
  EXPECT_EQ(ErrorOf([&] { training.Get<std::vector<int32_t>>("list", {}); }),
            "r.yaml:5: training.list: expected a list such as [1, 2], got '3'");
  EXPECT_EQ(ErrorOf([&] { training.Get<int32_t>("text", 1); }),
            "r.yaml:6: training.text: expected an integer, got the text '12'");
  EXPECT_EQ(ErrorOf([&] { training.Get<std::string>("none", ""); }),
            "r.yaml:7: training.none: expected a text, got nothing");
  EXPECT_EQ(ErrorOf([&] { training.Get<double>("section", 1); }),
            "r.yaml:8: training.section: expected a number, got a section");
  EXPECT_EQ(ErrorOf([&] { training.Get<double>("steps.deeper", 1); }),
            "r.yaml:2: training.steps: expected a section, got 'ten'");
  EXPECT_THAT(ErrorOf([&] { config.Section("training.rate"); }),
              HasSubstr("training.rate: expected a section"));
  EXPECT_EQ(ErrorOf([&] { training.Require<int64_t>("seeds"); }),
            "r.yaml: training.seeds: this key is required, add it");
  EXPECT_EQ(ErrorOf([&] { training.Check(false, "rate", "is too high for ", 3, " heads"); }),
            "r.yaml:3: training.rate: is too high for 3 heads");
}

TEST(Config, NumbersAreStrict) {
  for (const char* text : {"x: 1.5", "x: 1e3", "x: 0x10", "x: 1_000", "x: 3000000000", "x: ''"}) {
    ConfigReader config = Read(text);
    EXPECT_THROW(config.Get<int32_t>("x", 1), Error) << text;
  }
  for (const char* text : {"x: .inf", "x: nan", "x: inf", "x: 1e999", "x: 1 2"}) {
    ConfigReader config = Read(text);
    EXPECT_THROW(config.Get<double>("x", 1), Error) << text;
  }
  EXPECT_THROW(Read("x: -1").Get<uint64_t>("x", 1), Error);
  EXPECT_EQ(Read("x: +4").Get<int32_t>("x", 1), 4);
  EXPECT_EQ(Read("x: -4").Get<int32_t>("x", 1), -4);
  EXPECT_EQ(ErrorOf([] { Read("x: [4, 0]").Get<std::vector<int32_t>>("x", {}, kAtLeastOne); }),
            "r.yaml:1: x[1]: expected an integer of at least 1, got '0'");
}

TEST(Config, RefusesUnknownKeysWithTheNearestName) {
  ConfigReader config = Read("training:\n  steps: 1\n  lerning_rate: 2\n");
  ConfigReader training = config.Section("training");
  training.Get<int64_t>("steps", 1);
  training.Get<double>("learning_rate", 1);
  EXPECT_EQ(ErrorOf([&] { config.Finish(); }),
            "r.yaml:3: unknown key 'training.lerning_rate' (did you mean "
            "'learning_rate'?)");
  ConfigReader other = Read("trainin: {steps: 1}\n");
  other.Section("training").Get<int64_t>("steps", 1);
  EXPECT_EQ(ErrorOf([&] { other.Finish(); }),
            "r.yaml:1: unknown key 'trainin' (did you mean 'training'?)");
  EXPECT_EQ(ErrorOf([] { Read("a: 1").Finish(); }),
            "r.yaml:1: unknown key 'a', there are no keys here");
}

TEST(Config, RefusesAKeyThatWasAskedForButHasNoEffect) {
  ConfigReader config = Read("kind: full\nwindow: 3\n");
  config.Get<std::string>("kind", "");
  EXPECT_TRUE(config.Has("window"));
  EXPECT_EQ(ErrorOf([&] { config.Finish(); }),
            "r.yaml:2: key 'window' has no effect together with the other "
            "settings, remove it");
}

TEST(Config, ChoosesAmongNames) {
  enum class Position { kLearned, kRope };
  constexpr std::array<std::pair<std::string_view, Position>, 2> kNames = {
      {{"learned", Position::kLearned}, {"rope", Position::kRope}}};
  EXPECT_EQ(Read("p: rope").GetEnum("p", Position::kLearned, kNames), Position::kRope);
  EXPECT_EQ(Read("").GetEnum("p", Position::kLearned, kNames), Position::kLearned);
  EXPECT_EQ(ErrorOf([&] { Read("p: roep").GetEnum("p", Position::kLearned, kNames); }),
            "r.yaml:1: p: unknown name 'roep' (did you mean 'rope'?)");
}

TEST(Config, OverridesGoThroughTheSameChecks) {
  ConfigReader config =
      Read(kRecipe, {"training.steps=7", "training.decay=false", "new.deep.key=text with spaces",
                     "windows=[[8]]", "windows.0.0=9", "training.steps=8"});
  EXPECT_EQ(config.Get<int64_t>("training.steps", 1), 8);
  EXPECT_FALSE(config.Get<bool>("training.decay", true));
  EXPECT_EQ(config.Get<std::string>("new.deep.key", ""), "text with spaces");
  EXPECT_THAT(config.Get<std::vector<std::vector<int32_t>>>("windows", {}),
              ElementsAre(ElementsAre(9)));
  EXPECT_EQ(ErrorOf([] { Read("", {"steps=ten"}).Get<int64_t>("steps", 1); }),
            "override 'steps=ten': steps: expected an integer, got 'ten'");
  EXPECT_THAT(ErrorOf([] { Read("", {"stepps=1"}).Finish(); }),
              HasSubstr("override 'stepps=1': unknown key 'stepps'"));
  EXPECT_EQ(ErrorOf([] { Read("", {"steps"}); }),
            "override 'steps': expected the form key.sub=value");
  EXPECT_EQ(ErrorOf([] { Read("", {"a..b=1"}); }),
            "override 'a..b=1': expected the form key.sub=value");
  EXPECT_EQ(ErrorOf([] { Read("a: 1", {"a.b=1"}); }),
            "override 'a.b=1': 'b' stands beneath '1' (r.yaml:1); to "
            "replace that by a section, write it as key={b: ...}");
  EXPECT_EQ(ErrorOf([] { Read("a: [1]", {"a.1=1"}); }),
            "override 'a.1=1': '1' must be the number of an item, below 1");
  EXPECT_THROW(Read("", {"a=[1"}), Error);
}

TEST(Config, RefusesWhatYamlAllowsButNoConfigNeeds) {
  EXPECT_EQ(ErrorOf([] { Read("a: 1\nb: 2\na: 3\n"); }),
            "r.yaml:3: key 'a' is given twice in one section, remove one");
  EXPECT_EQ(ErrorOf([] { Read("a: &x 1\nb: *x\n"); }),
            "r.yaml:1: anchors are not supported, write the value out");
  EXPECT_THAT(ErrorOf([] { Read("a: !!int 1\n"); }), HasSubstr("is not supported"));
  EXPECT_THAT(ErrorOf([] { Read("a: 1\n---\nb: 1\n"); }), HasSubstr("expected one YAML document"));
  EXPECT_THAT(ErrorOf([] { Read("a.b: 1\n"); }), HasSubstr("without dots"));
  EXPECT_THAT(ErrorOf([] { Read("[a]: 1\n"); }), HasSubstr("a word as key"));
  EXPECT_EQ(ErrorOf([] { Read("- 1\n"); }),
            "r.yaml:1: expected lines of the form `key: value`, got a list");
  EXPECT_THAT(ErrorOf([] { Read("a: [1, 2\nb: 3\n"); }), HasSubstr("not valid YAML: "));
  EXPECT_THAT(ErrorOf([] { Read(std::string("a: \0", 4)); }), HasSubstr("got a binary file"));
  EXPECT_EQ(ErrorOf([] { Read("a: \"b\\0c\"\n"); }),
            "r.yaml:1: expected text, got text with a zero byte; remove the \\0");
  EXPECT_EQ(ErrorOf([] { Read("a: b\xff\n"); }),
            "r.yaml: expected YAML text in UTF-8, got another encoding");
  EXPECT_EQ(ErrorOf([] { Read("a: 1\n", {"a=\xff\xfe"}); }),
            "override 'a=\xff\xfe': expected YAML text in UTF-8, got another encoding");
}

TEST(Config, TellsTheBoundsOfIntegersInDigits) {
  EXPECT_EQ(ErrorOf([] { Read("a: -1\n").Get<uint64_t>("a", 0); }),
            "r.yaml:1: a: expected an integer in 0..18446744073709551615, got '-1'");
  EXPECT_EQ(ErrorOf([] { Read("a: -1\n").Get<int64_t>("a", 1, {.min = 1, .max = 1e9}); }),
            "r.yaml:1: a: expected an integer in 1..1000000000, got '-1'");
  EXPECT_EQ(ErrorOf([] { Read("a: -1\n").Get<double>("a", 1, {.min = 0, .max = 0.5}); }),
            "r.yaml:1: a: expected a number in 0..0.5, got '-1'");
}

TEST(Config, RefusesBombs) {
  EXPECT_EQ(ErrorOf([] { Read("a: " + std::string(100, '[') + std::string(100, ']')); }),
            "r.yaml:1: nested deeper than 32 levels, which no config needs");
  EXPECT_THROW(Read("a: " + std::string(1'000'000, '[')), Error);
  std::string wide = "a: [";
  for (int i = 0; i < 200'001; ++i) wide += "1,";
  EXPECT_THAT(ErrorOf([&] { Read(wide + "1]"); }), HasSubstr("more than 200000"));
  EXPECT_THAT(ErrorOf([] { Read(std::string((4 << 20) + 1, 'a')); }),
              HasSubstr("which no config needs"));
}

TEST(Config, ReadsAListOfSections) {
  ConfigReader config = Read("arms:\n  - name: full\n  - name: narrow\n    window: 64\n");
  std::vector<std::string> names;
  for (ConfigReader& arm : config.List("arms")) {
    names.push_back(arm.Require<std::string>("name"));
    arm.Get<int32_t>("window", 0);
  }
  config.Finish();
  EXPECT_THAT(names, ElementsAre("full", "narrow"));
  EXPECT_EQ(config.ToYaml(),
            "arms:\n  -\n    name: full\n    window: 0\n  -\n    name: narrow\n    window: 64\n");
  EXPECT_THAT(config.Flatten(),
              ElementsAre(Pair("arms[0].name", "full"), Pair("arms[0].window", "0"),
                          Pair("arms[1].name", "narrow"), Pair("arms[1].window", "64")));
  EXPECT_EQ(ErrorOf([] { Read("arms: [1]").List("arms"); }),
            "r.yaml:1: arms[0]: expected a section, got '1'");
  ConfigReader unknown = Read("arms: [{x: 1}]");
  unknown.List("arms");
  EXPECT_THAT(ErrorOf([&] { unknown.Finish(); }), HasSubstr("unknown key 'arms[0].x'"));
}

TEST(Config, WritesEveryValueAsResolvedAndReadsItBack) {
  const auto read_all = [](ConfigReader config) {
    config.Get<std::string>("name", "default: \"name\"\n");
    config.Get<std::string>("word", "true");
    config.Get<std::string>("number", "12");
    config.Get<std::string>("empty", "");
    config.Get<double>("training.rate", 0.1);
    config.Get<double>("training.tiny", 5e-324);
    config.Get<bool>("flag", true);
    config.Get<std::vector<int32_t>>("none", {});
    config.Get<std::vector<std::vector<int32_t>>>("windows", {{1}});
    config.Get<std::vector<std::string>>("texts", {"a b", "c", "-d", "\xc3\xa9"});
    config.Find<int32_t>("absent");
    config.Finish();
    return config;
  };
  const std::string yaml = read_all(Read("windows: [[16, 32], []]\ntraining: {rate: 1}")).ToYaml();
  EXPECT_EQ(yaml, R"(name: "default: \"name\"\x0a"
word: "true"
number: "12"
empty: ""
training:
  rate: 1
  tiny: 5e-324
flag: true
none: []
windows: [[16, 32], []]
texts: ["a b", c, "-d", )"
                  "\"\xc3\xa9\"]\n");
  ConfigReader again = read_all(Read(yaml));
  EXPECT_EQ(again.ToYaml(), yaml);
  EXPECT_EQ(again.Get<std::string>("name", ""), "default: \"name\"\n");
}

std::string Utf8(uint32_t code) {
  const auto byte = [](uint32_t value) { return static_cast<char>(value); };
  const auto next = [&](int shift) { return byte(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xc0 | code >> 6), next(0)};
  if (code < 0x10000) return {byte(0xe0 | code >> 12), next(6), next(0)};
  return {byte(0xf0 | code >> 18), next(12), next(6), next(0)};
}

bool IsCharacter(uint32_t code) { return code != 0 && (code < 0xd800 || code > 0xdfff); }

// What is read from the YAML that is written for these texts.
std::vector<std::string> WrittenAndRead(const std::vector<std::string>& texts) {
  ConfigReader config = Read("");
  config.Get<std::vector<std::string>>("texts", texts);
  return Read(config.ToYaml()).Require<std::vector<std::string>>("texts");
}

// A delete character is one byte as read and four as written.
TEST(Config, RefusesToWriteWhatItWouldNotRead) {
  const auto read = [](size_t count) {
    ConfigReader config = Read("text: \"" + std::string(count, '\x7f') + "\"\n");
    config.Require<std::string>("text");
    return config;
  };
  EXPECT_EQ(ErrorOf([&] { read(1 << 20).ToYaml(); }),
            "r.yaml, as resolved: 4194313 bytes, which no config needs; expected at most 4194304");
  EXPECT_EQ(Read(read((1 << 20) - 3).ToYaml()).Require<std::string>("text"),
            std::string((1 << 20) - 3, '\x7f'));
}

TEST(Config, WritesEveryCodePointSoThatItReadsBack) {
  constexpr uint32_t kBatch = 0x4000;
  for (uint32_t begin = 0; begin < 0x110000; begin += kBatch) {
    std::string text, escaped = "text: \"";
    for (uint32_t code = begin; code < begin + kBatch; ++code) {
      if (!IsCharacter(code)) continue;
      text += Utf8(code);
      char escape[16];
      (void)std::snprintf(escape, sizeof(escape), "\\U%08x", code);
      escaped += escape;
    }
    ConfigReader config = Read(escaped + '"');
    EXPECT_TRUE(config.Require<std::string>("text") == text) << begin;
    EXPECT_TRUE(Read(config.ToYaml()).Require<std::string>("text") == text) << begin;
  }
}

TEST(Config, WritesEveryKindOfCharacterSoThatItReadsBackAnywhereInAText) {
  std::vector<uint32_t> codes = {0xd7ff, 0xe000,  0xfdd0,  0xfeff,  0xfffb,  0xfffd,  0xfffe,
                                 0xffff, 0x10000, 0x1f600, 0x1ffff, 0xe0001, 0x10ffff};
  for (uint32_t code = 1; code < 0x100; ++code) codes.push_back(code);
  for (uint32_t code = 0x2000; code < 0x2070; ++code) codes.push_back(code);
  std::vector<std::string> texts;
  for (const uint32_t code : codes) {
    const std::string one = Utf8(code);
    for (const std::string& text : {one, one + one, one + "a", "a" + one, "a " + one + " b"}) {
      texts.push_back(text);
    }
  }
  EXPECT_EQ(WrittenAndRead(texts), texts);
}

TEST(Config, WritesTextThatLooksLikeSomethingElseSoThatItReadsBack) {
  const std::vector<std::string> texts = {
      "",     " ",    "  a",   "a  ",  "\t",  "a\t", "\r",    "a\r\nb",    "a\n\n b\n", "true",
      "True", "NULL", "null",  "~",    "off", "No",  "1",     "+1",        "-1",        ".5",
      "1e3",  "0x10", ".inf",  ".nan", "-",   "- a", "--- a", "...",       "?",         ": a",
      "a: b", "#",    "a # b", "[a]",  "{a}", "&a",  "*a",    "!a",        "!!int 1",   "|",
      ">",    "%",    "@",     "`",    "'",   "\"",  "\\",    "\\N\\_\\0", "a,b",       "<<"};
  EXPECT_EQ(WrittenAndRead(texts), texts);
  std::vector<std::string> names;
  ConfigReader config = Read("");
  for (const std::string& text : texts) {
    if (text.empty() || text.find('.') != std::string::npos) continue;
    names.push_back(text);
    config.Section("keys").Get<std::string>(text, text);
  }
  ConfigReader again = Read(config.ToYaml());
  ConfigReader keys = again.Section("keys");
  for (const std::string& key : names) EXPECT_EQ(keys.Require<std::string>(key), key);
  EXPECT_EQ(keys.Keys(), names);
}

TEST(Config, ReadsEveryEscape) {
  EXPECT_EQ(Read(R"(a: "\a\b\e\f\n\r\t\v\"\/\\\ \N\_\L\P\x41\u00e9\U0001f600\
    é\N")")
                .Require<std::string>("a"),
            "\a\b\x1b\f\n\r\t\v\"/\\ \xc2\x85\xc2\xa0\xe2\x80\xa8\xe2\x80\xa9"
            "A\xc3\xa9\xf0\x9f\x98\x80\xc3\xa9\xc2\x85");
  EXPECT_EQ(Read(R"("x\Ny": 1)").Keys(), std::vector<std::string>{"x\xc2\x85y"});
  EXPECT_THROW(Read(R"(a: "\ud800")"), Error);
  EXPECT_THROW(Read(R"(a: "\U00110000")"), Error);
}

TEST(Config, WritesWhatCannotBeSeenAsEscapes) {
  ConfigReader config = Read("");
  config.Get<std::string>("text",
                          "\x7f\xc2\x85\xc2\xa0 \xc3\xa9 \xe2\x80\xa8\xef\xbb\xbf\xf0\x9f\xbf\xbf");
  EXPECT_EQ(config.ToYaml(), "text: \"\\x7f\\x85\\xa0 \xc3\xa9 \\u2028\\ufeff\\U0001ffff\"\n");
}

TEST(Config, RefusesControlCharacters) {
  // yaml-cpp would take the first for the end of the text.
  EXPECT_EQ(ErrorOf([] { Read("a: b\x04\nc: 1\n"); }),
            "r.yaml: byte 4 is the control character 4: expected YAML text; write it as an escape "
            "in quotes");
  EXPECT_THAT(ErrorOf([] { Read("", {"a=b\x1b"}); }), HasSubstr("is the control character 27"));
  EXPECT_EQ(Read("a: \"b\\x04\\x1b\"\n").Require<std::string>("a"), "b\x04\x1b");
}

TEST(Config, RefusesOverridesThatWouldNotReadBack) {
  std::string deep = "a";
  for (int i = 0; i < 31; ++i) deep += ".a";
  EXPECT_EQ(Read("", {deep + "=1"}).Get<int32_t>(deep, 0), 1);
  EXPECT_THAT(ErrorOf([&] { Read("", {deep + "=[1]"}); }),
              HasSubstr("nested deeper than 32 levels"));
  for (int i = 0; i < 100'000; ++i) deep += ".a";
  EXPECT_THAT(ErrorOf([&] { Read("", {deep + "=1"}); }), HasSubstr("nested deeper than 32 levels"));
  EXPECT_THAT(ErrorOf([] { Read("", {"a." + std::string(201, 'b') + "=1"}); }),
              HasSubstr("expected names of at most 200 bytes, got one of 201"));
  EXPECT_THAT(ErrorOf([] { Read("", {"a\xff=1"}); }), HasSubstr("expected a key in UTF-8"));
}

TEST(Config, MergesSectionsKeyByKeyAndReplacesTheRest) {
  ConfigReader suite = Read(
      "base:\n  model: {layers: 2, heads: 8}\n  windows: [1, 2]\narm:\n  model: {heads: 4}\n"
      "  windows: [3]\n");
  ConfigReader merged = suite.Section("base").MergedWith(suite.Section("arm"));
  suite.Finish();
  EXPECT_EQ(merged.Get<int32_t>("model.layers", 0), 2);
  EXPECT_EQ(merged.Get<int32_t>("model.heads", 0), 4);
  EXPECT_THAT(ErrorOf([&] { merged.Finish(); }), HasSubstr("r.yaml:6: unknown key 'windows'"));
  EXPECT_THAT(merged.Get<std::vector<int32_t>>("windows", {}), ElementsAre(3));
  merged.Finish();
  ConfigReader changed =
      suite.Section("arm").WithOverrides(std::vector<std::string>{"model.heads=6"});
  EXPECT_EQ(changed.Get<int32_t>("model.heads", 0), 6);
  EXPECT_THAT(changed.Keys(), ElementsAre("model", "windows"));
}

TEST(Config, ReadsAFile) {
  const TemporaryFolder folder;
  WriteFileAtomically(folder / "c.yaml", "steps: x\n");
  EXPECT_THAT(ErrorOf([&] { ConfigReader::FromFile(folder / "c.yaml").Get<int64_t>("steps", 1); }),
              HasSubstr("c.yaml:1: steps: expected an integer, got 'x'"));
  EXPECT_THAT(ErrorOf([&] { ConfigReader::FromFile(folder / "d.yaml"); }),
              HasSubstr("no such file"));
}

TEST(Config, KindOfTellsAWordFromASection) {
  ConfigReader config = Read("a: full\nb: {window: 3}\nc: [1]\nd:\n");
  EXPECT_EQ(config.KindOf("a"), ConfigKind::kScalar);
  EXPECT_EQ(config.KindOf("b"), ConfigKind::kSection);
  EXPECT_EQ(config.KindOf("c"), ConfigKind::kList);
  EXPECT_EQ(config.KindOf("d"), ConfigKind::kNull);
  EXPECT_EQ(config.KindOf("e"), ConfigKind::kAbsent);
}

}  // namespace
}  // namespace aah
