#ifndef AAH_LAB_SRC_BENCH_ATTENTION_PROBES_H_
#define AAH_LAB_SRC_BENCH_ATTENTION_PROBES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "bench/interleaved.h"

namespace aah::bench {

inline constexpr int64_t kBatch = 1;
inline constexpr int64_t kHeads = 8;
inline constexpr int64_t kHeadDim = 64;

using Windows = std::vector<int32_t>;  // [kHeads]

Windows UniformWindows(int64_t window);
// T/8, T/8, T/4, T/4, T/2, T/2, T, T.
Windows MixedWindows(int64_t tokens);
double VisiblePairRatio(const Windows& windows, int64_t tokens);
// The window whose visible-pair ratio is nearest to `ratio`, which is in (0, 1].
int64_t WindowForRatio(double ratio, int64_t tokens);
// Operations on visible pairs: 4 head_dim a pair forward (two products), 10 backward (five).
double ForwardFlops(const Windows& windows, int64_t tokens);
double BackwardFlops(const Windows& windows, int64_t tokens);

// Query, key and value [kBatch, kHeads, tokens, kHeadDim], contiguous and normally distributed,
// that want gradients, and a gradient of the output.
struct AttentionTensors {
  explicit AttentionTensors(int64_t token_count);

  int64_t tokens;
  at::Tensor query, key, value;
  at::Tensor grad_out;
};

// What is timed. All go through autograd, allocate their results as a model's would, and are handed
// the same tensors; masks are made before.
// RunPasses times any other attention: `attend`, then the gradients of `inputs` for `grad_out` at
// what it returned; without inputs the forward pass alone.
PassSeconds RunPasses(const std::function<at::Tensor()>& attend,
                      const std::vector<at::Tensor>& inputs, const at::Tensor& grad_out);
PassSeconds RunOurs(const AttentionTensors& tensors, const Windows& windows, bool with_backward);
PassSeconds RunSdpa(const AttentionTensors& tensors, bool with_backward);
PassSeconds RunSdpaMasked(const AttentionTensors& tensors, const at::Tensor& mask);
PassSeconds RunDenseMasked(const AttentionTensors& tensors, const at::Tensor& mask);

// bool [1, kHeads, tokens, tokens]: which keys each query sees.
at::Tensor WindowMask(const Windows& windows, int64_t tokens);

}  // namespace aah::bench

#endif  // AAH_LAB_SRC_BENCH_ATTENTION_PROBES_H_
