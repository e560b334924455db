#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "aah/error.h"
#include "aah/io/file.h"
#include "aah/io/json.h"
#include "aah/text/tokenizer.h"
#include "aah/text/utf8.h"
#include "bpe_tokenizer.h"
#include "tokenizer_description.h"

namespace aah {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLargestFile = int64_t{256} << 20;
constexpr std::string_view kGpt2EndOfText = "<|endoftext|>";

// merges.txt: two tokens a line in the order of their ranks, behind a line "#version: ...".
void ReadMergesText(std::string_view text, const std::string& origin,
                    TokenizerDescription& description) {
  CheckUtf8(text, origin);
  for (int64_t line_number = 1; !text.empty(); ++line_number) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("#version") || line.empty()) continue;
    const size_t space = line.find(' ');
    AAH_CHECK(
        space != std::string_view::npos && line.find(' ', space + 1) == std::string_view::npos,
        origin, ":", line_number, ": expected two tokens with a space, got '", line, "'");
    description.merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
}

std::unique_ptr<Tokenizer> LoadVocabularyAndMerges(const fs::path& vocabulary_path,
                                                   const fs::path& merges_path) {
  Json added = Json::array();
  const Json vocabulary = ReadJsonFile(vocabulary_path, kLargestFile);
  if (vocabulary.is_object() && vocabulary.contains(kGpt2EndOfText)) {
    added.push_back(
        {{"id", vocabulary.at(kGpt2EndOfText)}, {"content", kGpt2EndOfText}, {"special", true}});
  }
  TokenizerDescription merged;
  ReadMergesText(ReadFile(merges_path, kLargestFile), merges_path.string(), merged);
  // One way in for both forms, so that both are checked alike.
  Json merges = Json::array();
  for (const auto& [left, right] : merged.merges) merges.push_back({left, right});
  const Json root = {
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
      {"added_tokens", std::move(added)},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", std::move(merges)}}}};
  return MakeBpeTokenizer(DescribeTokenizer(root, vocabulary_path.string()), "");
}

}  // namespace

std::unique_ptr<Tokenizer> ParseTokenizerJson(std::string_view json, const std::string& origin) {
  return MakeBpeTokenizer(DescribeTokenizer(ParseJson(json, origin), origin), std::string(json));
}

std::unique_ptr<Tokenizer> LoadTokenizer(const std::string& path) {
  if (path == "bytes") return MakeByteTokenizer();
  std::error_code ignored;
  AAH_CHECK(fs::exists(path, ignored), "there is no tokenizer '", path,
            "': expected 'bytes', a tokenizer.json, or a folder with tokenizer.json or with "
            "vocab.json and merges.txt");
  if (!fs::is_directory(path, ignored)) {
    return ParseTokenizerJson(ReadFile(path, kLargestFile), path);
  }
  const fs::path folder(path);
  if (fs::exists(folder / "tokenizer.json", ignored)) {
    const std::string file = (folder / "tokenizer.json").string();
    return ParseTokenizerJson(ReadFile(file, kLargestFile), file);
  }
  AAH_CHECK(
      fs::exists(folder / "vocab.json", ignored) && fs::exists(folder / "merges.txt", ignored),
      path, ": expected tokenizer.json, or vocab.json and merges.txt, in this folder");
  return LoadVocabularyAndMerges(folder / "vocab.json", folder / "merges.txt");
}

}  // namespace aah
