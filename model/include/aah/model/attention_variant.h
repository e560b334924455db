#ifndef AAH_MODEL_ATTENTION_VARIANT_H_
#define AAH_MODEL_ATTENTION_VARIANT_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "aah/model/config.h"
#include "aah/model/window_policy.h"

namespace aah {

// How a model's attention is computed: the core of the attention layers between the qkv and the
// output projection. One object serves all layers of a model, and is theirs; not thread-safe.
class AttentionVariant {
 public:
  virtual ~AttentionVariant() = default;

  // Causal attention of one layer: [batch, heads, tokens, head_dim], laid out
  // [batch, tokens, heads, head_dim] so that joining the heads copies nothing.
  virtual at::Tensor Attend(const AttentionInputs& inputs) = 0;

  // Before the first of the `micro_batches` forward passes of an optimiser step, counted from 0.
  virtual void BeginStep(int64_t /*step*/, int64_t /*micro_batches*/) {}

  // [layers][heads]: the windows in force, clamped to [1, context], for logs and measures.
  virtual std::vector<std::vector<int32_t>> windows() const = 0;
  virtual int32_t sinks() const { return 0; }
  virtual ControlView control() const { return {}; }

  // For checkpoints, and to restore from one; as WindowPolicy's.
  virtual PolicyState Save() const { return {}; }
  virtual void Restore(const PolicyState& state);
};

// Our kernel (torch.ops.aah.attention) with windows by `policy`, for all layers.
std::unique_ptr<AttentionVariant> MakeWindowedAttention(std::unique_ptr<WindowPolicy> policy,
                                                        int32_t sinks);

// A variant that configurations may name.
struct AttentionVariantEntry {
  std::string_view name;
  std::string_view summary;  // one line, for `--help` and docs
  // Throws aah::Error where the attention settings do not fit the variant or the model.
  std::unique_ptr<AttentionVariant> (*make)(const AttentionConfig& attention,
                                            const ModelConfig& model);
};

// The table of all variants, in the order they are documented (docs/adding_a_variant.md).
const std::vector<AttentionVariantEntry>& AttentionVariants();

// The variant that `attention` names. Throws aah::Error for an unknown name (with the nearest
// known one) and as the variant's `make` does.
std::unique_ptr<AttentionVariant> MakeAttentionVariant(const AttentionConfig& attention,
                                                       const ModelConfig& model);

}  // namespace aah

#endif  // AAH_MODEL_ATTENTION_VARIANT_H_
