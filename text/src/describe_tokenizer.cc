#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "aah/error.h"
#include "aah/nearest_name.h"
#include "byte_level.h"
#include "tokenizer_description.h"

namespace aah {
namespace {

constexpr size_t kMaxSteps = 64;  // each goes over the text, and calls the next one

std::string TypeOf(const Json& object, const std::string& origin) {
  return JsonMember<std::string>(object, "type", origin);
}

bool IsPresent(const Json& object, const char* key) {
  return object.contains(key) && !object.at(key).is_null();
}

// True for NFC, false for none.
bool ReadNormalizer(const Json& normalizer, const std::string& origin) {
  const std::string type = TypeOf(normalizer, origin);
  if (type == "NFC") return true;
  AAH_CHECK(type == "Sequence", origin, ": the normaliser '", type,
            "' is not supported, only NFC or none");
  const Json& parts = JsonAt(normalizer, "normalizers", origin);
  AAH_CHECK(parts.is_array(), origin, ": normalizers: expected a list, got ", DescribeJson(parts));
  bool nfc = false;
  for (const Json& part : parts) nfc = ReadNormalizer(part, origin) || nfc;
  return nfc;
}

PreTokenizerStep ReadSplit(const Json& object, const std::string& origin) {
  PreTokenizerStep step;
  step.kind = PreTokenizerStep::Kind::kSplit;
  const Json& pattern = JsonAt(object, "pattern", origin);
  AAH_CHECK(pattern.is_object() && pattern.size() == 1 &&
                (pattern.contains("Regex") || pattern.contains("String")),
            origin, ": Split: pattern: expected {\"Regex\": text} or {\"String\": text}, got ",
            DescribeJson(pattern));
  step.split.is_regex = pattern.contains("Regex");
  step.split.pattern =
      JsonMember<std::string>(pattern, step.split.is_regex ? "Regex" : "String", origin);
  AAH_CHECK(!step.split.pattern.empty(), origin, ": Split: the pattern is empty");
  const auto behavior = JsonMember<std::string>(object, "behavior", origin);
  AAH_CHECK(behavior == "Isolated" || behavior == "Removed", origin, ": Split: the behaviour '",
            behavior, "' is not supported, only Isolated and Removed");
  step.split.remove_matches = behavior == "Removed";
  step.split.invert = JsonMemberOr<bool>(object, "invert", false, origin);
  return step;
}

void ReadPreTokenizer(const Json& object, const std::string& origin,
                      std::vector<PreTokenizerStep>& steps) {
  const std::string type = TypeOf(object, origin);
  PreTokenizerStep step;
  if (type == "Sequence") {
    const Json& parts = JsonAt(object, "pretokenizers", origin);
    AAH_CHECK(parts.is_array(), origin, ": pretokenizers: expected a list, got ",
              DescribeJson(parts));
    for (const Json& part : parts) ReadPreTokenizer(part, origin, steps);
    return;
  }
  if (type == "Split") {
    step = ReadSplit(object, origin);
  } else if (type == "Digits") {
    step.kind = PreTokenizerStep::Kind::kDigits;
    step.individual_digits = JsonMemberOr<bool>(object, "individual_digits", false, origin);
  } else if (type == "ByteLevel") {
    step.add_prefix_space = JsonMemberOr<bool>(object, "add_prefix_space", true, origin);
    step.use_regex = JsonMemberOr<bool>(object, "use_regex", true, origin);
  } else {
    ThrowError(ErrorKind::kBadInput, origin, ": the pre-tokenizer '", type,
               "' is not supported, only ByteLevel, Split, Digits and their Sequence");
  }
  steps.push_back(std::move(step));
  AAH_CHECK(steps.size() <= kMaxSteps, origin, ": the pre-tokenizer has more than ", kMaxSteps,
            " steps, which no tokenizer needs");
}

void CheckSteps(const TokenizerDescription& description) {
  const auto& steps = description.steps;
  const auto is_byte_level = [](const PreTokenizerStep& step) {
    return step.kind == PreTokenizerStep::Kind::kByteLevel;
  };
  AAH_CHECK(!steps.empty() && is_byte_level(steps.back()) &&
                std::ranges::count_if(steps, is_byte_level) == 1,
            description.origin,
            ": only BPE over bytes is supported: the pre-tokenizer must end with one ByteLevel");
}

void ReadMerges(const Json& merges, TokenizerDescription& description) {
  const std::string& origin = description.origin;
  AAH_CHECK(merges.is_array(), origin, ": merges: expected a list, got ", DescribeJson(merges));
  description.merges.reserve(merges.size());
  for (const Json& merge : merges) {
    if (merge.is_array()) {
      AAH_CHECK(merge.size() == 2 && merge[0].is_string() && merge[1].is_string(), origin,
                ": merge ", description.merges.size(), ": expected two texts, got ",
                DescribeJson(merge));
      description.merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
      continue;
    }
    AAH_CHECK(merge.is_string(), origin, ": merge ", description.merges.size(),
              ": expected a text, got ", DescribeJson(merge));
    const auto& text = merge.get_ref<const std::string&>();
    const size_t space = text.find(' ');
    AAH_CHECK(space != std::string::npos && text.find(' ', space + 1) == std::string::npos, origin,
              ": merge ", description.merges.size(), ": expected two tokens with a space, got '",
              text, "'");
    description.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
  }
}

void ReadModel(const Json& model, TokenizerDescription& description) {
  const std::string& origin = description.origin;
  AAH_CHECK(model.is_object(), origin, ": model: expected an object, got ", DescribeJson(model));
  // Older files do not name the type; of those only BPE has merges.
  const std::string type = IsPresent(model, "type")   ? TypeOf(model, origin)
                           : model.contains("merges") ? "BPE"
                                                      : "without a name";
  AAH_CHECK(type == "BPE", origin, ": the model '", type, "' is not supported, only BPE");
  AAH_CHECK(JsonMemberOr<double>(model, "dropout", 0, origin) == 0, origin,
            ": BPE with dropout is not supported: its ids are random");
  AAH_CHECK(!JsonMemberOr<bool>(model, "byte_fallback", false, origin), origin,
            ": BPE with byte_fallback is not supported, only BPE over bytes");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    AAH_CHECK(JsonMemberOr<std::string>(model, key, "", origin).empty(), origin, ": BPE with ", key,
              " is not supported, only BPE over bytes");
  }
  description.ignore_merges = JsonMemberOr<bool>(model, "ignore_merges", false, origin);
  ReadVocabulary(JsonAt(model, "vocab", origin), description);
  ReadMerges(JsonAt(model, "merges", origin), description);
}

AddedToken ReadAddedToken(const Json& object, const std::string& origin) {
  AddedToken token;
  const auto id = JsonMember<int64_t>(object, "id", origin);
  token.content = JsonMember<std::string>(object, "content", origin);
  AAH_CHECK(id >= 0 && id <= INT32_MAX, origin, ": the added token '", token.content,
            "' has the id ", id);
  token.id = static_cast<int32_t>(id);
  AAH_CHECK(!token.content.empty(), origin, ": the added token ", id, " is empty");
  AAH_CHECK(!JsonMemberOr<bool>(object, "single_word", false, origin), origin,
            ": the added token '", token.content, "' has single_word set, which is not supported");
  token.strip_left = JsonMemberOr<bool>(object, "lstrip", false, origin);
  token.strip_right = JsonMemberOr<bool>(object, "rstrip", false, origin);
  token.special = JsonMemberOr<bool>(object, "special", false, origin);
  token.normalized = JsonMemberOr<bool>(object, "normalized", !token.special, origin);
  return token;
}

// An added token has the id the vocabulary gives its text, else the next free one: `tokenizers`
// counts them so, whatever the file says, and the two must agree.
void ReadAddedTokens(const Json& list, TokenizerDescription& description) {
  const std::string& origin = description.origin;
  AAH_CHECK(list.is_array(), origin, ": added_tokens: expected a list, got ", DescribeJson(list));
  std::unordered_map<std::string_view, int32_t> ids;
  for (size_t id = 0; id < description.vocabulary.size(); ++id) {
    if (!description.vocabulary[id].empty()) {
      ids.emplace(description.vocabulary[id], static_cast<int32_t>(id));
    }
  }
  std::unordered_set<std::string> seen;
  int32_t next = description.vocabulary_entries;
  for (const Json& object : list) {
    AddedToken token = ReadAddedToken(object, origin);
    const auto known = ids.find(token.content);
    const int32_t expected = known == ids.end() ? next : known->second;
    AAH_CHECK(token.id == expected, origin, ": the added token '", token.content, "' has the id ",
              token.id, ", expected ", expected,
              ": the id in the vocabulary, or the next one after it");
    AAH_CHECK(seen.insert(token.content).second, origin, ": the added token '", token.content,
              "' is there twice");
    next = std::max(next, token.id + 1);
    description.added_tokens.push_back(std::move(token));
  }
}

// A byte that no token stands for would silently vanish from the text.
void CheckAllBytes(const TokenizerDescription& description) {
  const std::unordered_set<std::string_view> known(description.vocabulary.begin(),
                                                   description.vocabulary.end());
  for (int byte = 0; byte < 256; ++byte) {
    const bool in_utf8 = byte < 0xc0 || (byte > 0xc1 && byte < 0xf5);
    const std::string token = BytesToByteLevel(std::string(1, static_cast<char>(byte)));
    AAH_CHECK(!in_utf8 || known.contains(token), description.origin,
              ": the vocabulary has no token for the byte ", byte,
              "; train it with initial_alphabet=ByteLevel.alphabet()");
  }
}

}  // namespace

