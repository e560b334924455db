#ifndef AAH_TESTS_MODEL_LEARNED_SUPPORT_H_
#define AAH_TESTS_MODEL_LEARNED_SUPPORT_H_

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "aah/model/learned_attention.h"
#include "aah/model/operator.h"

namespace aah {

// A small case of learned windows: 2 layers of 4 heads of 8, 64 tokens, candidates 4, 16 and 64.

inline constexpr int64_t kContext = 64;

inline ModelConfig Model(int64_t kv_heads = 4) {
  ModelConfig model;
  model.layers = 2;
  model.heads = 4;
  model.kv_heads = kv_heads;
  model.width = 32;
  model.context = kContext;
  return model;
}

// Of 100 steps: 10 full, 20 to search, then a plan, looked at every 10 steps.
inline LearnedOptions Options() {
  LearnedOptions options;
  options.candidates = {4, 16, 64};
  options.budget = 0.3;
  options.warmup = 0.1;
  options.search = 0.2;
  options.track_every = 10;
  return options;
}

inline AttentionInputs Inputs(int64_t layer, bool training = true, int64_t kv_heads = 4,
                              at::ScalarType type = at::kFloat) {
  at::manual_seed(static_cast<uint64_t>(layer) + 1);
  const auto random = [&](int64_t heads) { return at::randn({2, heads, kContext, 8}, type); };
  return {layer, random(4), random(kv_heads), random(kv_heads), training};
}

inline at::Tensor Plain(const AttentionInputs& inputs, const std::vector<int32_t>& windows) {
  return Attention(inputs.query, inputs.key, inputs.value, at::tensor(windows, at::kInt)).out;
}

inline void Begin(LearnedAttention& attention, int64_t step) {
  attention.BeginStep({.step = step, .steps = 100, .micro_batches = 1});
}

// Sets the logits, [layers, items, candidates].
inline void SetLogits(LearnedAttention& attention, const at::Tensor& logits) {
  const torch::NoGradGuard no_grad;
  attention.parameters().front().value.copy_(logits);
}

// Logits by which each head would have the candidate `index` says.
inline at::Tensor LogitsFor(const std::vector<int64_t>& index, double height = 3) {
  at::Tensor logits = torch::zeros({2, 4, 3});
  for (size_t i = 0; i < index.size(); ++i) {
    logits.view({8, 3})[static_cast<int64_t>(i)][index[i]] = height;
  }
  return logits;
}

}  // namespace aah

#endif  // AAH_TESTS_MODEL_LEARNED_SUPPORT_H_
