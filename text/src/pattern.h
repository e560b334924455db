#ifndef AAH_TEXT_SRC_PATTERN_H_
#define AAH_TEXT_SRC_PATTERN_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace aah {

// A regular expression as Oniguruma's Ruby syntax means it over UTF-8, which `tokenizers` uses.
// Returns the PCRE2 (UTF, UCP) expression of the same meaning. What means something else there, or
// what we cannot vouch for, throws aah::Error with the construct and its position.
std::string TranslatePattern(std::string_view expression, std::string_view origin);

// A compiled pattern that never matches the empty text. Immutable, for several threads.
class Pattern {
 public:
  // Throws aah::Error where the expression is malformed, refused, or can match nothing.
  static Pattern FromRegex(std::string_view expression, std::string_view origin);
  static Pattern FromLiteral(std::string_view literal, std::string_view origin);

  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  // What one thread needs to match one pattern; cheap to reuse, not to make.
  class Matcher {
   public:
    explicit Matcher(const Pattern& pattern);
    Matcher(Matcher&&) noexcept;
    ~Matcher();

    // Calls `piece(text, is_match)` for the matches and for what lies between, in order; together
    // they are `text`, none is empty. `text` is valid UTF-8. Throws aah::Error where matching takes
    // more than 2^24 steps and 128 more for each byte that this matcher was given, which is about
    // a second for a MiB, or more memory than 64 MiB.
    void ForEachPiece(std::string_view text,
                      const std::function<void(std::string_view, bool)>& piece);

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

 private:
  struct Code;
  Pattern(std::string_view pcre2_expression, unsigned options, std::string_view origin);
  std::unique_ptr<Code> code_;
};

}  // namespace aah

#endif  // AAH_TEXT_SRC_PATTERN_H_
