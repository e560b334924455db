#ifndef AAH_TEXT_SRC_PRE_TOKENIZER_H_
#define AAH_TEXT_SRC_PRE_TOKENIZER_H_

#include <functional>
#include <string_view>
#include <vector>

#include "pattern.h"
#include "tokenizer_description.h"

namespace aah {

// Cuts text into the pieces that BPE never joins across.
class PreTokenizer {
 public:
  // Throws aah::Error for patterns that are malformed or not supported.
  explicit PreTokenizer(const TokenizerDescription& description);

  // One thread's run over texts.
  class Run {
   public:
    explicit Run(const PreTokenizer& pre_tokenizer);

    // Calls `piece` for each piece of `text` (valid UTF-8) in order, none empty. A piece is a part
    // of `text`, or, behind an added prefix space, of a copy that is gone after the call.
    void ForEachPiece(std::string_view text, const std::function<void(std::string_view)>& piece);

   private:
    void Apply(size_t step, std::string_view text,
               const std::function<void(std::string_view)>& piece);

    const PreTokenizer& pre_tokenizer_;
    std::vector<Pattern::Matcher> matchers_;  // of the steps that have patterns, in order
  };

 private:
  struct Step {
    PreTokenizerStep description;
    int pattern = -1;  // index into patterns_; none: the text stays whole
  };

  std::vector<Step> steps_;
  std::vector<Pattern> patterns_;
};

}  // namespace aah

#endif  // AAH_TEXT_SRC_PRE_TOKENIZER_H_
