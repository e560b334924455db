#ifndef AAH_MODEL_SELECTION_LOGITS_H_
#define AAH_MODEL_SELECTION_LOGITS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
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

  // Trained beside the model's.
  virtual std::vector<OwnParameter> parameters() = 0;

  virtual PolicyState Save() const = 0;
  virtual void Restore(const PolicyState& state) = 0;
};

// One free parameter per item and candidate, 0 at first: the variant `learned`.
std::unique_ptr<SelectionLogits> MakeFreeLogits(int64_t layers, int64_t items, int64_t candidates,
                                                double learning_rate);

}  // namespace aah

#endif  // AAH_MODEL_SELECTION_LOGITS_H_
