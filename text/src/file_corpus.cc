#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aah/error.h"
#include "aah/io/file.h"
#include "aah/io/json.h"
#include "aah/text/corpus.h"
#include "document_set.h"

namespace aah {
namespace {

namespace fs = std::filesystem;

std::string_view AsText(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

class FileCorpus final : public Corpus {
 public:
  FileCorpus(const std::vector<std::string>& paths, std::string field) : field_(std::move(field)) {
    for (const std::string& path : paths) {
      if (path.ends_with(".jsonl")) {
        AddLines(path);
      } else {
        AddWhole(path);
      }
    }
    duplicates_dropped_ = set_.duplicates();
    empty_dropped_ = set_.empty();
  }

  int64_t document_count() const override { return std::ssize(documents_); }
  int64_t document_bytes(int64_t index) const override { return documents_.at(index).bytes; }

  std::string Origin(int64_t index) const override {
    const Entry& entry = documents_.at(index);
    const std::string& path = files_[entry.file].path;
    return entry.line == 0 ? path : path + ":" + std::to_string(entry.line);
  }

  std::string Document(int64_t index) const override {
    const Entry& entry = documents_.at(index);
    const File& file = files_[entry.file];
    const std::string origin = Origin(index);
    std::string text = entry.line == 0
                           ? ReadFile(file.path, kLargestDocument)
                           : Field(AsText(*file.lines).substr(entry.offset, entry.length), origin);
    set_.CheckUnchanged(index, text, origin);
    return text;
  }

 private:
  struct File {
    std::string path;
    std::unique_ptr<MappedFile> lines;  // of JSONL
  };
  struct Entry {
    size_t file;
    int64_t bytes;  // of the text
    int64_t line;   // from 1; 0: the whole file
    size_t offset;  // of the line
    size_t length;
  };

  void AddWhole(const std::string& path) {
    const std::string text = ReadFile(path, kLargestDocument);
    files_.push_back({path, nullptr});
    if (!set_.Admit(text, path)) return;
    documents_.push_back({files_.size() - 1, static_cast<int64_t>(text.size()), 0, 0, 0});
  }

  void AddLines(const std::string& path) {
    files_.push_back({path, std::make_unique<MappedFile>(path)});
    const std::string_view all = AsText(*files_.back().lines);
    int64_t line = 1;
    for (size_t begin = 0; begin < all.size(); ++line) {
      const size_t length = std::min(all.find('\n', begin), all.size()) - begin;
      const std::string_view content = all.substr(begin, length);
      if (content.find_first_not_of(" \t\r") != std::string_view::npos) {
        const std::string origin = path + ":" + std::to_string(line);
        const std::string text = Field(content, origin);
        if (set_.Admit(text, origin)) {
          documents_.push_back(
              {files_.size() - 1, static_cast<int64_t>(text.size()), line, begin, length});
        }
      }
      begin += length + 1;
    }
  }

  std::string Field(std::string_view line, const std::string& origin) const {
    const Json object = ParseJson(line, origin);
    AAH_CHECK(object.is_object(), origin, ": expected a JSON object on each line, got ",
              DescribeJson(object));
    return JsonMember<std::string>(object, field_, origin);
  }

  std::string field_;
  std::vector<File> files_;
  std::vector<Entry> documents_;
  DocumentSet set_;
};

std::vector<std::string> CollectPaths(const FileCorpusOptions& options) {
  std::vector<std::string> extensions = {".txt", ".md", ".text", ".jsonl"};
  extensions.insert(extensions.end(), options.extensions.begin(), options.extensions.end());
  const auto take = [&](const std::string& name) {
    return std::ranges::any_of(extensions,
                               [&](const std::string& end) { return name.ends_with(end); });
  };
  std::vector<std::string> paths;
  for (const std::string& path : options.paths) {
    std::error_code ignored;
    AAH_CHECK(fs::exists(path, ignored), path,
              ": there is no such file or folder; a source is a path, 'kjv' or 'pystdlib'");
    if (!fs::is_directory(path, ignored)) {
      paths.push_back(path);
      continue;
    }
    const auto below = ListFiles(path, [](const std::string&) { return true; }, take);
    AAH_CHECK(!below.empty(), path,
              ": no file in this folder ends in .txt, .md, .text, .jsonl or a "
              "further extension that was named");
    paths.insert(paths.end(), below.begin(), below.end());
  }
  return paths;
}

}  // namespace

std::unique_ptr<Corpus> MakeFileCorpus(const FileCorpusOptions& options) {
  AAH_CHECK(!options.paths.empty(), "there is no text: name files, folders, 'kjv' or 'pystdlib'");
  auto corpus = std::make_unique<FileCorpus>(CollectPaths(options), options.field);
  AAH_CHECK(corpus->document_count() > 0, options.paths.front(),
            ": there is no text in the sources named");
  return corpus;
}

}  // namespace aah
