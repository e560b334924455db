#ifndef AAH_MODEL_AAH_POLICY_H_
#define AAH_MODEL_AAH_POLICY_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "aah/controller.h"
#include "aah/model/window_policy.h"

namespace aah {

// Windows by the AAH controller (METHOD.md sections 3 to 6), one for each layer:
//
//   step begins
//   for each layer, in its first forward pass of the step:
//     Decide    due: sum q, k and v, reduce the sums, advance the controller -> windows
//     Observe   entropy, norm and usage, if the next step reads them
//   further micro-batches: the same windows
//
// The controller advances once per optimiser step. With one micro-batch a decision is made from the
// q, k and v of the step itself, as the paper does. With several, windows must be known before most
// of the step is seen: then it is made from all micro-batches of the step before, and the very
// first one, which has none before it, from its first micro-batch.
//
// q and k are taken as attention takes them: after rotation, where positions are rotary. (The
// method's own models have learned positions, where there is no difference.) Models in double or
// half precision are measured in float32.
class AahPolicy final : public WindowPolicy {
 public:
  // Replaces `values` by their elementwise sum over all replicas that must decide alike. Called
  // once per layer and decision, by all of them in the same order.
  using Reduction = std::function<void(std::span<double> values)>;

  // For `layers` layers of `heads` query heads over kv_heads, `context` tokens at most. Throws
  // aah::Error for options that CheckControlOptions refuses. `scorers`, one a layer, takes the
  // place of the random ones.
  AahPolicy(const ControlOptions& options, int64_t layers, int64_t heads, int64_t kv_heads,
            int64_t context, std::vector<OwnedScorers> scorers = {});
  ~AahPolicy() override;

  void set_reduction(Reduction reduction) { reduction_ = std::move(reduction); }

  void BeginStep(int64_t step, int64_t micro_batches) override;
  std::span<const int32_t> Decide(const AttentionInputs& inputs) override;
  bool WantsStatistics(const AttentionInputs& inputs) const override;
  void Observe(const AttentionInputs& inputs, const LayerStatistics& statistics) override;
  std::vector<std::vector<int32_t>> windows() const override;
  ControlView control() const override;
  PolicyState Save() const override;
  void Restore(const PolicyState& state) override;

 private:
  struct Layer;

  void Advance(const AttentionInputs& inputs, Layer& layer);
  void Measure(const AttentionInputs& inputs, ProjectionSums& sums);
  void Reduce(Layer& layer) const;

  std::string regime_;
  int64_t context_;
  std::vector<OwnedScorers> scorers_;  // borrowed by the controllers
  std::vector<Layer> layers_;
  Reduction reduction_;
  int64_t step_ = -1;  // the one that runs; -1: none yet
  int64_t micro_batches_ = 1;
  double features_seconds_ = 0;
};

}  // namespace aah

#endif  // AAH_MODEL_AAH_POLICY_H_
