#ifndef AAH_MODEL_OPERATOR_H_
#define AAH_MODEL_OPERATOR_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace aah {

// What torch.ops.aah.attention takes beside query, key, value and windows.
struct AttentionOperatorOptions {
  int64_t sinks = 0;
  double scale = 0;                      // 0: head_dim^-1/2
  double softcap = 0;                    // 0: off
  std::optional<at::Tensor> key_begin;   // int32 [batch] on the CPU
  std::optional<at::Tensor> key_length;  // int32 [batch] on the CPU
  bool statistics = false;
};

// What torch.ops.aah.attention returns. Gradients flow through `out` alone.
struct AttentionOperatorResult {
  at::Tensor out;  // [batch, heads, queries, head_dim], laid out [batch, queries, heads, head_dim]
  at::Tensor log_sum_exp;  // [batch, heads, queries]
  at::Tensor entropy;      // [heads] where statistics were asked for, else [0]; so the next two
  at::Tensor norm;
  at::Tensor usage;
};

// Windowed attention as an autograd operator, torch.ops.aah.attention:
//
//   attention(Tensor query, Tensor key, Tensor value, Tensor windows, int sinks=0, float scale=0,
//             float softcap=0, Tensor? key_begin=None, Tensor? key_length=None,
//             bool statistics=False) -> (Tensor out, Tensor log_sum_exp, Tensor entropy,
//             Tensor norm, Tensor usage)
//
//   query      [batch, heads, queries, head_dim]   any strides; copied only where the last is not 1
//   key, value [batch, kv_heads, keys, head_dim]   kv_heads divides heads, queries <= keys
//   windows    int32 [heads] on the CPU, each >= 1; may differ at every call
//
// Meaning as in aah/attention.h. float32 has gradients; bfloat16 and float16 are forward only;
// float64 takes the reference loops (slow, exact to double: for gradient checks and golden
// numbers) and any head_dim. log_sum_exp and statistics are float32, or float64 for float64.
// Wrong arguments raise ValueError in Python, c10::ValueError in C++. The gradient is
// torch.ops.aah.attention_backward, which is not differentiable itself.
AttentionOperatorResult Attention(const at::Tensor& query, const at::Tensor& key,
                                  const at::Tensor& value, const at::Tensor& windows,
                                  const AttentionOperatorOptions& options = {});

// cos and sin of the rotary angles, float64 [2, tokens, head_dim / 2]: token t's pair d turns by
// t * theta^(-2 d / head_dim).
at::Tensor RotaryTable(int64_t tokens, int64_t head_dim, double theta);

// torch.ops.aah.rotary(Tensor x, Tensor table, bool inverse=False) -> Tensor: turns the pair
// (x[d], x[d + head_dim / 2]) of every head by its angle, the first token by the table's first row.
// x [batch, tokens, heads, head_dim], float32 or float64; table [2, at least tokens, head_dim / 2],
// of the type of x. Differentiable in x. Source: RoFormer (Su et al., 2021), in the half-rotation
// layout of GPT-NeoX and Llama.
at::Tensor ApplyRotary(const at::Tensor& x, const at::Tensor& table);

}  // namespace aah

#endif  // AAH_MODEL_OPERATOR_H_
