#ifndef AAH_SRC_ATTENTION_KEY_PACKING_H_
#define AAH_SRC_ATTENTION_KEY_PACKING_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "aah/scratch.h"
#include "attention/cpu/forward.h"
#include "attention/forward_call.h"

namespace aah {

// Keys and values of neighbouring (sequence, key/value head) pairs, packed once for all query
// blocks and all query heads that read them. Pair n is sequence n / kv_heads, head n % kv_heads.
// Keys that no query sees are left out, but for the rest of a panel. Rows of values that the kernel
// can read where they lie are not copied.
template <typename Storage>
class PackedPairs {
 public:
  // Packs pairs [pairs.begin, pairs.end) on call.parallel.
  PackedPairs(const ForwardCall<Storage>& call, Span pairs);

  const cpu::PackedKeys& Of(int64_t pair) const {
    return packed_[static_cast<size_t>(pair - pairs_.begin)];
  }

  // How many pairs to pack at a time: as many as keep the scratch moderate, at least one.
  static int64_t PairsAtOnce(const ForwardCall<Storage>& call);

 private:
  // A run of panels of one pair: a task of packing.
  struct Piece {
    int64_t pair;
    Span panels;
  };

  void PackPiece(const ForwardCall<Storage>& call, const Piece& piece, float* panels,
                 float* values) const;

  Span pairs_;
  int64_t panel_width_;
  std::vector<cpu::PackedKeys> packed_;
  std::optional<Scratch> memory_;
};

}  // namespace aah

#endif  // AAH_SRC_ATTENTION_KEY_PACKING_H_
