#ifndef AAH_TEXT_TOKEN_FILE_H_
#define AAH_TEXT_TOKEN_FILE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace aah {

enum class Split : int { kTrain = 0, kValidation = 1, kTest = 2 };
inline constexpr int kSplitCount = 3;

// "train", "validation", "test".
std::string_view SplitName(Split split);

// A half-open range of token positions.
struct TokenRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

// One part of a token file: whole documents, one after another.
struct SplitInfo {
  TokenRange tokens;
  TokenRange documents;  // document indexes, not positions
  int64_t text_bytes =
      0;  // bytes of UTF-8 text the split's tokens stand for, separators not counted
};

// Which predictions of a document count, where the rest of it is noise that no model can predict:
// generated tasks. Prediction p is that of token p + 1 from tokens 0 to p. Every document then has
// context + 1 tokens and is one stretch.
struct ScoredPredictions {
  int64_t context = 0;
  int64_t first = 0;  // predictions first, first + step, ..., `count` of them, all below context
  int64_t step = 0;   // 1 to context
  int64_t count = 0;  // >= 1

  std::vector<int64_t> Positions() const;  // [count], rising
  bool operator==(const ScoredPredictions&) const = default;
};

// What a token file says about itself.
struct TokenFileInfo {
  int bytes_per_token = 0;  // 1, 2 or 4, unsigned
  int64_t token_count = 0;
  int64_t document_count = 0;
  int32_t vocabulary_size = 0;
  // The id written after each document; counted in its document. None: documents are bare.
  std::optional<int32_t> end_of_document;
  std::array<SplitInfo, kSplitCount> splits;  // in order, without gap or overlap, over all tokens
  std::string tokenizer_name;
  std::string tokenizer_hash;  // 64 hexadecimal digits, Tokenizer::hash()
  std::string content_hash;    // 64 hexadecimal digits, SHA-256 over tokens and document bounds
  std::optional<ScoredPredictions> scored;  // none: every prediction counts
};

// A memory-mapped token file, read only. Safe to use from several threads at once.
//
// Layout, little-endian: a header of 512 bytes with its own SHA-256; the tokens; zeros up to a
// multiple of 8; the document bounds, uint64 [document_count + 1], from 0 to token_count.
class TokenFile {
 public:
  // `path` is a token file, or a folder made by PrepareData. Checks magic, version, header hash,
  // every count against the file's size, and that splits and documents tile the tokens; does not
  // read the tokens. Throws aah::Error: what was expected, what came.
  static TokenFile Open(const std::string& path);

  // The same over memory that the caller keeps alive; `origin` names it in messages.
  static TokenFile FromMemory(std::span<const std::byte> bytes, const std::string& origin);

  TokenFile(TokenFile&&) noexcept;
  TokenFile& operator=(TokenFile&&) noexcept;
  ~TokenFile();

  const TokenFileInfo& info() const { return info_; }
  const SplitInfo& split(Split split) const { return info_.splits[static_cast<int>(split)]; }
  const std::string& path() const { return origin_; }

  // Tokens [begin, begin + out.size()). Throws aah::Error where the range leaves the file or an id
  // is not below vocabulary_size: each stretch is checked as it is read.
  void Read(int64_t begin, std::span<int32_t> out) const;
  void Read(int64_t begin, std::span<int64_t> out) const;

  // Document `index`, its end-of-document token included.
  TokenRange Document(int64_t index) const;

  // Reads everything; throws aah::Error unless all ids are valid and content_hash holds.
  void VerifyContent() const;

 private:
  struct Mapping;
  TokenFile();
  template <typename Id>
  void ReadAs(int64_t begin, std::span<Id> out) const;

  std::unique_ptr<Mapping> mapping_;  // null over memory of the caller's
  std::string origin_;
  TokenFileInfo info_;
  std::span<const std::byte> bounds_;
  std::span<const std::byte> tokens_;
};

// Writes a token file: documents in order, split by split. Nothing is at `path` until Finish, which
// renames the finished file into place; destruction before that leaves nothing behind.
class TokenFileWriter {
 public:
  struct Options {
    std::string path;
    int32_t vocabulary_size = 0;  // >= 1; decides bytes_per_token
    std::optional<int32_t> end_of_document;
    std::string tokenizer_name;                    // at most 63 bytes
    std::string tokenizer_hash;                    // 64 hexadecimal digits
    std::optional<ScoredPredictions> scored = {};  // none: every prediction counts
  };

  // Throws aah::Error for bad options or a folder that is not writable.
  explicit TokenFileWriter(const Options& options);
  ~TokenFileWriter();
  TokenFileWriter(const TokenFileWriter&) = delete;
  TokenFileWriter& operator=(const TokenFileWriter&) = delete;

  // Appends one document of `split` and, where the file has one, the end-of-document token. Splits
  // come in order: train, validation, test. Throws aah::Error for ids outside the vocabulary, and
  // for a document of another length than `scored` asks for.
  void AddDocument(Split split, std::span<const int32_t> ids, int64_t text_bytes);

  // Completes the file and returns what its header says.
  TokenFileInfo Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace aah

#endif  // AAH_TEXT_TOKEN_FILE_H_
