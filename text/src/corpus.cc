#include "aah/text/corpus.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "aah/error.h"
#include "aah/io/file.h"
#include "document_set.h"
#include "run_program.h"

namespace aah {
namespace {

class OneText final : public Corpus {
 public:
  OneText(std::string text, std::string origin)
      : text_(std::move(text)), origin_(std::move(origin)) {
    DocumentSet set;
    AAH_CHECK(set.Admit(text_, origin_), origin_, ": the text is empty");
  }

  int64_t document_count() const override { return 1; }
  int64_t document_bytes(int64_t) const override { return static_cast<int64_t>(text_.size()); }
  std::string Document(int64_t) const override { return text_; }
  std::string Origin(int64_t) const override { return origin_; }

 private:
  std::string text_;
  std::string origin_;
};

// One document a file.
class WholeFiles final : public Corpus {
 public:
  explicit WholeFiles(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      const std::string text = ReadFile(path, kLargestDocument);
      if (!set_.Admit(text, path)) continue;
      documents_.push_back({path, static_cast<int64_t>(text.size())});
    }
    duplicates_dropped_ = set_.duplicates();
    empty_dropped_ = set_.empty();
  }

  int64_t document_count() const override { return std::ssize(documents_); }
  int64_t document_bytes(int64_t index) const override { return documents_.at(index).bytes; }
  std::string Origin(int64_t index) const override { return documents_.at(index).path; }
  std::string Document(int64_t index) const override {
    const std::string& path = documents_.at(index).path;
    std::string text = ReadFile(path, kLargestDocument);
    set_.CheckUnchanged(index, text, path);
    return text;
  }

 private:
  struct File {
    std::string path;
    int64_t bytes;
  };
  std::vector<File> documents_;
  DocumentSet set_;
};

}  // namespace

std::unique_ptr<Corpus> MakeKjvCorpus() {
  return std::make_unique<OneText>(
      RunProgram({"bible", "-f", "gen1:1-rev22:21"},
                 "the corpus 'kjv' needs the Debian packages bible-kjv and bible-kjv-text: "
                 "apt-get install bible-kjv"),
      "kjv");
}

std::unique_ptr<Corpus> MakePythonLibraryCorpus(const std::string& python) {
  std::string folder =
      RunProgram({python, "-c", "import sysconfig; print(sysconfig.get_paths()['stdlib'])"},
                 "the corpus 'pystdlib' needs Python: apt-get install python3");
  while (folder.ends_with('\n')) folder.pop_back();
  constexpr auto kLeftOut = std::to_array<std::string_view>(
      {"site-packages", "dist-packages", "test", "tests", "idle_test", "encodings", "__pycache__"});
  const auto enter = [&](const std::string& name) {
    return std::ranges::find(kLeftOut, name) == kLeftOut.end();
  };
  const auto take = [](const std::string& name) { return name.ends_with(".py"); };
  auto corpus = std::make_unique<WholeFiles>(ListFiles(folder, enter, take));
  AAH_CHECK(corpus->document_count() > 0, folder, ": there are no .py files in the library of '",
            python, "'; name another Python");
  return corpus;
}

}  // namespace aah
