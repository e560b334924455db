#ifndef AAH_TEXT_SRC_BPE_H_
#define AAH_TEXT_SRC_BPE_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer_description.h"

namespace aah {

// Byte-pair encoding of one piece of text (Sennrich, Haddow, Birch, 2016), over bytes: of all
// neighbours that some merge joins, those of the lowest rank are joined first, the leftmost on a
// tie, until none is left.
class Bpe {
 public:
  // Throws aah::Error where a merge names or makes a token that the vocabulary lacks.
  explicit Bpe(const TokenizerDescription& description);

  // Appends the ids of `piece`, which is not empty and valid UTF-8. Time O(n log n).
  void Encode(std::string_view piece, std::vector<int32_t>& ids) const;

  // The bytes each id stands for; those without a token are empty.
  const std::vector<std::string>& token_bytes() const { return token_bytes_; }

 private:
  struct Merge {
    int32_t rank;
    int32_t id;
  };
  struct PairHash {
    size_t operator()(uint64_t pair) const;
  };

  const Merge* Find(int32_t left, int32_t right) const;
  void Join(std::string_view piece, std::vector<int32_t>& ids) const;

  std::array<int32_t, 256> id_of_byte_{};
  std::unordered_map<uint64_t, Merge, PairHash> merges_;
  std::vector<std::string> token_bytes_;
  std::unordered_map<std::string_view, int32_t> whole_;  // ignore_merges: ids by token_bytes_
};

}  // namespace aah

#endif  // AAH_TEXT_SRC_BPE_H_
