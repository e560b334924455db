#include "aah/text/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "aah/io/json.h"
#include "aah/text/recall_task.h"
#include "aah/text/tokenizer.h"
#include "tests/io/file_size_limit.h"
#include "tests/text/test_support.h"

namespace aah {
namespace {

using testing::HasSubstr;

std::string Text(const TokenFile& file, TokenRange range) {
  std::vector<int32_t> ids(static_cast<size_t>(range.size()));
  file.Read(range.begin, std::span(ids));
  return MakeByteTokenizer()->Decode(ids);
}

std::string Lines(int count, const std::string& line) {
  std::string text;
  for (int i = 0; i < count; ++i) text += line + " " + std::to_string(i) + "\n";
  return text;
}

PrepareOptions Options(const TemporaryFolder& folder, const std::string& source) {
  PrepareOptions options;
  options.sources = {source};
  options.output = folder.Path("out");
  return options;
}

TEST(PrepareData, SplitsOneTextByPosition) {
  const TemporaryFolder folder;
  const std::string text = Lines(1000, "a line of text");
  PrepareOptions options = Options(folder, folder.Write("one.txt", text));
  options.validation_fraction = 0.1;
  options.test_fraction = 0.2;
  std::vector<int64_t> progress;
  const PrepareResult result = PrepareData(
      options, [&](const PrepareProgress& state) { progress.push_back(state.bytes_done); });
  EXPECT_THAT(progress, testing::ElementsAre(std::ssize(text)));
  EXPECT_EQ(result.split, SplitRule::kPosition);
  const TokenFile file = TokenFile::Open(options.output);
  file.VerifyContent();
  EXPECT_EQ(file.info().end_of_document, std::nullopt);
  EXPECT_EQ(file.info().document_count, 3);
  std::string all;
  for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
    const std::string part = Text(file, file.split(split).tokens);
    EXPECT_EQ(file.split(split).text_bytes, std::ssize(part));
    EXPECT_TRUE(part.ends_with("\n"));
    all += part;
  }
  EXPECT_EQ(all, text);
  const auto size = static_cast<double>(text.size());
  EXPECT_NEAR(static_cast<double>(file.split(Split::kValidation).text_bytes), 0.1 * size, 20);
  EXPECT_NEAR(static_cast<double>(file.split(Split::kTest).text_bytes), 0.2 * size, 20);
}

// What the folder `path` holds, temporary files included; empty where there is none.
std::set<std::string> Entries(const std::string& path) {
  std::set<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(path, none)) {
    names.insert(entry.path().filename());
  }
  return names;
}

