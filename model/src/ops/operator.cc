// Schemas, registrations and gradients of the operators in the torch.ops.aah namespace.
#include "aah/model/operator.h"

#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "ops/attention_kernels.h"
#include "ops/tensor_arguments.h"

namespace aah {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

AttentionOutputs CallAttention(const at::Tensor& query, const at::Tensor& key,
                               const at::Tensor& value, const at::Tensor& windows, int64_t sinks,
                               double scale, double softcap, const OptionalTensor& key_begin,
                               const OptionalTensor& key_length, bool statistics) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("aah::attention", "")
                             .typed<decltype(AttentionCpu)>();
  return op.call(query, key, value, windows, sinks, scale, softcap, key_begin, key_length,
                 statistics);
}

AttentionGradients CallAttentionBackward(const at::Tensor& grad_out, const at::Tensor& query,
                                         const at::Tensor& key, const at::Tensor& value,
                                         const at::Tensor& out, const at::Tensor& log_sum_exp,
                                         const at::Tensor& windows, int64_t sinks, double scale,
                                         double softcap, const OptionalTensor& key_begin,
                                         const OptionalTensor& key_length) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("aah::attention_backward", "")
                             .typed<decltype(AttentionBackwardCpu)>();
  return op.call(grad_out, query, key, value, out, log_sum_exp, windows, sinks, scale, softcap,
                 key_begin, key_length);
}

at::Tensor CallRotary(const at::Tensor& x, const at::Tensor& table, bool inverse) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("aah::rotary", "")
                             .typed<decltype(RotaryCpu)>();
  return op.call(x, table, inverse);
}

class AttentionFunction : public torch::autograd::Function<AttentionFunction> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& query,
                               const at::Tensor& key, const at::Tensor& value,
                               const at::Tensor& windows, int64_t sinks, double scale,
                               double softcap, const OptionalTensor& key_begin,
                               const OptionalTensor& key_length, bool statistics) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    auto [out, log_sum_exp, entropy, norm, usage] = CallAttention(
        query, key, value, windows, sinks, scale, softcap, key_begin, key_length, statistics);
    context->save_for_backward({query, key, value, out, log_sum_exp, windows,
                                key_begin.value_or(at::Tensor()),
                                key_length.value_or(at::Tensor())});
    context->saved_data["sinks"] = sinks;
    context->saved_data["scale"] = scale;
    context->saved_data["softcap"] = softcap;
    context->mark_non_differentiable({log_sum_exp, entropy, norm, usage});
    return {out, log_sum_exp, entropy, norm, usage};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    auto [grad_query, grad_key, grad_value] = CallAttentionBackward(
        gradients[0], saved[0], saved[1], saved[2], saved[3], saved[4], saved[5],
        context->saved_data["sinks"].toInt(), context->saved_data["scale"].toDouble(),
        context->saved_data["softcap"].toDouble(), Optional(saved[6]), Optional(saved[7]));
    variable_list result(10);
    result[0] = grad_query;
    result[1] = grad_key;
    result[2] = grad_value;
    return result;
  }
};

AttentionOutputs AttentionAutograd(const at::Tensor& query, const at::Tensor& key,
                                   const at::Tensor& value, const at::Tensor& windows,
                                   int64_t sinks, double scale, double softcap,
                                   const OptionalTensor& key_begin,
                                   const OptionalTensor& key_length, bool statistics) {
  const variable_list outputs = AttentionFunction::apply(
      query, key, value, windows, sinks, scale, softcap, key_begin, key_length, statistics);
  return {outputs[0], outputs[1], outputs[2], outputs[3], outputs[4]};
}

class RotaryFunction : public torch::autograd::Function<RotaryFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& table,
                            bool inverse) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    context->save_for_backward({table});
    context->saved_data["inverse"] = inverse;
    return CallRotary(x, table, inverse);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const bool inverse = context->saved_data["inverse"].toBool();
    return {CallRotary(gradients[0], context->get_saved_variables()[0], !inverse), at::Tensor(),
            at::Tensor()};
  }
};

at::Tensor RotaryAutograd(const at::Tensor& x, const at::Tensor& table, bool inverse) {
  return RotaryFunction::apply(x, table, inverse);
}

}  // namespace

AttentionOperatorResult Attention(const at::Tensor& query, const at::Tensor& key,
                                  const at::Tensor& value, const at::Tensor& windows,
                                  const AttentionOperatorOptions& options) {
  auto [out, log_sum_exp, entropy, norm, usage] =
      CallAttention(query, key, value, windows, options.sinks, options.scale, options.softcap,
                    options.key_begin, options.key_length, options.statistics);
  return {out, log_sum_exp, entropy, norm, usage};
}

at::Tensor RotaryTable(int64_t tokens, int64_t head_dim, double theta) {
  const auto options = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor frequencies =
      at::pow(theta, at::arange(0, head_dim, 2, options).div(-static_cast<double>(head_dim)));
  const at::Tensor angles = at::outer(at::arange(tokens, options), frequencies);
  return at::stack({angles.cos(), angles.sin()});
}

at::Tensor ApplyRotary(const at::Tensor& x, const at::Tensor& table) {
  return CallRotary(x, table, false);
}

}  // namespace aah

TORCH_LIBRARY(aah, library) {
  const std::vector<at::Tag> tags = {at::Tag::pt2_compliant_tag};
  library.def(
      "attention(Tensor query, Tensor key, Tensor value, Tensor windows, int sinks=0, "
      "float scale=0., float softcap=0., Tensor? key_begin=None, Tensor? key_length=None, "
      "bool statistics=False) -> (Tensor out, Tensor log_sum_exp, Tensor entropy, Tensor norm, "
      "Tensor usage)",
      tags);
  library.def(
      "attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, "
      "Tensor log_sum_exp, Tensor windows, int sinks=0, float scale=0., float softcap=0., "
      "Tensor? key_begin=None, Tensor? key_length=None) -> (Tensor grad_query, Tensor grad_key, "
      "Tensor grad_value)",
      tags);
  library.def("rotary(Tensor x, Tensor table, bool inverse=False) -> Tensor", tags);
}

TORCH_LIBRARY_IMPL(aah, CPU, library) {
  library.impl("attention", &aah::AttentionCpu);
  library.impl("attention_backward", &aah::AttentionBackwardCpu);
  library.impl("rotary", &aah::RotaryCpu);
}

TORCH_LIBRARY_IMPL(aah, Meta, library) {
  library.impl("attention", &aah::AttentionMeta);
  library.impl("attention_backward", &aah::AttentionBackwardMeta);
  library.impl("rotary", &aah::RotaryMeta);
}

TORCH_LIBRARY_IMPL(aah, Autograd, library) {
  library.impl("attention", &aah::AttentionAutograd);
  library.impl("attention_backward", torch::autograd::autogradNotImplementedFallback());
  library.impl("rotary", &aah::RotaryAutograd);
}
