#ifndef AAH_MODEL_NESTED_OPERATOR_H_
#define AAH_MODEL_NESTED_OPERATOR_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace aah {

// What torch.ops.aah.nested_attention takes beside query, key, value, selection and windows.
struct NestedOperatorOptions {
  // Per head and candidate, [heads * candidates]: 0 leaves it out. Empty: none is left out.
  std::vector<int64_t> live = {};
  int64_t sinks = 0;
  double scale = 0;                                     // 0: head_dim^-1/2
  double softcap = 0;                                   // 0: off
  std::optional<at::Tensor> key_begin = std::nullopt;   // int32 [batch] on the CPU
  std::optional<at::Tensor> key_length = std::nullopt;  // int32 [batch] on the CPU
};

// Gradients flow through `out` alone. A slot is a live candidate of a head, head by head.
struct NestedOperatorResult {
  at::Tensor out;  // [batch, heads, queries, head_dim], laid out [batch, queries, heads, head_dim]
  at::Tensor candidate_out;  // [batch, slots, queries, head_dim]: attention within each window
  at::Tensor log_sum_exp;    // [batch, slots, queries]
};

// Attention mixed over candidate windows as an autograd operator, torch.ops.aah.nested_attention:
//
//   nested_attention(Tensor query, Tensor key, Tensor value, Tensor selection, int[] windows,
//                    int[] live=[], int sinks=0, float scale=0, float softcap=0,
//                    Tensor? key_begin=None, Tensor? key_length=None) -> (Tensor out,
//                    Tensor candidate_out, Tensor log_sum_exp)
//
//   query      [batch, heads, queries, head_dim]   any strides; copied only where the last is not 1
//   key, value [batch, kv_heads, keys, head_dim]   kv_heads divides heads, queries <= keys
//   selection  [heads, candidates], of the type of query, >= 0; pi = softmax(logits / tau) as a
//   rule windows    candidates, ascending, each >= 1
//
// Meaning as in aah/nested_attention.h: out = sum_n selection[h, n] O_n. Gradients go to query,
// key, value and, exactly, to selection; a candidate that is not live has none, is not computed,
// and its weight is not read: whoever leaves candidates out normalises selection over the rest.
// float32, and float64 by the reference loops (slow, exact to double). Wrong arguments raise
// ValueError in Python, c10::ValueError in C++. The gradient is
// torch.ops.aah.nested_attention_backward.
NestedOperatorResult NestedAttention(const at::Tensor& query, const at::Tensor& key,
                                     const at::Tensor& value, const at::Tensor& selection,
                                     at::IntArrayRef windows,
                                     const NestedOperatorOptions& options = {});

}  // namespace aah

#endif  // AAH_MODEL_NESTED_OPERATOR_H_
