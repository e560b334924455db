#include "pre_tokenizer.h"

#include <string>
#include <utility>

namespace aah {
namespace {

// Radford et al., 2019 (GPT-2), encoder.py.
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Rust's char::is_numeric, which `tokenizers` asks here, knows Unicode 17 already.
constexpr std::string_view kNumeric = R"([\p{N}\x{11de0}-\x{11de9}\x{16ff4}-\x{16ff6}])";

Pattern MakePattern(const PreTokenizerStep& step, const std::string& origin) {
  switch (step.kind) {
    case PreTokenizerStep::Kind::kSplit:
      return step.split.is_regex ? Pattern::FromRegex(step.split.pattern, origin)
                                 : Pattern::FromLiteral(step.split.pattern, origin);
    case PreTokenizerStep::Kind::kDigits:
      return Pattern::FromRegex(std::string(kNumeric) + (step.individual_digits ? "" : "+"),
                                origin);
    case PreTokenizerStep::Kind::kByteLevel:
      break;
  }
  return Pattern::FromRegex(kGpt2Pattern, origin);
}

}  // namespace

PreTokenizer::PreTokenizer(const TokenizerDescription& description) {
  for (const PreTokenizerStep& step : description.steps) {
    const bool whole = step.kind == PreTokenizerStep::Kind::kByteLevel && !step.use_regex;
    steps_.push_back({step, whole ? -1 : static_cast<int>(patterns_.size())});
    if (!whole) patterns_.push_back(MakePattern(step, description.origin));
  }
}

PreTokenizer::Run::Run(const PreTokenizer& pre_tokenizer) : pre_tokenizer_(pre_tokenizer) {
  for (const Pattern& pattern : pre_tokenizer.patterns_) matchers_.emplace_back(pattern);
}

void PreTokenizer::Run::ForEachPiece(std::string_view text,
                                     const std::function<void(std::string_view)>& piece) {
  if (!text.empty()) Apply(0, text, piece);
}

void PreTokenizer::Run::Apply(size_t index, std::string_view text,
                              const std::function<void(std::string_view)>& piece) {
  if (index == pre_tokenizer_.steps_.size()) return piece(text);
  const Step& step = pre_tokenizer_.steps_[index];
  std::string prefixed;
  if (step.description.kind == PreTokenizerStep::Kind::kByteLevel &&
      step.description.add_prefix_space && !text.starts_with(' ')) {
    prefixed = " ";
    prefixed += text;
    text = prefixed;
  }
  if (step.pattern < 0) return Apply(index + 1, text, piece);
  const SplitStep& split = step.description.split;
  matchers_[step.pattern].ForEachPiece(text, [&](std::string_view part, bool is_match) {
    const bool dropped = split.remove_matches && is_match != split.invert;
    if (!dropped) Apply(index + 1, part, piece);
  });
}

}  // namespace aah
