#include <torch/torch.h>

#include "aah/model/gpt.h"
#include "aah/model/operator.h"

namespace aah {
namespace {

torch::nn::Linear MakeLinear(int64_t in, int64_t out, bool bias) {
  return torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(bias));
}

torch::nn::LayerNorm MakeNorm(const ModelConfig& config) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({config.width}).eps(config.norm_epsilon));
}

int64_t QkvRows(const ModelConfig& config) {
  return (config.heads + 2 * config.kv_heads_or_default()) * config.head_dim();
}

}  // namespace

RotaryAngles::RotaryAngles(int64_t tokens, int64_t head_dim, double theta)
    : table_(RotaryTable(tokens, head_dim, theta)), converted_(table_) {}

const at::Tensor& RotaryAngles::For(at::ScalarType type) {
  if (converted_.scalar_type() != type) converted_ = table_.to(type);
  return converted_;
}

AahAttentionImpl::AahAttentionImpl(const ModelConfig& config, int64_t layer,
                                   AttentionVariant* variant, std::shared_ptr<RotaryAngles> rotary)
    : config_(config),
      layer_(layer),
      variant_(variant),
      rotary_(std::move(rotary)),
      qkv_(register_module("qkv", MakeLinear(config.width, QkvRows(config), false))),
      proj_(register_module("proj", MakeLinear(config.width, config.width, false))) {}

at::Tensor AahAttentionImpl::forward(const at::Tensor& x) {
  const int64_t heads = config_.heads;
  const int64_t kv_heads = config_.kv_heads_or_default();
  const at::Tensor qkv =
      qkv_->forward(x).view({x.size(0), x.size(1), heads + 2 * kv_heads, config_.head_dim()});
  // [batch, tokens, heads, head_dim] views; the operator wants heads before tokens, by stride.
  std::vector<at::Tensor> parts;
  if (rotary_) {
    // Query and key heads lie side by side: one pass turns them all.
    const std::vector<at::Tensor> split = qkv.split_with_sizes({heads + kv_heads, kv_heads}, 2);
    parts =
        ApplyRotary(split[0], rotary_->For(x.scalar_type())).split_with_sizes({heads, kv_heads}, 2);
    parts.push_back(split[1]);
  } else {
    parts = qkv.split_with_sizes({heads, kv_heads, kv_heads}, 2);
  }
  const at::Tensor out =
      variant_->Attend({layer_, parts[0].transpose(1, 2), parts[1].transpose(1, 2),
                        parts[2].transpose(1, 2), is_training()});
  const at::Tensor joined = out.transpose(1, 2).reshape({x.size(0), x.size(1), config_.width});
  return torch::dropout(proj_->forward(joined), config_.dropout, is_training());
}

MlpImpl::MlpImpl(const ModelConfig& config)
    : dropout_(config.dropout),
      fc1_(register_module("fc1", MakeLinear(config.width, config.mlp_width_or_default(), true))),
      fc2_(register_module("fc2", MakeLinear(config.mlp_width_or_default(), config.width, true))) {}

at::Tensor MlpImpl::forward(const at::Tensor& x) {
  return torch::dropout(fc2_->forward(torch::gelu(fc1_->forward(x))), dropout_, is_training());
}

BlockImpl::BlockImpl(const ModelConfig& config, int64_t layer, AttentionVariant* variant,
                     std::shared_ptr<RotaryAngles> rotary)
    : ln1_(register_module("ln1", MakeNorm(config))),
      attn_(register_module("attn", AahAttention(config, layer, variant, std::move(rotary)))),
      ln2_(register_module("ln2", MakeNorm(config))),
      mlp_(register_module("mlp", Mlp(config))) {}

at::Tensor BlockImpl::forward(const at::Tensor& x) {
  const at::Tensor attended = x + attn_->forward(ln1_->forward(x));
  return attended + mlp_->forward(ln2_->forward(attended));
}

}  // namespace aah
