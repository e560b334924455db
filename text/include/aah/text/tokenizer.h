#ifndef AAH_TEXT_TOKENIZER_H_
#define AAH_TEXT_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace aah {

// Text to token ids and back. Immutable; safe to use from several threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Every id is in [0, vocabulary_size()): the largest id plus one, added tokens included.
  virtual int32_t vocabulary_size() const = 0;

  // The ids that Hugging Face `tokenizers` gives with add_special_tokens=False: added and special
  // tokens that stand in the text are recognised, none is put around it. Throws aah::Error where
  // the text is not valid UTF-8 (surrogates and overlong forms included), with the byte's offset;
  // the byte tokenizer takes any bytes.
  virtual std::vector<int32_t> Encode(std::string_view text) const = 0;

  // The exact bytes the ids stand for, one after another, special tokens written out. A stretch
  // that begins or ends inside a character gives incomplete UTF-8: see CompleteUtf8Prefix in
  // aah/text/utf8.h. Throws aah::Error for ids outside the vocabulary; an id inside it that no
  // token has stands for no bytes.
  virtual std::string Decode(std::span<const int32_t> ids) const = 0;

  // The id of a token by its exact text (for instance "<|endoftext|>"), added tokens first.
  virtual std::optional<int32_t> FindToken(std::string_view text) const = 0;

  // The id put after each document of a token file: 0 (the NUL byte) for bytes; otherwise the first
  // of <|endoftext|>, <|end_of_text|>, <|im_end|>, <eos>, </s> that is a special token here.
  virtual std::optional<int32_t> end_of_document() const = 0;

  // "bytes", or the kind and size, for instance "bpe-50257".
  virtual std::string name() const = 0;

  // SHA-256 in hexadecimal of everything that decides ids (not of the file's layout): the same for
  // a tokenizer.json and for an equal vocab.json + merges.txt.
  virtual std::string hash() const = 0;

  // Writes a tokenizer.json that LoadTokenizer and Hugging Face `tokenizers` load to equal ids into
  // an existing folder.
  virtual void Save(const std::string& folder) const = 0;
};

// 256 ids, one a byte.
std::unique_ptr<Tokenizer> MakeByteTokenizer();

// `path` is "bytes", a tokenizer.json, or a folder with tokenizer.json or with vocab.json and
// merges.txt (as GPT-2's: no prefix space, "<|endoftext|>" special where the vocabulary has it).
//
// Supported of tokenizer.json: model BPE over bytes (ignore_merges too), the pre-tokenizers
// ByteLevel, Split (Regex or String; Isolated or Removed), Digits and their Sequence, normaliser
// NFC or none, added tokens, any post-processor (it only adds tokens around the text), decoder
// ByteLevel. Everything else is refused by name, nothing is approximated: dropout, unknown-token
// and byte fallback, sub-word prefixes, other models and normalisers, single_word tokens, regular
// expressions whose meaning differs between Oniguruma, which `tokenizers` uses, and PCRE2 (\w, \b,
// ^, $, class intersections, interval+ ...), vocabularies in which a byte is missing, so that text
// would be lost.
//
// Throws aah::Error where the file is missing, malformed or not supported.
std::unique_ptr<Tokenizer> LoadTokenizer(const std::string& path);

// The same from the contents of a tokenizer.json; `origin` names it in messages.
std::unique_ptr<Tokenizer> ParseTokenizerJson(std::string_view json, const std::string& origin);

}  // namespace aah

#endif  // AAH_TEXT_TOKENIZER_H_
