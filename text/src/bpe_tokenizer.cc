#include "bpe_tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>
#include <utility>

#include "aah/error.h"
#include "aah/io/file.h"
#include "aah/text/utf8.h"
#include "added_tokens.h"
#include "bpe.h"
#include "byte_level.h"
#include "nfc.h"
#include "pre_tokenizer.h"

namespace aah {
namespace {

// Pieces one call to Encode remembers, so that frequent words are joined once.
constexpr size_t kRememberedPieces = size_t{1} << 16U;
constexpr size_t kLongestRemembered = 64;

AddedTokens SelectAdded(const TokenizerDescription& description, bool normalized) {
  std::vector<AddedToken> tokens;
  std::vector<std::string> contents;
  for (const AddedToken& token : description.added_tokens) {
    if (token.normalized != normalized) continue;
    tokens.push_back(token);
    const bool compose = normalized && description.normalize_nfc;
    contents.push_back(compose ? NormalizeNfc(token.content) : token.content);
  }
  return {std::move(tokens), std::move(contents)};
}

class BpeTokenizer final : public Tokenizer {
 public:
  BpeTokenizer(TokenizerDescription description, std::string json)
      : bpe_(description),
        pre_tokenizer_(description),
        as_written_(SelectAdded(description, false)),
        as_normalized_(SelectAdded(description, true)),
        normalize_nfc_(description.normalize_nfc),
        hash_(description.Hash()),
        json_(json.empty() ? description.ToJson() : std::move(json)),
        added_tokens_(std::move(description.added_tokens)),
        token_bytes_(bpe_.token_bytes()) {
    for (const AddedToken& token : added_tokens_) {
      if (token.id >= std::ssize(token_bytes_)) token_bytes_.resize(token.id + 1);
      token_bytes_[token.id] = token.content;
    }
  }

  int32_t vocabulary_size() const override { return static_cast<int32_t>(token_bytes_.size()); }

  std::vector<int32_t> Encode(std::string_view text) const override {
    CheckUtf8(text, "text to tokenize");
    std::vector<int32_t> ids;
    PreTokenizer::Run run(pre_tokenizer_);
    std::unordered_map<std::string, std::vector<int32_t>> remembered;
    const auto take_token = [&](int32_t id) { ids.push_back(id); };
    const auto take_piece = [&](std::string_view piece) { EncodePiece(piece, remembered, ids); };
    const auto take_normalized = [&](std::string_view part) { run.ForEachPiece(part, take_piece); };
    as_written_.Cut(
        text,
        [&](std::string_view part) {
          if (!normalize_nfc_) return as_normalized_.Cut(part, take_normalized, take_token);
          as_normalized_.Cut(NormalizeNfc(part), take_normalized, take_token);
        },
        take_token);
    return ids;
  }

  std::string Decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (const int32_t id : ids) {
      AAH_CHECK(id >= 0 && id < vocabulary_size(), "token id ", id, " is not in a vocabulary of ",
                vocabulary_size());
      text += token_bytes_[id];
    }
    return text;
  }

  std::optional<int32_t> FindToken(std::string_view text) const override {
    const auto added = std::ranges::find(added_tokens_, text, &AddedToken::content);
    if (added != added_tokens_.end()) return added->id;
    const auto known = std::ranges::find(token_bytes_, text);
    if (text.empty() || known == token_bytes_.end()) return std::nullopt;
    return static_cast<int32_t>(known - token_bytes_.begin());
  }

  std::optional<int32_t> end_of_document() const override {
    for (const std::string_view name :
         {"<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "<eos>", "</s>"}) {
      const auto found = std::ranges::find(added_tokens_, name, &AddedToken::content);
      if (found != added_tokens_.end() && found->special) return found->id;
    }
    return std::nullopt;
  }

  std::string name() const override { return "bpe-" + std::to_string(vocabulary_size()); }
  std::string hash() const override { return hash_; }

  void Save(const std::string& folder) const override {
    WriteFileAtomically(std::filesystem::path(folder) / "tokenizer.json", json_);
  }

 private:
  void EncodePiece(std::string_view piece,
                   std::unordered_map<std::string, std::vector<int32_t>>& remembered,
                   std::vector<int32_t>& ids) const {
    if (piece.size() > kLongestRemembered) return bpe_.Encode(piece, ids);
    const std::string key(piece);
    const auto known = remembered.find(key);
    if (known != remembered.end()) {
      ids.insert(ids.end(), known->second.begin(), known->second.end());
      return;
    }
    const auto begin = static_cast<std::ptrdiff_t>(ids.size());
    bpe_.Encode(piece, ids);
    if (remembered.size() < kRememberedPieces) {
      remembered.emplace(key, std::vector<int32_t>(ids.begin() + begin, ids.end()));
    }
  }

  Bpe bpe_;
  PreTokenizer pre_tokenizer_;
  AddedTokens as_written_;     // found before normalising
  AddedTokens as_normalized_;  // found after it
  bool normalize_nfc_;
  std::string hash_;
  std::string json_;
  std::vector<AddedToken> added_tokens_;
  std::vector<std::string> token_bytes_;  // by id
};

}  // namespace

std::unique_ptr<Tokenizer> MakeBpeTokenizer(TokenizerDescription description, std::string json) {
  return std::make_unique<BpeTokenizer>(std::move(description), std::move(json));
}

TokenizerDescription DescribeByteTokenizer() {
  TokenizerDescription description;
  description.origin = "bytes";
  PreTokenizerStep step;
  step.kind = PreTokenizerStep::Kind::kByteLevel;
  step.use_regex = false;
  description.steps = {step};
  for (int byte = 0; byte < 256; ++byte) {
    description.vocabulary.push_back(BytesToByteLevel(std::string(1, static_cast<char>(byte))));
  }
  description.vocabulary_entries = 256;
  return description;
}

}  // namespace aah
