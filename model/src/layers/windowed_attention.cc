// Our kernel under any window policy.
#include <ATen/ATen.h>

#include "aah/error.h"
#include "aah/model/attention_variant.h"
#include "aah/model/operator.h"

namespace aah {
namespace {

class WindowedAttention final : public AttentionVariant {
 public:
  WindowedAttention(std::unique_ptr<WindowPolicy> policy, int32_t sinks)
      : policy_(std::move(policy)), sinks_(sinks) {}

  at::Tensor Attend(const AttentionInputs& inputs) override {
    const std::span<const int32_t> windows = policy_->Decide(inputs);
    AttentionOperatorOptions options;
    options.sinks = sinks_;
    options.statistics = policy_->WantsStatistics(inputs);
    // A copy: autograd keeps the windows of this step until its backward pass.
    const at::Tensor windows_tensor =
        at::empty({static_cast<int64_t>(windows.size())}, at::TensorOptions().dtype(at::kInt));
    std::copy(windows.begin(), windows.end(), windows_tensor.mutable_data_ptr<int32_t>());
    AttentionOperatorResult result =
        Attention(inputs.query, inputs.key, inputs.value, windows_tensor, options);
    if (options.statistics) {
      policy_->Observe(inputs, {result.entropy, result.norm, result.usage});
    }
    return result.out;
  }

  void BeginStep(const StepPosition& position) override {
    policy_->BeginStep(position.step, position.micro_batches);
  }
  std::vector<std::vector<int32_t>> windows() const override { return policy_->windows(); }
  int32_t sinks() const override { return sinks_; }
  ControlView control() const override { return policy_->control(); }
  PolicyState Save() const override { return policy_->Save(); }
  void Restore(const PolicyState& state) override { policy_->Restore(state); }

 private:
  std::unique_ptr<WindowPolicy> policy_;
  int32_t sinks_;
};

}  // namespace

std::unique_ptr<AttentionVariant> MakeWindowedAttention(std::unique_ptr<WindowPolicy> policy,
                                                        int32_t sinks) {
  AAH_CHECK(sinks >= 0, "attention.sinks must be a number of tokens from 0 on, got ", sinks);
  return std::make_unique<WindowedAttention>(std::move(policy), sinks);
}

}  // namespace aah
