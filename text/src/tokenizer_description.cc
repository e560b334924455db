#include "tokenizer_description.h"

#include "aah/text/sha256.h"

namespace aah {
namespace {

Json StepToJson(const PreTokenizerStep& step) {
  switch (step.kind) {
    case PreTokenizerStep::Kind::kSplit:
      return {{"type", "Split"},
              {"pattern", {{step.split.is_regex ? "Regex" : "String", step.split.pattern}}},
              {"behavior", step.split.remove_matches ? "Removed" : "Isolated"},
              {"invert", step.split.invert}};
    case PreTokenizerStep::Kind::kDigits:
      return {{"type", "Digits"}, {"individual_digits", step.individual_digits}};
    case PreTokenizerStep::Kind::kByteLevel:
      break;
  }
  return {{"type", "ByteLevel"},
          {"add_prefix_space", step.add_prefix_space},
          {"trim_offsets", true},
          {"use_regex", step.use_regex}};
}

Json AddedTokenToJson(const AddedToken& token) {
  return {{"id", token.id},
          {"content", token.content},
          {"single_word", false},
          {"lstrip", token.strip_left},
          {"rstrip", token.strip_right},
          {"normalized", token.normalized},
          {"special", token.special}};
}

Json ModelToJson(const TokenizerDescription& description) {
  Json vocabulary = Json::object();
  for (size_t id = 0; id < description.vocabulary.size(); ++id) {
    if (!description.vocabulary[id].empty()) vocabulary[description.vocabulary[id]] = id;
  }
  Json merges = Json::array();
  for (const auto& [left, right] : description.merges) merges.push_back({left, right});
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", description.ignore_merges},
          {"vocab", std::move(vocabulary)},
          {"merges", std::move(merges)}};
}

}  // namespace

std::string TokenizerDescription::Hash() const {
  Sha256 hash;
  hash.AddSized("aah byte-level BPE 1");
  hash.Add(uint64_t{normalize_nfc});
  hash.Add(uint64_t{steps.size()});
  for (const PreTokenizerStep& step : steps) hash.AddSized(StepToJson(step).dump());
  hash.Add(uint64_t{vocabulary.size()});
  for (const std::string& token : vocabulary) hash.AddSized(token);
  hash.Add(uint64_t{merges.size()});
  for (const auto& [left, right] : merges) {
    hash.AddSized(left);
    hash.AddSized(right);
  }
  hash.Add(uint64_t{ignore_merges});
  hash.Add(uint64_t{added_tokens.size()});
  for (const AddedToken& token : added_tokens) hash.AddSized(AddedTokenToJson(token).dump());
  return ToHex(hash.Finish());
}

std::string TokenizerDescription::ToJson() const {
  Json added = Json::array();
  for (const AddedToken& token : added_tokens) added.push_back(AddedTokenToJson(token));
  Json sequence = Json::array();
  for (const PreTokenizerStep& step : steps) sequence.push_back(StepToJson(step));
  const Json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", true},
                           {"use_regex", true}};
  const Json root = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", std::move(added)},
      {"normalizer", normalize_nfc ? Json{{"type", "NFC"}} : Json(nullptr)},
      {"pre_tokenizer",
       steps.size() == 1 ? sequence[0] : Json{{"type", "Sequence"}, {"pretokenizers", sequence}}},
      {"post_processor", nullptr},
      {"decoder", byte_level},
      {"model", ModelToJson(*this)}};
  return root.dump() + "\n";
}

}  // namespace aah
