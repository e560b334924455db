#ifndef AAH_TEXT_SRC_ADDED_TOKENS_H_
#define AAH_TEXT_SRC_ADDED_TOKENS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer_description.h"

namespace aah {

// Finds tokens that are taken as they stand in a text: of those that begin leftmost the longest,
// then on behind it.
class AddedTokens {
 public:
  // Tokens are matched by the texts in `contents`, one for each of `tokens`.
  AddedTokens(std::vector<AddedToken> tokens, std::vector<std::string> contents);

  // Calls `token(id)` for each token found and `between(text)` for the text around, in order, never
  // an empty one. Tokens that strip take the white space beside them along.
  void Cut(std::string_view text, const std::function<void(std::string_view)>& between,
           const std::function<void(int32_t)>& token) const;

 private:
  // The token at the front of `text`, the longest; -1: none.
  int Match(std::string_view text) const;

  std::vector<AddedToken> tokens_;
  std::vector<std::string> contents_;
  std::array<std::vector<int>, 256> by_first_byte_;  // longest first
};

}  // namespace aah

#endif  // AAH_TEXT_SRC_ADDED_TOKENS_H_
