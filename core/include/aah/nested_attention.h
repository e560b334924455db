#ifndef AAH_NESTED_ATTENTION_H_
#define AAH_NESTED_ATTENTION_H_

#include <cstdint>
#include <span>

#include "aah/attention.h"
#include "aah/parallel.h"
#include "aah/tensor_view.h"

namespace aah {

// Several candidate windows per head, attended at once. What each shows is as in Visibility.
struct NestedVisibility {
  std::span<const int32_t> windows;    // [candidates], ascending, each >= 1; the same for all heads
  std::span<const uint8_t> live;       // [heads, candidates], not 0: computed. Empty: all are.
  int32_t sinks = 0;                   // >= 0, shown by every candidate
  std::span<const int32_t> key_begin;  // [batch]; empty: all 0
  std::span<const int32_t> key_length;  // [batch]; empty: the tensors' length
};

// How many candidates are live, over all heads: the slots of candidate_out and log_sum_exp. Slots
// lie head by head, in a head the live candidates ascending; with none dead, candidate n of head h
// has slot h * candidates + n.
int64_t LiveCandidates(const NestedVisibility& visibility, int64_t heads);

// Attention mixed over candidate windows, in one walk over the keys of the widest live one:
//
//     out[b, h, i, :] = sum_n selection[h, n] O_n[b, h, i, :]      over the live candidates n
//
// where O_n is AttentionForward's out with window windows[n] for every head.
//
//   query, out        [batch, heads, queries, head_dim]     any strides, last one 1
//   key, value        [batch, kv_heads, keys, head_dim]
//   selection         [heads, candidates], finite, >= 0; not normalised here, not read where dead
//   candidate_out     [batch, LiveCandidates(), queries, head_dim]   O_n, for the backward pass
//   log_sum_exp       [batch, LiveCandidates(), queries]    natural log, of each; last stride 1
//
// exp(log_sum_exp of n less that of the widest) is the attention paid within window n. A head with
// one live candidate costs what its window costs; dead ones cost nothing. Everything else is as in
// AttentionForward: rows that see no key, refusals, the same bits for any number of workers.
void NestedAttentionForward(ConstView4<float> query, ConstView4<float> key, ConstView4<float> value,
                            std::span<const float> selection, const NestedVisibility& visibility,
                            const AttentionOptions& options, View4<float> out,
                            View4<float> candidate_out, View3<float> log_sum_exp,
                            Parallel& parallel);

// Exact gradients of sum(out * grad_out), by one walk like AttentionBackward's; overwritten.
//
//   candidate_out, log_sum_exp        as NestedAttentionForward returned them
//   grad_query, grad_key, grad_value  as in AttentionBackward
//   grad_selection                    [heads, candidates]; 0 where dead
//
// Scratch beyond AttentionBackward's: a float per query row and live candidate.
void NestedAttentionBackward(ConstView4<float> query, ConstView4<float> key,
                             ConstView4<float> value, std::span<const float> selection,
                             ConstView4<float> candidate_out, ConstView3<float> log_sum_exp,
                             ConstView4<float> grad_out, const NestedVisibility& visibility,
                             const AttentionOptions& options, View4<float> grad_query,
                             View4<float> grad_key, View4<float> grad_value,
                             std::span<float> grad_selection, Parallel& parallel);

// The definition in double: attention once per candidate, mixed. The oracle of every test. Any
// head_dim, same checks.
void ReferenceNestedAttentionForward(ConstView4<double> query, ConstView4<double> key,
                                     ConstView4<double> value, std::span<const double> selection,
                                     const NestedVisibility& visibility,
                                     const AttentionOptions& options, View4<double> out,
                                     View4<double> candidate_out, View3<double> log_sum_exp);
void ReferenceNestedAttentionBackward(ConstView4<double> query, ConstView4<double> key,
                                      ConstView4<double> value, std::span<const double> selection,
                                      ConstView4<double> candidate_out, ConstView4<double> grad_out,
                                      const NestedVisibility& visibility,
                                      const AttentionOptions& options, View4<double> grad_query,
                                      View4<double> grad_key, View4<double> grad_value,
                                      std::span<double> grad_selection);

}  // namespace aah

#endif  // AAH_NESTED_ATTENTION_H_