// The error of `prepare` on a disk that takes files of `bytes` at most.
ErrorKind KindOnAFullDisk(rlim_t bytes, const std::function<void()>& prepare) {
  const FileSizeLimit limit(bytes);
  try {
    prepare();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "expected an error";
  return ErrorKind::kBadInput;
}

TEST(PrepareData, LeavesNothingOnAFullDisk) {
  const TemporaryFolder folder;
  const PrepareOptions options =
      Options(folder, folder.Write("one.txt", Lines(1000, "a line of text")));
  const auto prepare = [&] { PrepareData(options); };
  // The tokenizer's description fits, the tokens do not.
  EXPECT_EQ(KindOnAFullDisk(4000, prepare), ErrorKind::kMachine);
  EXPECT_FALSE(std::filesystem::exists(options.output));
  std::filesystem::create_directory(options.output);
  EXPECT_EQ(KindOnAFullDisk(4000, prepare), ErrorKind::kMachine);
  EXPECT_TRUE(Entries(options.output).empty());

  RecallOptions recall;
  recall.output = folder.Path("recall");
  EXPECT_EQ(KindOnAFullDisk(4000, [&] { PrepareRecall(recall, {}); }), ErrorKind::kMachine);
  EXPECT_FALSE(std::filesystem::exists(recall.output));
}

TEST(PrepareData, KeepsTheEarlierDataSetWhereAnotherFails) {
  const TemporaryFolder folder;
  PrepareOptions options = Options(folder, folder.Write("one.txt", Lines(30, "short")));
  PrepareData(options);
  const std::set<std::string> files = {"data.json", "tokenizer.json", "tokens.bin"};
  EXPECT_EQ(Entries(options.output), files);
  const std::string before = ReadFile(options.output + "/data.json");
  options.overwrite = true;
  options.sources = {folder.Write("two.txt", Lines(1000, "a line of text"))};
  EXPECT_EQ(KindOnAFullDisk(4000, [&] { PrepareData(options); }), ErrorKind::kMachine);
  EXPECT_EQ(Entries(options.output), files);
  EXPECT_EQ(ReadFile(options.output + "/data.json"), before);
  TokenFile::Open(options.output).VerifyContent();
  PrepareData(options);
  EXPECT_EQ(Entries(options.output), files);
  EXPECT_NE(ReadFile(options.output + "/data.json"), before);
}

TEST(PrepareData, ReplacesTheWholeOfAnotherDataSet) {
  const TemporaryFolder folder;
  PrepareOptions options = Options(folder, folder.Write("one.txt", Lines(30, "short")));
  PrepareData(options);
  folder.Write("out/notes.txt", "mine");
  RecallOptions recall;
  recall.sequences = {2, 1, 1};
  recall.output = options.output;
  recall.overwrite = true;
  PrepareRecall(recall, {});
  const std::set<std::string> files = {"data.json", "notes.txt", "tokens.bin"};
  EXPECT_EQ(Entries(options.output), files);
  EXPECT_TRUE(TokenFile::Open(options.output).info().scored.has_value());
}

TEST(PrepareData, RemovesWhatAKilledPreparationLeft) {
  const TemporaryFolder folder;
  const PrepareOptions options = Options(folder, folder.Write("one.txt", Lines(30, "short")));
  folder.Write("out/.unfinished.tmp-1-2-3/tokens.bin", "part");
  PrepareData(options);
  const std::set<std::string> files = {"data.json", "tokenizer.json", "tokens.bin"};
  EXPECT_EQ(Entries(options.output), files);
}

TEST(PrepareData, LeavesNoneOfTheFoldersThatItMade) {
  const TemporaryFolder folder;
  PrepareOptions options = Options(folder, folder.Write("one.txt", Lines(1000, "a line of text")));
  std::filesystem::create_directory(folder.Path("there"));
  for (const char* output : {"there/a/b/c", "there/a/b/c/", "there/./a/../b"}) {
    options.output = folder.Path(output);
    EXPECT_EQ(KindOnAFullDisk(4000, [&] { PrepareData(options); }), ErrorKind::kMachine);
    EXPECT_TRUE(Entries(folder.Path("there")).empty()) << output;
  }
  options.output = folder.Path("there/a/" + std::string(300, 'n'));
  EXPECT_THAT(BadInput([&] { PrepareData(options); }), HasSubstr("cannot make the folder"));
  EXPECT_TRUE(Entries(folder.Path("there")).empty());
}

TEST(PrepareData, CutsBetweenCharacters) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 10000; ++i) text += "\u20ac";  // no line end anywhere
  const PrepareOptions options = Options(folder, folder.Write("euro.txt", text));
  PrepareData(options);
  const TokenFile file = TokenFile::Open(options.output);
  for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
    EXPECT_EQ(file.split(split).tokens.size() % 3, 0) << SplitName(split);
  }
  EXPECT_EQ(file.info().token_count, 30000);
}

TEST(PrepareData, SplitsManyDocumentsWhole) {
  const TemporaryFolder folder;
  std::set<std::string> texts;
  for (int i = 0; i < 100; ++i) {
    const std::string text = Lines(10 + i % 7, "document " + std::to_string(i));
    folder.Write("many/" + std::to_string(i) + ".txt", text);
    texts.insert(text + '\0');
  }
  PrepareOptions options = Options(folder, folder.Path("many"));
  const PrepareResult result = PrepareData(options);
  EXPECT_EQ(result.split, SplitRule::kDocument);
  const TokenFile file = TokenFile::Open(options.output);
  EXPECT_EQ(file.info().end_of_document, 0);
  EXPECT_EQ(file.info().document_count, 100);
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(texts.erase(Text(file, file.Document(i))), 1U);
  EXPECT_TRUE(texts.empty());
  EXPECT_NEAR(static_cast<double>(file.split(Split::kValidation).documents.size()), 5, 1);
  EXPECT_NEAR(static_cast<double>(file.split(Split::kTest).documents.size()), 5, 1);
  int64_t text_bytes = 0;
  for (const SplitInfo& split : file.info().splits) text_bytes += split.text_bytes;
  EXPECT_EQ(text_bytes, file.info().token_count - 100);

  options.output = folder.Path("same");
  EXPECT_EQ(PrepareData(options).info.content_hash, result.info.content_hash);
  options.output = folder.Path("other");
  options.seed = 1;
  EXPECT_NE(PrepareData(options).info.content_hash, result.info.content_hash);
}

TEST(PrepareData, DescribesItsOutput) {
  const TemporaryFolder folder;
  PrepareOptions options = Options(folder, folder.Write("one.txt", Lines(100, "text")));
  const PrepareResult result = PrepareData(options);
  const Json description = ReadJsonFile(folder.Path("out/data.json"));
  EXPECT_EQ(description["tokens"], result.info.token_count);
  EXPECT_EQ(description["splits"]["train"]["tokens"], result.info.splits[0].tokens.size());
  EXPECT_EQ(description["tokenizer"]["name"], "bytes");
  EXPECT_EQ(description["tokenizer"]["hash"], result.info.tokenizer_hash);
  EXPECT_EQ(description["content_hash"], result.info.content_hash);
  EXPECT_EQ(description["split_rule"], "position");
  EXPECT_EQ(LoadTokenizer(folder.Path("out"))->hash(), result.info.tokenizer_hash);
}

