// torch's fused causal attention, as scaled_dot_product_attention runs it on the CPU; called below
// the autograd of torch so that both directions can be timed as our operator is.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "aah/model/attention_timer.h"
#include "layers/variants.h"

namespace aah {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class SdpaFunction : public torch::autograd::Function<SdpaFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query,
                            const at::Tensor& key, const at::Tensor& value) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const AttentionTimer timer;
    auto [out, log_sum_exp] = at::_scaled_dot_product_flash_attention_for_cpu(
        query, key, value, /*dropout_p=*/0.0, /*is_causal=*/true);
    context->save_for_backward({query, key, value, out, log_sum_exp});
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const AttentionTimer timer;
    auto [grad_query, grad_key, grad_value] =
        at::_scaled_dot_product_flash_attention_for_cpu_backward(
            gradients[0], saved[0], saved[1], saved[2], saved[3], saved[4], /*dropout_p=*/0.0,
            /*is_causal=*/true);
    return {grad_query, grad_key, grad_value};
  }
};

class SdpaAttention final : public AttentionVariant {
 public:
  explicit SdpaAttention(const ModelConfig& model)
      : windows_(
            static_cast<size_t>(model.layers),
            std::vector(static_cast<size_t>(model.heads), static_cast<int32_t>(model.context))) {}

  at::Tensor Attend(const AttentionInputs& inputs) override {
    // The kernel wants as many key/value heads as query heads.
    const int64_t group = inputs.query.size(1) / inputs.key.size(1);
    const auto repeat = [group](const at::Tensor& tensor) {
      return group == 1 ? tensor : tensor.repeat_interleave(group, 1);
    };
    return SdpaFunction::apply(inputs.query, repeat(inputs.key), repeat(inputs.value));
  }

  std::vector<std::vector<int32_t>> windows() const override { return windows_; }

 private:
  std::vector<std::vector<int32_t>> windows_;
};

}  // namespace

std::unique_ptr<AttentionVariant> MakeSdpaAttention(const AttentionConfig& attention,
                                                    const ModelConfig& model) {
  RefuseUnusedSettings(attention, false, false, false);
  return std::make_unique<SdpaAttention>(model);
}

}  // namespace aah
