#ifndef AAH_SRC_ATTENTION_NESTED_H_
#define AAH_SRC_ATTENTION_NESTED_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "aah/attention.h"
#include "aah/nested_attention.h"
#include "attention/checks.h"
#include "attention/cpu/backward.h"
#include "attention/cpu/forward.h"
#include "attention/tile_walk.h"

namespace aah {

// The live candidates of a nested call, checked.
class NestedCandidates {
 public:
  // Checks the candidates. Throws aah::Error, one line.
  NestedCandidates(const NestedVisibility& visibility, int64_t heads);

  // One live candidate of a head.
  struct Candidate {
    int64_t index;  // among all of the head
    int64_t slot;   // among the live ones of all heads
    int32_t window;
  };
  std::span<const Candidate> Of(int64_t head) const {
    const auto h = static_cast<size_t>(head);
    return std::span(live_).subspan(first_[h], first_[h + 1] - first_[h]);
  }
  int64_t count() const { return candidates_; }  // of a head, dead ones too
  int64_t slots() const { return static_cast<int64_t>(live_.size()); }

  // Where selection and its gradient hold a candidate of a head.
  size_t Entry(int64_t head, const Candidate& candidate) const {
    return static_cast<size_t>(head * candidates_ + candidate.index);
  }

  // What each head sees at its widest: bounds of all that is computed. Borrows from this.
  Visibility Widest() const;

  void CheckSlots(const AttentionShape& shape, const NamedShape& candidate_out,
                  const NamedShape& log_sum_exp) const;
  // Whether there is a weight for each candidate, and those of live ones are finite and not below
  // 0.
  void CheckSelection(const AttentionShape& shape, std::span<const float> selection) const;
  void CheckSelection(const AttentionShape& shape, std::span<const double> selection) const;
  void CheckGradSelection(const AttentionShape& shape, size_t size) const;

 private:
  int64_t candidates_ = 0;
  std::vector<Candidate> live_;  // head by head
  std::vector<size_t> first_;    // [heads + 1], into live_
  std::vector<int32_t> widest_;  // [heads]
  NestedVisibility visibility_;
};

// The keys that window `outer` shows and window `inner` < `outer` does not, sinks left out, as what
// a head sees: each query stands `inner` keys back and sees the rest of its window from there. With
// inner 0 they are all that `head` sees with window `outer`.
HeadVisibility BandOf(HeadVisibility head, int64_t inner, int64_t outer);

// Where a nested forward pass leaves its candidates.
struct NestedOutputs {
  const NestedCandidates& candidates;
  std::span<const float> selection;
  View4<float> candidate_out;
  View3<float> log_sum_exp;
};

// What the backward pass needs of the candidates.
struct NestedInputs {
  const NestedCandidates& candidates;
  std::span<const float> selection;
  ConstView3<float> log_sum_exp;  // [batch, slots, queries], last stride 1
  ConstView3<float> out_dots;     // [batch, slots, queries], last stride 1: out . grad_out
};

// The bands of heads as backward tasks take them. Owns what those borrow.
class NestedBands {
 public:
  // Appends to `heads` a copy of `whole` for each band, nearest first.
  void Append(const NestedInputs& inputs, int64_t sequence, int64_t head, const BackwardHead& whole,
              std::vector<BackwardHead>& heads);

 private:
  std::deque<std::vector<CandidateRows>> rows_;
};

// One block of queries of one head, mixed over its candidates into `mixed` [rows, head_dim].
void RunNestedBlock(const NestedOutputs& outputs, int64_t sequence, int64_t head,
                    const cpu::ForwardBlock& block, float* mixed);

}  // namespace aah

#endif  // AAH_SRC_ATTENTION_NESTED_H_
