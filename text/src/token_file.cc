#include "aah/text/token_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "aah/error.h"
#include "aah/io/file.h"
#include "aah/text/sha256.h"
#include "token_file_format.h"

namespace aah {
namespace {

using token_file_format::BoundsOffset;
using token_file_format::Header;
using token_file_format::kHeaderBytes;
using token_file_format::SplitRecord;

constexpr std::string_view kRemedy = "; write it again with `aah data prepare`";

uint64_t LoadBound(std::span<const std::byte> bounds, uint64_t index) {
  uint64_t value;
  std::memcpy(&value, bounds.data() + index * sizeof(value), sizeof(value));
  return value;
}

Header LoadHeader(std::span<const std::byte> bytes, const std::string& origin) {
  AAH_CHECK(bytes.size() >= kHeaderBytes, origin, ": expected a token file of at least ",
            kHeaderBytes, " bytes, got ", bytes.size(), kRemedy);
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  AAH_CHECK(header.magic == token_file_format::kMagic, origin,
            ": this is not a token file; make one with `aah data prepare`");
  AAH_CHECK(header.version == token_file_format::kVersion, origin, ": expected token file version ",
            token_file_format::kVersion, ", got ", header.version, kRemedy);
  AAH_CHECK(Sha256Of(bytes.first(token_file_format::kHashedHeaderBytes)) == header.header_hash,
            origin, ": the header is damaged, its hash does not hold", kRemedy);
  return header;
}

void CheckCounts(const Header& header, uint64_t file_size, const std::string& origin) {
  const uint64_t largest_vocabulary = std::numeric_limits<int32_t>::max();
  AAH_CHECK(header.vocabulary_size >= 1 && header.vocabulary_size <= largest_vocabulary, origin,
            ": expected a vocabulary of 1 to ", largest_vocabulary, " ids, got ",
            header.vocabulary_size, kRemedy);
  const uint32_t bytes_per_token = token_file_format::BytesPerToken(header.vocabulary_size);
  AAH_CHECK(header.bytes_per_token == bytes_per_token, origin, ": expected ", bytes_per_token,
            " bytes a token for a vocabulary of ", header.vocabulary_size, ", got ",
            header.bytes_per_token, kRemedy);
  AAH_CHECK(header.end_of_document >= token_file_format::kNoEndOfDocument &&
                header.end_of_document < static_cast<int64_t>(header.vocabulary_size),
            origin, ": the end-of-document id ", header.end_of_document,
            " is not in a vocabulary of ", header.vocabulary_size, kRemedy);
  // Each count alone against the size first, so that the products below cannot wrap.
  const bool plausible = header.token_count <= file_size && header.document_count < file_size;
  const uint64_t expected = plausible ? BoundsOffset(header.token_count, bytes_per_token) +
                                            (header.document_count + 1) * sizeof(uint64_t)
                                      : 0;
  AAH_CHECK(plausible && expected == file_size, origin, ": ", header.token_count, " tokens and ",
            header.document_count, " documents do not make a file of ", file_size,
            " bytes; it was cut short or damaged", kRemedy);
  AAH_CHECK(header.tokenizer_name.back() == '\0', origin, ": the tokenizer's name has no end",
            kRemedy);
}

void CheckScored(const Header& header, std::span<const std::byte> bounds,
                 const std::string& origin) {
  const token_file_format::ScoredRecord& scored = header.scored;
  AAH_CHECK(token_file_format::IsValid(scored), origin, ": ", scored.count,
            " scored predictions from ", scored.first, " in steps of ", scored.step,
            " are not in a context of ", scored.context, kRemedy);
  if (scored.count == 0) return;
  for (uint64_t i = 0; i < header.document_count; ++i) {
    const uint64_t size = LoadBound(bounds, i + 1) - LoadBound(bounds, i);
    AAH_CHECK(size == scored.context + 1, origin, ": document ", i, " has ", size,
              " tokens, not the ", scored.context + 1, " of a context and its last target",
              kRemedy);
  }
}

void CheckBounds(const Header& header, std::span<const std::byte> bounds,
                 const std::string& origin) {
  bool rising =
      LoadBound(bounds, 0) == 0 && LoadBound(bounds, header.document_count) == header.token_count;
  for (uint64_t i = 0; rising && i < header.document_count; ++i) {
    rising = LoadBound(bounds, i) < LoadBound(bounds, i + 1);
  }
  AAH_CHECK(rising, origin, ": the document bounds do not rise from 0 to ", header.token_count,
            kRemedy);
}

void CheckSplits(const Header& header, std::span<const std::byte> bounds,
                 const std::string& origin) {
  uint64_t previous_document = 0;
  for (const SplitRecord& split : header.splits) {
    const bool valid = split.first_document >= previous_document &&
                       split.first_document <= header.document_count &&
                       split.first_token == LoadBound(bounds, split.first_document) &&
                       split.text_bytes <= std::numeric_limits<int64_t>::max();
    AAH_CHECK(valid, origin, ": the splits do not follow one another at document bounds", kRemedy);
    previous_document = split.first_document;
  }
  AAH_CHECK(header.splits[0].first_document == 0, origin,
            ": the training split does not begin at the first document", kRemedy);
}

// Copies `out.size()` stored ids and returns the largest: one pass the compiler vectorises.
template <typename Stored, typename Id>
uint32_t CopyTokens(const std::byte* source, std::span<Id> out) {
  uint32_t largest = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, source + i * sizeof(Stored), sizeof(Stored));
    largest = std::max(largest, static_cast<uint32_t>(stored));
    out[i] = static_cast<Id>(stored);
  }
  return largest;
}

}  // namespace

std::string_view SplitName(Split split) {
  constexpr std::array<std::string_view, kSplitCount> kNames = {"train", "validation", "test"};
  return kNames[static_cast<size_t>(split)];
}

