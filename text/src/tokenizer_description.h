#ifndef AAH_TEXT_SRC_TOKENIZER_DESCRIPTION_H_
#define AAH_TEXT_SRC_TOKENIZER_DESCRIPTION_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aah/io/json.h"

namespace aah {

struct SplitStep {
  std::string pattern;
  bool is_regex = true;
  bool remove_matches = false;  // behaviour Removed; else Isolated
  bool invert = false;          // what lies between the matches counts as the match
};

// One step that cuts text into pieces, as tokenizer.json names them.
struct PreTokenizerStep {
  enum class Kind { kSplit, kDigits, kByteLevel } kind = Kind::kByteLevel;
  SplitStep split;                 // kSplit
  bool individual_digits = false;  // kDigits
  bool add_prefix_space = false;   // kByteLevel
  bool use_regex = true;           // kByteLevel: cut by GPT-2's pattern
};

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool strip_left = false;
  bool strip_right = false;
  bool normalized = false;
  bool special = false;
};

// What decides the ids of a byte-level BPE tokenizer.
struct TokenizerDescription {
  std::string origin;  // for messages
  bool normalize_nfc = false;
  std::vector<PreTokenizerStep> steps;  // the last one, and only it, is kByteLevel
  // By id; the empty text where no token has the id. As written in the file, in byte-level
  // characters.
  std::vector<std::string> vocabulary;
  int32_t vocabulary_entries = 0;
  std::vector<std::pair<std::string, std::string>> merges;  // by rank
  bool ignore_merges = false;
  std::vector<AddedToken> added_tokens;

  // SHA-256, hexadecimal, of all the above but the origin.
  std::string Hash() const;
  // As a Hugging Face tokenizer.json.
  std::string ToJson() const;
};

// Reads a parsed tokenizer.json. Throws aah::Error where it is malformed or not supported.
TokenizerDescription DescribeTokenizer(const Json& root, const std::string& origin);

// Fills vocabulary and vocabulary_entries from an object of token to id.
void ReadVocabulary(const Json& object, TokenizerDescription& description);

}  // namespace aah

#endif  // AAH_TEXT_SRC_TOKENIZER_DESCRIPTION_H_
