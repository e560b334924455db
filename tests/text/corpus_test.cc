#include "aah/text/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "aah/text/utf8.h"
#include "tests/text/test_support.h"

namespace aah {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> Documents(const Corpus& corpus) {
  std::vector<std::string> documents;
  for (int64_t i = 0; i < corpus.document_count(); ++i) {
    documents.push_back(corpus.Document(i));
    EXPECT_EQ(corpus.document_bytes(i), std::ssize(documents.back())) << corpus.Origin(i);
  }
  return documents;
}

TEST(FileCorpus, ReadsFilesAndFolders) {
  const TemporaryFolder folder;
  folder.Write("b.txt", "second\r\n");
  folder.Write("a.md", "first");
  folder.Write("a/deep.text", "deep");
  folder.Write("copy.txt", "first");
  folder.Write("empty.txt", "");
  folder.Write("program.py", "print()");
  folder.Write(".hidden.txt", "hidden");
  folder.Write(".git/x.txt", "hidden");
  const auto corpus = MakeFileCorpus({.paths = {folder.Path("")}, .extensions = {}, .field = ""});
  EXPECT_THAT(Documents(*corpus), ElementsAre("first", "deep", "second\r\n"));
  EXPECT_EQ(corpus->duplicates_dropped(), 1);
  EXPECT_EQ(corpus->empty_dropped(), 1);
  const auto with_code = MakeFileCorpus(
      {.paths = {folder.Path("program.py"), folder.Path("a")}, .extensions = {}, .field = ""});
  EXPECT_THAT(Documents(*with_code), ElementsAre("print()", "deep"));
  EXPECT_EQ(with_code->Origin(0), folder.Path("program.py"));
  const auto extended =
      MakeFileCorpus({.paths = {folder.Path("")}, .extensions = {".py"}, .field = ""});
  EXPECT_EQ(extended->document_count(), 4);
}

TEST(FileCorpus, ReadsAFieldOfJsonLines) {
  const TemporaryFolder folder;
  const std::string path = folder.Write(
      "d.jsonl",
      "{\"body\": \"one\\nline \\u00e9\", \"n\": 1}\n\n{\"body\": \"\"}\r\n{\"body\": \"two\"}");
  const auto corpus = MakeFileCorpus({.paths = {path}, .extensions = {}, .field = "body"});
  EXPECT_THAT(Documents(*corpus), ElementsAre("one\nline \u00e9", "two"));
  EXPECT_EQ(corpus->Origin(1), path + ":4");
  EXPECT_EQ(corpus->empty_dropped(), 1);
  EXPECT_THAT(
      BadInput([&] { MakeFileCorpus({.paths = {path}, .extensions = {}, .field = "text"}); }),
      AllOf(HasSubstr("d.jsonl:1"), HasSubstr("text")));
  folder.Write("d.jsonl", "{\"body\": \"x\"}\n{\"body\": 3}\n");
  EXPECT_THAT(
      BadInput([&] { MakeFileCorpus({.paths = {path}, .extensions = {}, .field = "body"}); }),
      HasSubstr("d.jsonl:2"));
  folder.Write("d.jsonl", "{\"body\": \"x\"}\n[1]\n");
  EXPECT_THAT(
      BadInput([&] { MakeFileCorpus({.paths = {path}, .extensions = {}, .field = "body"}); }),
      HasSubstr("d.jsonl:2: expected a JSON object on each line"));
  folder.Write("d.jsonl", "{\"body\": \"x\"");
  EXPECT_THAT(
      BadInput([&] { MakeFileCorpus({.paths = {path}, .extensions = {}, .field = "body"}); }),
      HasSubstr("d.jsonl:1"));
}

TEST(FileCorpus, RefusesBadSources) {
  const TemporaryFolder folder;
  const auto refusal = [](std::vector<std::string> paths) {
    return BadInput(
        [&] { MakeFileCorpus({.paths = std::move(paths), .extensions = {}, .field = "text"}); });
  };
  EXPECT_THAT(refusal({}), HasSubstr("there is no text: name files"));
  EXPECT_THAT(refusal({folder.Path("none.txt")}), HasSubstr("there is no such file or folder"));
  EXPECT_THAT(refusal({folder.Path("")}), HasSubstr("no file in this folder ends in .txt"));
  EXPECT_THAT(refusal({folder.Write("bad.txt", "ab\xff")}),
              HasSubstr("bad.txt: expected UTF-8 text, byte 2"));
  EXPECT_THAT(refusal({folder.Write("empty.txt", "")}), HasSubstr("there is no text"));
}

TEST(FileCorpus, NoticesAChangeBehindItsBack) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("a.txt", "before");
  const auto corpus = MakeFileCorpus({.paths = {path}, .extensions = {}, .field = ""});
  folder.Write("a.txt", "behind");
  EXPECT_THAT(BadInput([&] { corpus->Document(0); }), HasSubstr("changed while it was being read"));
}

TEST(PythonLibraryCorpus, HoldsTheLibraryWithoutTests) {
  const auto corpus = MakePythonLibraryCorpus();
  ASSERT_GT(corpus->document_count(), 200);
  int64_t bytes = 0;
  std::set<std::string> names;
  std::string previous;
  for (int64_t i = 0; i < corpus->document_count(); ++i) {
    bytes += corpus->document_bytes(i);
    const std::string path = corpus->Origin(i);
    EXPECT_LT(previous, path);
    previous = path;
    names.insert(std::filesystem::path(path).filename().string());
    for (const char* part : {"/test/", "/tests/", "/encodings/", "/site-packages/"}) {
      EXPECT_EQ(path.find(part), std::string::npos) << path;
    }
  }
  EXPECT_GT(bytes, 5'000'000);
  EXPECT_TRUE(names.contains("argparse.py"));
  EXPECT_THAT(corpus->Document(0), testing::Not(testing::IsEmpty()));
  EXPECT_THAT(BadInput([] { MakePythonLibraryCorpus("no-such-python"); }),
              HasSubstr("cannot run 'no-such-python'"));
  EXPECT_THAT(BadInput([] { MakePythonLibraryCorpus("false"); }), HasSubstr("status 1"));
}

// Only where the Debian package is; elsewhere the message must name it.
TEST(KjvCorpus, IsTheBibleOrNamesThePackage) {
  std::unique_ptr<Corpus> corpus;
  try {
    corpus = MakeKjvCorpus();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadInput);
    EXPECT_THAT(error.what(), HasSubstr("apt-get install bible-kjv"));
    return;
  }
  ASSERT_EQ(corpus->document_count(), 1);
  EXPECT_EQ(corpus->document_bytes(0), 4404412);
  const std::string text = corpus->Document(0);
  EXPECT_TRUE(text.starts_with("Ge1:1 In the beginning God created the heaven and the earth.\n"));
  EXPECT_TRUE(text.ends_with("be with you all. Amen.\n"));
}

}  // namespace
}  // namespace aah
