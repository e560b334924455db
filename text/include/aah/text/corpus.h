#ifndef AAH_TEXT_CORPUS_H_
#define AAH_TEXT_CORPUS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace aah {

// A sequence of documents of valid UTF-8 text, none empty, no two equal, each at most 1 GiB. Line
// ends are left as they are.
class Corpus {
 public:
  virtual ~Corpus() = default;

  virtual int64_t document_count() const = 0;
  virtual int64_t document_bytes(int64_t index) const = 0;

  // The text; throws aah::Error where its file changed or vanished since the corpus was made.
  virtual std::string Document(int64_t index) const = 0;

  // Where a document comes from: a path, "path:line" for JSONL, or a corpus name.
  virtual std::string Origin(int64_t index) const = 0;

  // Documents left out as exact copies of earlier ones, and as empty.
  int64_t duplicates_dropped() const { return duplicates_dropped_; }
  int64_t empty_dropped() const { return empty_dropped_; }

 protected:
  int64_t duplicates_dropped_ = 0;
  int64_t empty_dropped_ = 0;
};

// The King James Bible as Debian's bible-kjv prints it (`bible -f gen1:1-rev22:21`), one document
// of 4.4 MB. Throws aah::Error that names the package where the program is missing.
std::unique_ptr<Corpus> MakeKjvCorpus();

// The .py files of a Python's standard library, sorted by path, about 10 MB: without site-packages,
// tests and the codec tables in encodings/, exact duplicates dropped; one document a file.
// `python` is the interpreter asked where its library is. Throws aah::Error where it does not run.
std::unique_ptr<Corpus> MakePythonLibraryCorpus(const std::string& python = "python3");

struct FileCorpusOptions {
  // Files and folders. In a folder every file below it counts that ends in .txt, .md, .text, .jsonl
  // or one of `extensions`, hidden ones left out, sorted by path. Files ending in .jsonl give one
  // document a line, every other file is one document.
  std::vector<std::string> paths;
  std::vector<std::string> extensions;  // with the dot
  std::string field = "text";           // the string of each JSONL object that is the document
};

// Throws aah::Error where a path is missing, nothing is found, a text is not UTF-8 (path and
// offset), or a JSONL line has no such field (path and line).
std::unique_ptr<Corpus> MakeFileCorpus(const FileCorpusOptions& options);

}  // namespace aah

#endif  // AAH_TEXT_CORPUS_H_
