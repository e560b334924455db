#ifndef AAH_TEXT_SRC_TOKEN_FILE_FORMAT_H_
#define AAH_TEXT_SRC_TOKEN_FILE_FORMAT_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "aah/text/sha256.h"
#include "aah/text/token_file.h"

namespace aah::token_file_format {

static_assert(std::endian::native == std::endian::little,
              "token files are little-endian and are read in place");

inline constexpr std::array<char, 8> kMagic = {'A', 'A', 'H', 'T', 'O', 'K', 'N', 'S'};
inline constexpr uint32_t kVersion = 1;
inline constexpr int64_t kNoEndOfDocument = -1;
inline constexpr size_t kNameBytes = 64;

struct SplitRecord {
  uint64_t first_token = 0;
  uint64_t first_document = 0;
  uint64_t text_bytes = 0;
};

// ScoredPredictions; all zero where every prediction counts.
struct ScoredRecord {
  uint64_t context = 0;
  uint64_t first = 0;
  uint64_t step = 0;
  uint64_t count = 0;
  bool operator==(const ScoredRecord&) const = default;
};

// The header as it lies in the file. A split ends where the next one begins.
struct Header {
  std::array<char, 8> magic = kMagic;
  uint32_t version = kVersion;
  uint32_t bytes_per_token = 0;
  uint64_t token_count = 0;
  uint64_t document_count = 0;
  uint64_t vocabulary_size = 0;
  int64_t end_of_document = kNoEndOfDocument;
  std::array<SplitRecord, kSplitCount> splits = {};
  std::array<char, kNameBytes> tokenizer_name = {};  // padded with zeros, at least one
  Sha256::Digest tokenizer_hash = {};
  Sha256::Digest content_hash = {};
  ScoredRecord scored = {};
  std::array<std::byte, 200> reserved = {};
  Sha256::Digest header_hash = {};  // of all bytes before it
};
static_assert(sizeof(Header) == 512);

inline constexpr uint64_t kHeaderBytes = sizeof(Header);
inline constexpr uint64_t kHashedHeaderBytes = offsetof(Header, header_hash);

// The end of the tokens, rounded up so that the document bounds are aligned.
inline uint64_t BoundsOffset(uint64_t token_count, uint64_t bytes_per_token) {
  return (kHeaderBytes + token_count * bytes_per_token + 7) / 8 * 8;
}

inline uint32_t BytesPerToken(uint64_t vocabulary_size) {
  if (vocabulary_size <= 1U + std::numeric_limits<uint8_t>::max()) return 1;
  if (vocabulary_size <= 1U + std::numeric_limits<uint16_t>::max()) return 2;
  return 4;
}

// Whether the record names predictions of a document of context + 1 tokens, or none at all.
inline bool IsValid(const ScoredRecord& scored) {
  if (scored == ScoredRecord{}) return true;
  return scored.context < std::numeric_limits<uint32_t>::max() && scored.first < scored.context &&
         scored.step >= 1 && scored.step <= scored.context && scored.count >= 1 &&
         scored.count - 1 <= (scored.context - 1 - scored.first) / scored.step;
}

// What the header says, in the public form. The header must have been checked.
TokenFileInfo ToInfo(const Header& header);

}  // namespace aah::token_file_format

#endif  // AAH_TEXT_SRC_TOKEN_FILE_FORMAT_H_
