#ifndef AAH_MODEL_ATTENTION_VARIANT_H_
#define AAH_MODEL_ATTENTION_VARIANT_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aah/model/config.h"
#include "aah/model/selection_summary.h"
#include "aah/model/window_policy.h"
#include "aah/window_plan.h"

namespace aah {

// An optimiser step that begins.
struct StepPosition {
  int64_t step = 0;           // from 0
  int64_t steps = 0;          // of the whole run; 0: unknown, which variants with phases refuse
  int64_t micro_batches = 1;  // forward passes of this step
};

// A parameter of the variant itself, trained with the model's: at a learning rate of its own,
// without weight decay, and neither part of the clipped norm nor scaled by it.
struct OwnParameter {
  std::string name;
  at::Tensor value;  // float32 leaf that requires a gradient
  double learning_rate = 0;
};

// The same for logs, with the weights themselves.
struct SelectionView : SelectionSummary {
  // [layers * heads, candidates], float64, in steps whose weights are to be kept; else undefined.
  at::Tensor weights;
  std::vector<int32_t> candidates;
};

// How a model's attention is computed: the core of the attention layers between the qkv and the
// output projection. One object serves all layers of a model, and is theirs; not thread-safe.
class AttentionVariant {
 public:
  virtual ~AttentionVariant() = default;

  // Causal attention of one layer: [batch, heads, tokens, head_dim], laid out
  // [batch, tokens, heads, head_dim] so that joining the heads copies nothing.
  virtual at::Tensor Attend(const AttentionInputs& inputs) = 0;

  // Before the first forward pass of an optimiser step.
  virtual void BeginStep(const StepPosition& /*position*/) {}

  // After the last backward pass: brings the gradients of parameters() up to date.
  virtual void EndBackward() {}

  // What the optimiser trains beside the model's parameters; the same tensors at every call.
  virtual std::vector<OwnParameter> parameters() { return {}; }

  // [layers][heads]: the windows in force, clamped to [1, context], for logs and measures.
  virtual std::vector<std::vector<int32_t>> windows() const = 0;
  virtual int32_t sinks() const { return 0; }

  // The same of what the step that ran last computed, where that is another thing than the windows
  // in force: for measures of what a run costs.
  virtual std::vector<std::vector<int32_t>> computed_windows() const { return windows(); }
  virtual ControlView control() const { return {}; }
  virtual std::optional<SelectionView> selection() const { return {}; }

  // The windows that the variant has learned, once it has; without provenance but the method.
  virtual std::optional<WindowPlan> plan() const { return {}; }

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
