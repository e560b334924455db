#ifndef AAH_MODEL_SELECTION_LOGITS_H_
#define AAH_MODEL_SELECTION_LOGITS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "aah/model/attention_variant.h"

namespace aah {

// Which steps will ask the logits for gradients.
struct MixedSteps {
  bool current = false;
  bool next = false;
};

// Where LearnedAttention has its logits from. An item is a query head, or a key/value head where
// its query heads share a window.
class SelectionLogits {
 public:
  virtual ~SelectionLogits() = default;

  // How the logits come about, for plans: one word.
  virtual const char* name() const = 0;

  // Before the first forward pass of an optimiser step. Logits that follow from measurements take
  // up those of the step before here, and gather their own in a step whose next one is mixed.
  virtual void BeginStep(const StepPosition& /*position*/, MixedSteps /*mixed*/) {}

  // Before the attention of every layer and training pass. Tensors may be read, never kept.
  virtual void Observe(const AttentionInputs& /*inputs*/) {}

  // [items of the layer, candidates], float32, differentiable in parameters(); the same until the
  // next BeginStep or update of the parameters.
  virtual at::Tensor Layer(int64_t layer) const = 0;

  // A plan was chosen, `index` [layers * items] into the candidates. Where it is not the likeliest
  // one, logits that can be set make it so by `margin`, so that what is learned next starts from
  // the plan that is in force.
  virtual void Follow(std::span<const int32_t> /*index*/, double /*margin*/) {}

  // Trained beside the model's.
  virtual std::vector<OwnParameter> parameters() = 0;

  virtual PolicyState Save() const = 0;
  virtual void Restore(const PolicyState& state) = 0;
};

// [candidates]: logits that give the last one a weight of 0.9 at temperature 1 and share the rest
// among the others, so that a search begins near full attention.
at::Tensor FirstLogits(int64_t candidates);

// One free parameter per item and candidate, FirstLogits at first: the variant `learned`.
std::unique_ptr<SelectionLogits> MakeFreeLogits(int64_t layers, int64_t items, int64_t candidates,
                                                double learning_rate);

}  // namespace aah

#endif  // AAH_MODEL_SELECTION_LOGITS_H_
