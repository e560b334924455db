// Schemas, registrations and gradients of the nested-window operator.
#include "aah/model/nested_operator.h"

#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <cstdint>
#include <vector>

#include "ops/nested_kernels.h"
#include "ops/tensor_arguments.h"

namespace aah {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

NestedOutputTensors CallNestedAttention(const at::Tensor& query, const at::Tensor& key,
                                        const at::Tensor& value, const at::Tensor& selection,
                                        at::IntArrayRef windows, at::IntArrayRef live,
                                        int64_t sinks, double scale, double softcap,
                                        const OptionalTensor& key_begin,
                                        const OptionalTensor& key_length) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("aah::nested_attention", "")
                             .typed<decltype(NestedAttentionCpu)>();
  return op.call(query, key, value, selection, windows, live, sinks, scale, softcap, key_begin,
                 key_length);
}

class NestedFunction : public torch::autograd::Function<NestedFunction> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& query,
                               const at::Tensor& key, const at::Tensor& value,
                               const at::Tensor& selection, const std::vector<int64_t>& windows,
                               const std::vector<int64_t>& live, int64_t sinks, double scale,
                               double softcap, const OptionalTensor& key_begin,
                               const OptionalTensor& key_length) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    auto [out, candidate_out, log_sum_exp] = CallNestedAttention(
        query, key, value, selection, windows, live, sinks, scale, softcap, key_begin, key_length);
    context->save_for_backward({query, key, value, selection, candidate_out, log_sum_exp,
                                key_begin.value_or(at::Tensor()),
                                key_length.value_or(at::Tensor())});
    context->saved_data["windows"] = windows;
    context->saved_data["live"] = live;
    context->saved_data["sinks"] = sinks;
    context->saved_data["scale"] = scale;
    context->saved_data["softcap"] = softcap;
    context->mark_non_differentiable({candidate_out, log_sum_exp});
    return {out, candidate_out, log_sum_exp};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    static const auto op = c10::Dispatcher::singleton()
                               .findSchemaOrThrow("aah::nested_attention_backward", "")
                               .typed<decltype(NestedAttentionBackwardCpu)>();
    const variable_list saved = context->get_saved_variables();
    auto& data = context->saved_data;
    auto [grad_query, grad_key, grad_value, grad_selection] =
        op.call(gradients[0], saved[0], saved[1], saved[2], saved[3], saved[4], saved[5],
                data["windows"].toIntVector(), data["live"].toIntVector(), data["sinks"].toInt(),
                data["scale"].toDouble(), data["softcap"].toDouble(), Optional(saved[6]),
                Optional(saved[7]));
    variable_list result(11);
    result[0] = grad_query;
    result[1] = grad_key;
    result[2] = grad_value;
    result[3] = grad_selection;
    return result;
  }
};

NestedOutputTensors NestedAttentionAutograd(const at::Tensor& query, const at::Tensor& key,
                                            const at::Tensor& value, const at::Tensor& selection,
                                            at::IntArrayRef windows, at::IntArrayRef live,
                                            int64_t sinks, double scale, double softcap,
                                            const OptionalTensor& key_begin,
                                            const OptionalTensor& key_length) {
  const variable_list outputs =
      NestedFunction::apply(query, key, value, selection, windows.vec(), live.vec(), sinks, scale,
                            softcap, key_begin, key_length);
  return {outputs[0], outputs[1], outputs[2]};
}

}  // namespace

NestedOperatorResult NestedAttention(const at::Tensor& query, const at::Tensor& key,
                                     const at::Tensor& value, const at::Tensor& selection,
                                     at::IntArrayRef windows,
                                     const NestedOperatorOptions& options) {
  auto [out, candidate_out, log_sum_exp] =
      CallNestedAttention(query, key, value, selection, windows, options.live, options.sinks,
                          options.scale, options.softcap, options.key_begin, options.key_length);
  return {out, candidate_out, log_sum_exp};
}

}  // namespace aah

TORCH_LIBRARY_FRAGMENT(aah, library) {
  const std::vector<at::Tag> tags = {at::Tag::pt2_compliant_tag};
  library.def(
      "nested_attention(Tensor query, Tensor key, Tensor value, Tensor selection, int[] windows, "
      "int[] live=[], int sinks=0, float scale=0., float softcap=0., Tensor? key_begin=None, "
      "Tensor? key_length=None) -> (Tensor out, Tensor candidate_out, Tensor log_sum_exp)",
      tags);
  library.def(
      "nested_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, "
      "Tensor selection, Tensor candidate_out, Tensor log_sum_exp, int[] windows, int[] live=[], "
      "int sinks=0, float scale=0., float softcap=0., Tensor? key_begin=None, "
      "Tensor? key_length=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value, "
      "Tensor grad_selection)",
      tags);
}

TORCH_LIBRARY_IMPL(aah, CPU, library) {
  library.impl("nested_attention", &aah::NestedAttentionCpu);
  library.impl("nested_attention_backward", &aah::NestedAttentionBackwardCpu);
}

TORCH_LIBRARY_IMPL(aah, Meta, library) {
  library.impl("nested_attention", &aah::NestedAttentionMeta);
  library.impl("nested_attention_backward", &aah::NestedAttentionBackwardMeta);
}

TORCH_LIBRARY_IMPL(aah, Autograd, library) {
  library.impl("nested_attention", &aah::NestedAttentionAutograd);
  library.impl("nested_attention_backward", torch::autograd::autogradNotImplementedFallback());
}
