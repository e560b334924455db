#ifndef AAH_MODEL_WINDOW_POLICY_H_
#define AAH_MODEL_WINDOW_POLICY_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "aah/controller.h"

namespace aah {

// One layer's attention, about to be computed.
struct AttentionInputs {
  int64_t layer = 0;
  at::Tensor query;  // [batch, heads, tokens, head_dim], key and it rotated already
  at::Tensor key;    // [batch, kv_heads, tokens, head_dim]
  at::Tensor value;
  bool training = false;  // false: evaluation, in which no state may change
};

// By-products of one layer's attention, per head (METHOD.md section 2); [heads], float32 or
// float64.
struct LayerStatistics {
  at::Tensor entropy;
  at::Tensor norm;
  at::Tensor usage;
};

// What a checkpoint holds of a policy or variant: arrays by name, and the rest as one JSON text.
struct PolicyState {
  std::map<std::string, at::Tensor> tensors;
  std::string json;  // empty: nothing
};

// What controllers did in the step that runs or ran last, for logs; no part of any state.
struct ControlView {
  std::vector<const Controller*> layers;  // borrowed from the policy; empty: nothing is controlled
  bool grouped = false;  // groups were measured in this step: the reports' hierarchies are new
  double features_seconds = 0;  // of all layers
};

// Who decides the windows of a layer at a step. Not how attention is computed (AttentionVariant).
// One policy serves all layers of a model; not thread-safe, as a module is not.
class WindowPolicy {
 public:
  virtual ~WindowPolicy() = default;

  // Before the first of the `micro_batches` forward passes of an optimiser step, counted from 0.
  // Windows stay the same within a step: a policy that decides from query, key and value does so in
  // a layer's first forward pass of the step.
  virtual void BeginStep(int64_t /*step*/, int64_t /*micro_batches*/) {}

  // The windows of `inputs.layer` for the attention that comes next, [heads], each >= 1; valid
  // until the next call. Tensors may be read, never kept. Changes no state in evaluation.
  virtual std::span<const int32_t> Decide(const AttentionInputs& inputs) = 0;

  // Whether Observe wants the by-products of the attention that comes next.
  virtual bool WantsStatistics(const AttentionInputs& /*inputs*/) const { return false; }
  virtual void Observe(const AttentionInputs& /*inputs*/, const LayerStatistics& /*statistics*/) {}

  // [layers][heads]: the windows in force, for logs and measures.
  virtual std::vector<std::vector<int32_t>> windows() const = 0;
  virtual ControlView control() const { return {}; }

  // For checkpoints. Restore throws aah::Error for a state of another kind or shape.
  virtual PolicyState Save() const { return {}; }
  virtual void Restore(const PolicyState& state);
};

}  // namespace aah

#endif  // AAH_MODEL_WINDOW_POLICY_H_