std::vector<int64_t> ScoredPredictions::Positions() const {
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < count; ++i) positions.push_back(first + i * step);
  return positions;
}

TokenFileInfo token_file_format::ToInfo(const Header& header) {
  TokenFileInfo info;
  info.bytes_per_token = static_cast<int>(header.bytes_per_token);
  info.token_count = static_cast<int64_t>(header.token_count);
  info.document_count = static_cast<int64_t>(header.document_count);
  info.vocabulary_size = static_cast<int32_t>(header.vocabulary_size);
  if (header.end_of_document != kNoEndOfDocument) {
    info.end_of_document = static_cast<int32_t>(header.end_of_document);
  }
  for (size_t i = 0; i < kSplitCount; ++i) {
    const bool last = i + 1 == kSplitCount;
    SplitInfo& split = info.splits[i];
    split.tokens.begin = static_cast<int64_t>(header.splits[i].first_token);
    split.documents.begin = static_cast<int64_t>(header.splits[i].first_document);
    split.tokens.end =
        last ? info.token_count : static_cast<int64_t>(header.splits[i + 1].first_token);
    split.documents.end =
        last ? info.document_count : static_cast<int64_t>(header.splits[i + 1].first_document);
    split.text_bytes = static_cast<int64_t>(header.splits[i].text_bytes);
  }
  info.tokenizer_name = header.tokenizer_name.data();
  info.tokenizer_hash = ToHex(header.tokenizer_hash);
  info.content_hash = ToHex(header.content_hash);
  if (header.scored.count > 0) {
    info.scored = {.context = static_cast<int64_t>(header.scored.context),
                   .first = static_cast<int64_t>(header.scored.first),
                   .step = static_cast<int64_t>(header.scored.step),
                   .count = static_cast<int64_t>(header.scored.count)};
  }
  return info;
}

struct TokenFile::Mapping {
  MappedFile file;
};

TokenFile::TokenFile() = default;
TokenFile::TokenFile(TokenFile&&) noexcept = default;
TokenFile& TokenFile::operator=(TokenFile&&) noexcept = default;
TokenFile::~TokenFile() = default;

TokenFile TokenFile::Open(const std::string& path) {
  std::error_code ignored;  // MappedFile says what is wrong with a path that cannot be asked
  const std::string file_path = std::filesystem::is_directory(path, ignored)
                                    ? (std::filesystem::path(path) / "tokens.bin").string()
                                    : path;
  auto mapping = std::make_unique<Mapping>(Mapping{MappedFile(file_path)});
  TokenFile file = FromMemory(mapping->file.bytes(), file_path);
  file.mapping_ = std::move(mapping);
  return file;
}

TokenFile TokenFile::FromMemory(std::span<const std::byte> bytes, const std::string& origin) {
  const Header header = LoadHeader(bytes, origin);
  CheckCounts(header, bytes.size(), origin);
  TokenFile file;
  file.tokens_ = bytes.subspan(kHeaderBytes, header.token_count * header.bytes_per_token);
  file.bounds_ = bytes.subspan(BoundsOffset(header.token_count, header.bytes_per_token));
  CheckBounds(header, file.bounds_, origin);
  CheckSplits(header, file.bounds_, origin);
  CheckScored(header, file.bounds_, origin);
  file.origin_ = origin;
  file.info_ = token_file_format::ToInfo(header);
  return file;
}

template <typename Id>
void TokenFile::ReadAs(int64_t begin, std::span<Id> out) const {
  const auto count = static_cast<int64_t>(out.size());
  AAH_CHECK(begin >= 0 && count <= info_.token_count && begin <= info_.token_count - count, origin_,
            ": expected a stretch within ", info_.token_count, " tokens, got ", count,
            " tokens from ", begin);
  if (count == 0) return;
  const std::byte* source = tokens_.data() + begin * info_.bytes_per_token;
  uint32_t largest = 0;
  switch (info_.bytes_per_token) {
    case 1:
      largest = CopyTokens<uint8_t>(source, out);
      break;
    case 2:
      largest = CopyTokens<uint16_t>(source, out);
      break;
    default:
      largest = CopyTokens<uint32_t>(source, out);
  }
  AAH_CHECK(largest < static_cast<uint32_t>(info_.vocabulary_size), origin_, ": token id ", largest,
            " among tokens ", begin, " to ", begin + count, " is not below the vocabulary size ",
            info_.vocabulary_size, kRemedy);
}

void TokenFile::Read(int64_t begin, std::span<int32_t> out) const { ReadAs(begin, out); }
void TokenFile::Read(int64_t begin, std::span<int64_t> out) const { ReadAs(begin, out); }

TokenRange TokenFile::Document(int64_t index) const {
  AAH_CHECK(index >= 0 && index < info_.document_count, origin_, ": there is no document ", index,
            " in a file of ", info_.document_count);
  return {static_cast<int64_t>(LoadBound(bounds_, index)),
          static_cast<int64_t>(LoadBound(bounds_, index + 1))};
}

void TokenFile::VerifyContent() const {
  std::vector<int32_t> stretch(1 << 16);
  for (int64_t begin = 0; begin < info_.token_count;) {
    const int64_t count = std::min<int64_t>(std::ssize(stretch), info_.token_count - begin);
    Read(begin, std::span(stretch).first(count));
    begin += count;
  }
  Sha256 hash;
  hash.Add(tokens_);
  hash.Add(bounds_);
  const std::string found = ToHex(hash.Finish());
  AAH_CHECK(found == info_.content_hash, origin_, ": the content is damaged: expected SHA-256 ",
            info_.content_hash, ", got ", found, kRemedy);
}

}  // namespace aah
