#include <algorithm>
#include <cstring>
#include <limits>

#include "aah/error.h"
#include "aah/io/file.h"
#include "aah/text/sha256.h"
#include "aah/text/token_file.h"
#include "token_file_format.h"

namespace aah {

using token_file_format::Header;

struct TokenFileWriter::State {
  explicit State(const std::string& path) : file(path) {}

  AtomicFileWriter file;
  Header header;
  Sha256 content;
  std::vector<uint64_t> bounds = {0};
  int current_split = 0;
  std::vector<std::byte> buffer;

  // Opens splits up to `split` at the present position.
  void AdvanceTo(int split) {
    while (current_split < split) {
      ++current_split;
      header.splits[current_split].first_token = header.token_count;
      header.splits[current_split].first_document = header.document_count;
    }
  }

  void WriteHashed(std::span<const std::byte> bytes) {
    content.Add(bytes);
    file.Write(bytes);
  }

  // Appends the low bytes of each id to `buffer`.
  void Pack(std::span<const int32_t> ids) {
    for (const int32_t id : ids) {
      std::array<std::byte, sizeof(id)> bytes;
      std::memcpy(bytes.data(), &id, sizeof(id));
      buffer.insert(buffer.end(), bytes.begin(), bytes.begin() + header.bytes_per_token);
    }
  }
};

TokenFileWriter::TokenFileWriter(const Options& options) {
  AAH_CHECK(options.vocabulary_size >= 1, "a token file needs a vocabulary of at least 1 id, got ",
            options.vocabulary_size);
  const int32_t end = options.end_of_document.value_or(0);
  AAH_CHECK(end >= 0 && end < options.vocabulary_size, "the end-of-document id ", end,
            " is not in a vocabulary of ", options.vocabulary_size);
  AAH_CHECK(options.tokenizer_name.size() < token_file_format::kNameBytes,
            "a tokenizer's name has at most ", token_file_format::kNameBytes - 1, " bytes, '",
            options.tokenizer_name, "' has ", options.tokenizer_name.size());
  token_file_format::ScoredRecord record;
  if (options.scored) {
    const ScoredPredictions& scored = *options.scored;
    record = {.context = static_cast<uint64_t>(scored.context),
              .first = static_cast<uint64_t>(scored.first),
              .step = static_cast<uint64_t>(scored.step),
              .count = static_cast<uint64_t>(scored.count)};
    AAH_CHECK(record.count > 0 && token_file_format::IsValid(record), scored.count,
              " scored predictions from ", scored.first, " in steps of ", scored.step,
              " are not in a context of ", scored.context);
  }
  const Sha256::Digest tokenizer_hash = FromHex(options.tokenizer_hash);

  state_ = std::make_unique<State>(options.path);
  Header& header = state_->header;
  header.vocabulary_size = static_cast<uint64_t>(options.vocabulary_size);
  header.bytes_per_token = token_file_format::BytesPerToken(header.vocabulary_size);
  if (options.end_of_document) header.end_of_document = *options.end_of_document;
  header.scored = record;
  std::ranges::copy(options.tokenizer_name, header.tokenizer_name.begin());
  header.tokenizer_hash = tokenizer_hash;
  // Its place; the figures are known last.
  state_->file.Write(std::as_bytes(std::span(&header, 1)));
}

TokenFileWriter::~TokenFileWriter() = default;

void TokenFileWriter::AddDocument(Split split, std::span<const int32_t> ids, int64_t text_bytes) {
  Header& header = state_->header;
  AAH_CHECK(static_cast<int>(split) >= state_->current_split,
            "documents come split by split: ", SplitName(split), " after ",
            SplitName(static_cast<Split>(state_->current_split)));
  AAH_CHECK(!ids.empty() && text_bytes >= 0, "a document holds at least one token");
  for (const int32_t id : ids) {
    AAH_CHECK(id >= 0 && id < static_cast<int64_t>(header.vocabulary_size), "token id ", id,
              " is not in a vocabulary of ", header.vocabulary_size);
  }
  state_->AdvanceTo(static_cast<int>(split));
  state_->buffer.clear();
  state_->Pack(ids);
  if (header.end_of_document != token_file_format::kNoEndOfDocument) {
    const auto end = static_cast<int32_t>(header.end_of_document);
    state_->Pack({&end, 1});
  }
  const uint64_t size = state_->buffer.size() / header.bytes_per_token;
  AAH_CHECK(header.scored.count == 0 || size == header.scored.context + 1, "a document of ", size,
            " tokens is not the ", header.scored.context + 1,
            " that a context and its last target make");
  state_->WriteHashed(state_->buffer);
  header.token_count += size;
  header.document_count += 1;
  header.splits[static_cast<int>(split)].text_bytes += static_cast<uint64_t>(text_bytes);
  state_->bounds.push_back(header.token_count);
}

TokenFileInfo TokenFileWriter::Finish() {
  Header& header = state_->header;
  state_->AdvanceTo(kSplitCount - 1);
  const uint64_t written = static_cast<uint64_t>(state_->file.bytes_written());
  const std::array<std::byte, 8> zeros = {};
  const uint64_t padding =
      token_file_format::BoundsOffset(header.token_count, header.bytes_per_token) - written;
  state_->file.Write(std::span(zeros).first(padding));
  state_->WriteHashed(std::as_bytes(std::span(state_->bounds)));
  header.content_hash = state_->content.Finish();
  const auto bytes = std::as_bytes(std::span(&header, 1));
  header.header_hash = Sha256Of(bytes.first(token_file_format::kHashedHeaderBytes));
  state_->file.WriteAt(0, bytes);
  state_->file.Commit();
  return token_file_format::ToInfo(header);
}

}  // namespace aah