void ReadVocabulary(const Json& object, TokenizerDescription& description) {
  const std::string& origin = description.origin;
  AAH_CHECK(object.is_object() && !object.empty(), origin,
            ": vocab: expected an object of token to id, got ", DescribeJson(object));
  // Ids may leave gaps, but not so wide that a small file asks for much memory.
  const auto limit = static_cast<int64_t>(object.size()) * 16 + 65536;
  for (const auto& [token, value] : object.items()) {
    const int64_t id = value.is_number_integer() ? JsonMember<int64_t>(object, token, origin) : -1;
    AAH_CHECK(id >= 0 && id < limit, origin, ": vocab: the token '", token,
              "' needs a whole id from 0 to ", limit - 1, ", got ", DescribeJson(value));
    AAH_CHECK(!token.empty(), origin, ": vocab: the token ", id, " is empty");
    if (id >= std::ssize(description.vocabulary)) description.vocabulary.resize(id + 1);
    std::string& place = description.vocabulary[id];
    AAH_CHECK(place.empty(), origin, ": vocab: '", place, "' and '", token, "' share the id ", id);
    place = token;
  }
  description.vocabulary_entries = static_cast<int32_t>(object.size());
}

TokenizerDescription DescribeTokenizer(const Json& root, const std::string& origin) {
  AAH_CHECK(root.is_object(), origin, ": expected a tokenizer.json, an object, got ",
            DescribeJson(root));
  TokenizerDescription description;
  description.origin = origin;
  if (IsPresent(root, "normalizer")) {
    description.normalize_nfc = ReadNormalizer(root.at("normalizer"), origin);
  }
  ReadModel(JsonAt(root, "model", origin), description);
  AAH_CHECK(IsPresent(root, "pre_tokenizer"), origin,
            ": only BPE over bytes is supported: the pre-tokenizer must end with one ByteLevel");
  ReadPreTokenizer(root.at("pre_tokenizer"), origin, description.steps);
  CheckSteps(description);
  AAH_CHECK(!IsPresent(root, "decoder") || TypeOf(root.at("decoder"), origin) == "ByteLevel",
            origin, ": only the decoder ByteLevel is supported");
  if (IsPresent(root, "added_tokens")) ReadAddedTokens(root.at("added_tokens"), description);
  CheckAllBytes(description);
  return description;
}

}  // namespace aah