TEST(PrepareData, UsesATokenizer) {
  const TemporaryFolder folder;
  const std::string text = Lines(200, "the beginning");
  PrepareOptions options = Options(folder, folder.Write("one.txt", text));
  options.tokenizer = std::string(AAH_TOKENIZER_CASES) + "/gpt2.json";
  PrepareData(options);
  const TokenFile file = TokenFile::Open(options.output);
  const auto tokenizer = LoadTokenizer(folder.Path("out"));
  EXPECT_EQ(file.info().vocabulary_size, 901);
  EXPECT_EQ(file.info().bytes_per_token, 2);
  EXPECT_EQ(file.info().tokenizer_hash, tokenizer->hash());
  std::vector<int32_t> ids(static_cast<size_t>(file.info().token_count));
  EXPECT_LT(ids.size(), text.size() / 2);
  file.Read(0, std::span(ids));
  EXPECT_EQ(tokenizer->Decode(ids), text);
}

TEST(PrepareData, RefusesBadOptions) {
  const TemporaryFolder folder;
  const PrepareOptions good = Options(folder, folder.Write("one.txt", "some text"));
  const auto refusal = [&](const std::function<void(PrepareOptions&)>& change) {
    PrepareOptions options = good;
    change(options);
    return BadInput([&] { PrepareData(options); });
  };
  EXPECT_THAT(refusal([](auto& o) { o.output = ""; }), HasSubstr("name the folder"));
  EXPECT_THAT(refusal([](auto& o) { o.test_fraction = -0.1; }), HasSubstr("fractions"));
  EXPECT_THAT(refusal([](auto& o) { o.test_fraction = 0.96; }), HasSubstr("fractions"));
  EXPECT_THAT(refusal([](auto& o) { o.test_fraction = 0.0 / 0.0; }), HasSubstr("fractions"));
  EXPECT_THAT(refusal([](auto& o) { o.sources = {"kjv", "x"}; }), HasSubstr("stands alone"));
  EXPECT_THAT(refusal([](auto& o) { o.sources = {"kvj"}; }), HasSubstr("'kjv' or 'pystdlib'"));
  EXPECT_THAT(refusal([](auto& o) { o.tokenizer = "none"; }), HasSubstr("no tokenizer 'none'"));
  const auto by_document = [](PrepareOptions& options, double validation, double test) {
    options.split = SplitRule::kDocument;
    options.validation_fraction = validation;
    options.test_fraction = test;
  };
  EXPECT_THAT(refusal([&](auto& o) { by_document(o, 0.3, 0.0); }),
              HasSubstr("no document is short enough for the validation split of 2 bytes"));
  const std::string other = folder.Write("two.txt", "also text");
  EXPECT_THAT(refusal([&](auto& o) {
                o.sources.push_back(other);
                by_document(o, 0.5, 0.45);
              }),
              HasSubstr("nothing is left to train on in 18 bytes"));
  EXPECT_FALSE(std::filesystem::exists(folder.Path("out/tokens.bin")));
}

TEST(PrepareData, DoesNotOverwriteUnasked) {
  const TemporaryFolder folder;
  PrepareOptions options = Options(folder, folder.Write("one.txt", Lines(100, "text")));
  PrepareData(options);
  const std::string before = ReadFile(folder.Path("out/tokens.bin"));
  EXPECT_THAT(BadInput([&] { PrepareData(options); }), HasSubstr("there is a data set already"));
  EXPECT_EQ(ReadFile(folder.Path("out/tokens.bin")), before);
  options.overwrite = true;
  options.sources = {folder.Write("two.txt", Lines(100, "other"))};
  PrepareData(options);
  EXPECT_NE(ReadFile(folder.Path("out/tokens.bin")), before);
}

TEST(PrepareData, RefusesTheSeparatorInTheText) {
  const TemporaryFolder folder;
  folder.Write("two/a.txt", "fine");
  folder.Write("two/b.txt", std::string("not\0fine", 8));
  EXPECT_THAT(BadInput([&] { PrepareData(Options(folder, folder.Path("two"))); }),
              AllOf(HasSubstr("b.txt"), HasSubstr("end-of-document token 0")));
  EXPECT_FALSE(std::filesystem::exists(folder.Path("out/tokens.bin")));
}

TEST(PrepareData, LeavesNothingWhenStopped) {
  const TemporaryFolder folder;
  const PrepareOptions options = Options(folder, folder.Write("one.txt", "some text\n"));
  EXPECT_THROW(
      PrepareData(options, [](const PrepareProgress&) { throw std::runtime_error("stop"); }),
      std::runtime_error);
  EXPECT_FALSE(std::filesystem::exists(folder.Path("out")));
}

}  // namespace
}  // namespace aah
