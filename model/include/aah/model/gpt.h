#ifndef AAH_MODEL_GPT_H_
#define AAH_MODEL_GPT_H_

#include <torch/nn.h>

#include <cstdint>
#include <memory>

#include "aah/model/attention_variant.h"
#include "aah/model/config.h"

namespace aah {

// The rotary angles of all layers, kept in the type they were last asked for.
class RotaryAngles {
 public:
  RotaryAngles(int64_t tokens, int64_t head_dim, double theta);
  const at::Tensor& For(at::ScalarType type);  // as RotaryTable, of that type

 private:
  at::Tensor table_;
  at::Tensor converted_;
};

// x -> output projection(attention(q, k, v)), dropout on the result. Parameters: qkv.weight
// [(heads + 2 kv_heads) * head_dim, width], rows in the order query heads, key heads, value heads;
// proj.weight [width, width].
class AahAttentionImpl : public torch::nn::Module {
 public:
  // `variant` must outlive the module; `rotary` is null for learned positions.
  AahAttentionImpl(const ModelConfig& config, int64_t layer, AttentionVariant* variant,
                   std::shared_ptr<RotaryAngles> rotary);
  at::Tensor forward(const at::Tensor& x);  // [batch, tokens, width] -> the same

 private:
  ModelConfig config_;
  int64_t layer_;
  AttentionVariant* variant_;
  std::shared_ptr<RotaryAngles> rotary_;
  torch::nn::Linear qkv_;
  torch::nn::Linear proj_;
};
TORCH_MODULE(AahAttention);

class MlpImpl : public torch::nn::Module {
 public:
  explicit MlpImpl(const ModelConfig& config);
  at::Tensor forward(const at::Tensor& x);

 private:
  double dropout_;
  torch::nn::Linear fc1_;
  torch::nn::Linear fc2_;
};
TORCH_MODULE(Mlp);

// x + attention(norm(x)), then x + mlp(norm(x)).
class BlockImpl : public torch::nn::Module {
 public:
  BlockImpl(const ModelConfig& config, int64_t layer, AttentionVariant* variant,
            std::shared_ptr<RotaryAngles> rotary);
  at::Tensor forward(const at::Tensor& x);

 private:
  torch::nn::LayerNorm ln1_;
  AahAttention attn_;
  torch::nn::LayerNorm ln2_;
  Mlp mlp_;
};
TORCH_MODULE(Block);

struct PositionScores {
  at::Tensor losses;   // [batch, m], cross entropy in nats
  at::Tensor correct;  // bool [batch, m], whether the target has the greatest logit
};

// The decoder. Parameter names are stable, they are the keys of checkpoints (L: layer index):
//   wte.weight [vocabulary, width], wpe.weight [context, width] (learned positions only),
//   blocks.L.ln1.{weight,bias}, blocks.L.attn.qkv.weight, blocks.L.attn.proj.weight,
//   blocks.L.ln2.{weight,bias}, blocks.L.mlp.{fc1,fc2}.{weight,bias}, ln_f.{weight,bias},
//   lm_head.weight [vocabulary, width] (untied heads only).
class GptImpl : public torch::nn::Module {
 public:
  // Weights are drawn from a generator of their own: the same for the same seed and sizes, whatever
  // the variant. Throws aah::Error as CheckModelConfig.
  GptImpl(const ModelConfig& config, std::unique_ptr<AttentionVariant> attention, uint64_t seed);

  // tokens int64 [batch, n], n <= context, ids below the vocabulary (aah::Error otherwise) ->
  // logits [batch, n, vocabulary]. Materialises them all: for sampling and small checks.
  at::Tensor forward(const at::Tensor& tokens);

  // Mean cross entropy in nats over all positions, or over those of `scored` alone (int64 [m], of
  // the n of every row), a scalar; tokens and targets int64 [batch, n].
  // The logits exist for a stretch of rows at a time only, and their gradient is taken at once, so
  // that memory does not grow with batch * n * vocabulary.
  at::Tensor Loss(const at::Tensor& tokens, const at::Tensor& targets,
                  const at::Tensor& scored = {});

  // The same position by position, without gradient.
  PositionScores ScorePositions(const at::Tensor& tokens, const at::Tensor& targets,
                                const at::Tensor& scored = {});

  const ModelConfig& config() const { return config_; }
  AttentionVariant& attention() { return *attention_; }
  const AttentionVariant& attention() const { return *attention_; }

 private:
  at::Tensor Hidden(const at::Tensor& tokens);  // after the last norm, [batch, n, width]
  const at::Tensor& HeadWeight() const;
  void Initialise(uint64_t seed);

  ModelConfig config_;
  std::unique_ptr<AttentionVariant> attention_;
  torch::nn::Embedding wte_{nullptr};
  torch::nn::Embedding wpe_{nullptr};
  torch::nn::ModuleList blocks_;
  torch::nn::LayerNorm ln_f_{nullptr};
  torch::nn::Linear lm_head_{nullptr};
};
TORCH_MODULE(Gpt);

}  // namespace aah

#endif  // AAH_MODEL_GPT_H_
