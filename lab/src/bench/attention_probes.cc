#include "bench/attention_probes.h"

#include <torch/torch.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "aah/attention.h"
#include "aah/model/allocation_measures.h"
#include "aah/model/operator.h"
#include "bench/interleaved.h"

namespace aah::bench {
namespace {

double Pairs(const Windows& windows, int64_t tokens) {
  double pairs = 0;
  for (const int32_t window : windows) {
    pairs += static_cast<double>(VisiblePairs(window, 0, tokens, tokens));
  }
  return pairs * static_cast<double>(kBatch);
}

std::vector<at::Tensor> WithGradients(const AttentionTensors& tensors) {
  return {tensors.query, tensors.key, tensors.value};
}

}  // namespace

Windows UniformWindows(int64_t window) {
  return Windows(static_cast<size_t>(kHeads), static_cast<int32_t>(window));
}

Windows MixedWindows(int64_t tokens) {
  Windows windows;
  for (const int64_t divisor : {8, 8, 4, 4, 2, 2, 1, 1}) {
    windows.push_back(static_cast<int32_t>(tokens / divisor));
  }
  return windows;
}

double VisiblePairRatio(const Windows& windows, int64_t tokens) {
  return aah::VisiblePairRatio({windows}, 0, tokens);
}

int64_t WindowForRatio(double ratio, int64_t tokens) {
  // A head's pairs are w T - w (w - 1) / 2: the root of a quadratic equation, then its neighbours.
  const auto all =
      static_cast<double>(VisiblePairs(static_cast<int32_t>(tokens), 0, tokens, tokens));
  const double b = static_cast<double>(tokens) + 0.5;
  const auto root = static_cast<int64_t>(b - std::sqrt(b * b - 2 * ratio * all));
  int64_t best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t window = std::max<int64_t>(1, root - 1); window <= std::min(tokens, root + 2);
       ++window) {
    const auto pairs =
        static_cast<double>(VisiblePairs(static_cast<int32_t>(window), 0, tokens, tokens));
    const double distance = std::abs(pairs / all - ratio);
    if (distance < least) {
      least = distance;
      best = window;
    }
  }
  return best;
}

double ForwardFlops(const Windows& windows, int64_t tokens) {
  return 4.0 * static_cast<double>(kHeadDim) * Pairs(windows, tokens);
}

double BackwardFlops(const Windows& windows, int64_t tokens) {
  return 10.0 * static_cast<double>(kHeadDim) * Pairs(windows, tokens);
}

AttentionTensors::AttentionTensors(int64_t token_count) : tokens(token_count) {
  torch::manual_seed(0);
  const auto draw = [&] { return torch::randn({kBatch, kHeads, tokens, kHeadDim}); };
  query = draw().requires_grad_();
  key = draw().requires_grad_();
  value = draw().requires_grad_();
  // As a model's output projection hands it back: heads inside tokens.
  grad_out = torch::randn({kBatch, tokens, kHeads, kHeadDim}).transpose(1, 2);
}

PassSeconds RunPasses(const std::function<at::Tensor()>& attend,
                      const std::vector<at::Tensor>& inputs, const at::Tensor& grad_out) {
  PassSeconds seconds;
  at::Tensor out;
  seconds.forward = Seconds([&] { out = attend(); });
  if (!inputs.empty()) {
    seconds.backward = Seconds([&] { torch::autograd::grad({out}, inputs, {grad_out}); });
  }
  return seconds;
}

PassSeconds RunOurs(const AttentionTensors& tensors, const Windows& windows, bool with_backward) {
  const at::Tensor window_tensor = torch::tensor(windows, torch::kInt32);
  return RunPasses(
      [&] { return Attention(tensors.query, tensors.key, tensors.value, window_tensor).out; },
      with_backward ? WithGradients(tensors) : std::vector<at::Tensor>(), tensors.grad_out);
}

PassSeconds RunSdpa(const AttentionTensors& tensors, bool with_backward) {
  return RunPasses(
      [&] {
        return at::scaled_dot_product_attention(tensors.query, tensors.key, tensors.value,
                                                /*attn_mask=*/{}, /*dropout_p=*/0.0,
                                                /*is_causal=*/true);
      },
      with_backward ? WithGradients(tensors) : std::vector<at::Tensor>(), tensors.grad_out);
}

PassSeconds RunSdpaMasked(const AttentionTensors& tensors, const at::Tensor& mask) {
  const torch::NoGradGuard no_gradients;
  return RunPasses(
      [&] {
        return at::scaled_dot_product_attention(tensors.query, tensors.key, tensors.value, mask);
      },
      {}, {});
}

PassSeconds RunDenseMasked(const AttentionTensors& tensors, const at::Tensor& mask) {
  const at::Tensor hidden = mask.logical_not();
  const double scale = 1.0 / std::sqrt(static_cast<double>(kHeadDim));
  const auto attend = [&] {
    const at::Tensor scores = torch::matmul(tensors.query, tensors.key.transpose(-2, -1)) * scale;
    const at::Tensor masked = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
    return torch::matmul(torch::softmax(masked, -1), tensors.value);
  };
  return RunPasses(attend, WithGradients(tensors), tensors.grad_out);
}

at::Tensor WindowMask(const Windows& windows, int64_t tokens) {
  const at::Tensor position = torch::arange(tokens, torch::kInt32);
  const at::Tensor distance = position.unsqueeze(1) - position.unsqueeze(0);
  std::vector<at::Tensor> masks;
  for (const int32_t window : windows) {
    masks.push_back(distance.ge(0).logical_and(distance.lt(window)));
  }
  return torch::stack(masks).unsqueeze(0);
}

}  // namespace aah::bench
