#ifndef AAH_ATTENTION_H_
#define AAH_ATTENTION_H_

#include <cstdint>
#include <span>

#include "aah/float16.h"
#include "aah/parallel.h"
#include "aah/tensor_view.h"

namespace aah {

// Which keys a query may see.
//
// Query i of a sequence stands at position p = i + key_length - queries: the queries are the last
// ones. Head h sees key j iff
//     key_begin <= j <= p   and   (p - windows[h] < j   or   j < key_begin + sinks).
// A window of w therefore shows w keys, the query's own included; w = 1 is itself only, and any
// w >= key_length is full causal attention. Others count differently: FlashAttention's
// window_size = (w - 1, 0); Mistral's and transformers' sliding_window = w.
struct Visibility {
  std::span<const int32_t> windows;     // [heads], each >= 1
  int32_t sinks = 0;                    // >= 0
  std::span<const int32_t> key_begin;   // [batch]; empty: all 0. Left padding ends here.
  std::span<const int32_t> key_length;  // [batch]; empty: all keys. Right padding starts here.
};

struct AttentionOptions {
  float scale = 0;    // 0: head_dim^-1/2
  float softcap = 0;  // 0: off; else scores become softcap * tanh(scale * q.k / softcap)
};

// Per query head, averaged over the batch and its queries (METHOD.md section 2). Each [heads], or
// all empty.
struct HeadStatistics {
  std::span<float> entropy;  // of the attention row, over max(1, log keys)
  std::span<float> norm;     // of the head's output row, L2
  std::span<float> usage;    // attention paid to the sequence's last key

  bool wanted() const { return !entropy.empty(); }
};

// out[b, h, i, :] = sum_j softmax_j(scale * query[b, h, i] . key[b, g, j]) value[b, g, j, :]
// over the keys that `visibility` shows, with g = h / (heads / kv_heads).
//
//   query, out     [batch, heads, queries, head_dim]     any strides, last one 1
//   key, value     [batch, kv_heads, keys, head_dim]     kv_heads divides heads
//   log_sum_exp    [batch, heads, queries]               natural log; what the backward pass needs
//   statistics     empty spans where not wanted: then they cost nothing
//
// A row that sees no key (all padding) is zero, its log_sum_exp minus infinity; statistics average
// over all rows, such rows counting zero. The result is the same to the bit for any number of
// workers. Time follows the visible pairs; scratch is O(keys * head_dim) per key/value head in
// flight, and as many are in flight as 32 MiB hold (at least one); nothing is of size queries *
// keys. A single query takes the decode path, which splits over keys.
//
// Storage is float, Bfloat16 or Float16 (query, key, value and out alike); arithmetic is fp32.
// Throws aah::Error where shapes disagree, queries exceed keys, a window is below 1, key_begin or
// key_length lie outside [0, keys], or head_dim is not a multiple of 8 in 8..256 (the reference
// takes any head_dim). Source: FlashAttention-2 (Dao, 2023) for the recurrence; windows per head:
// AAH, arXiv:2608.19203, section 3.
template <typename Storage>
void AttentionForward(ConstView4<Storage> query, ConstView4<Storage> key, ConstView4<Storage> value,
                      const Visibility& visibility, const AttentionOptions& options,
                      View4<Storage> out, View3<float> log_sum_exp,
                      const HeadStatistics& statistics, Parallel& parallel);

// Gradients of sum(out * grad_out) with respect to query, key and value; they are overwritten.
//
//   out, log_sum_exp                  as AttentionForward returned them for the same arguments
//   grad_out, grad_query, out         [batch, heads, queries, head_dim]
//   grad_key, grad_value              [batch, kv_heads, keys, head_dim]; keys no query sees get 0
//
// One pass over the visible tiles, five matrix products each; the probabilities are recomputed from
// log_sum_exp. The same to the bit for any number of workers: how sums are split depends on shapes
// and windows alone. Throws as AttentionForward.
void AttentionBackward(ConstView4<float> query, ConstView4<float> key, ConstView4<float> value,
                       ConstView4<float> out, ConstView3<float> log_sum_exp,
                       ConstView4<float> grad_out, const Visibility& visibility,
                       const AttentionOptions& options, View4<float> grad_query,
                       View4<float> grad_key, View4<float> grad_value, Parallel& parallel);

// The definition in double, loops only: the oracle of every test. Any head_dim, same checks.
void ReferenceAttentionForward(ConstView4<double> query, ConstView4<double> key,
                               ConstView4<double> value, const Visibility& visibility,
                               const AttentionOptions& options, View4<double> out,
                               View3<double> log_sum_exp, std::span<double> entropy,
                               std::span<double> norm, std::span<double> usage);
void ReferenceAttentionBackward(ConstView4<double> query, ConstView4<double> key,
                                ConstView4<double> value, ConstView4<double> grad_out,
                                const Visibility& visibility, const AttentionOptions& options,
                                View4<double> grad_query, View4<double> grad_key,
                                View4<double> grad_value);

// Visible (query, key) pairs of one head of one sequence, sinks included: what a kernel computes.
int64_t VisiblePairs(int32_t window, int32_t sinks, int64_t queries, int64_t keys);

}  // namespace aah

#endif  // AAH_ATTENTION_H_
