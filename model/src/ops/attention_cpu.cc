// The operator's CPU kernels: torch tensors in, core's views, torch tensors out.
#include <ATen/ATen.h>

#include <optional>

#include "aah/attention.h"
#include "aah/error.h"
#include "aah/model/attention_timer.h"
#include "aah/model/torch_parallel.h"
#include "ops/attention_kernels.h"
#include "ops/tensor_arguments.h"

namespace aah {
namespace {

// Owns what a Visibility borrows.
class VisibilityArguments {
 public:
  VisibilityArguments(const at::Tensor& windows, int64_t sinks,
                      const std::optional<at::Tensor>& key_begin,
                      const std::optional<at::Tensor>& key_length)
      : windows_(Int32Vector("windows", windows)), key_bounds_(key_begin, key_length) {
    visibility_.windows = Int32Span(windows_);
    visibility_.sinks = Sinks(sinks);
    key_bounds_.LendTo(visibility_);
  }
  VisibilityArguments(const VisibilityArguments&) = delete;
  VisibilityArguments& operator=(const VisibilityArguments&) = delete;

  const Visibility& get() const { return visibility_; }

 private:
  at::Tensor windows_;
  KeyBounds key_bounds_;
  Visibility visibility_;
};

template <typename Storage>
void ForwardFloat(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const Visibility& visibility, const AttentionOptions& options,
                  const AttentionOutputs& outputs) {
  const auto& [out, log_sum_exp, entropy, norm, usage] = outputs;
  AttentionForward<Storage>(ViewOf<const Storage, 4>(query), ViewOf<const Storage, 4>(key),
                            ViewOf<const Storage, 4>(value), visibility, options,
                            ViewOf<Storage, 4>(out), ViewOf<float, 3>(log_sum_exp),
                            {SpanOf<float>(entropy), SpanOf<float>(norm), SpanOf<float>(usage)},
                            TorchParallel());
}

void ForwardDouble(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                   const Visibility& visibility, const AttentionOptions& options,
                   const AttentionOutputs& outputs) {
  const auto& [out, log_sum_exp, entropy, norm, usage] = outputs;
  ReferenceAttentionForward(ViewOf<const double, 4>(query), ViewOf<const double, 4>(key),
                            ViewOf<const double, 4>(value), visibility, options,
                            ViewOf<double, 4>(out), ViewOf<double, 3>(log_sum_exp),
                            SpanOf<double>(entropy), SpanOf<double>(norm), SpanOf<double>(usage));
}

}  // namespace

AttentionOutputs AttentionCpu(const at::Tensor& query, const at::Tensor& key,
                              const at::Tensor& value, const at::Tensor& windows, int64_t sinks,
                              double scale, double softcap,
                              const std::optional<at::Tensor>& key_begin,
                              const std::optional<at::Tensor>& key_length, bool statistics) {
  return WithTorchErrors([&]() -> AttentionOutputs {
    CheckInputs(query, key, value);
    const VisibilityArguments visibility(windows, sinks, key_begin, key_length);
    const at::Tensor q = WithUnitLastStride(query);
    const at::Tensor k = WithUnitLastStride(key);
    const at::Tensor v = WithUnitLastStride(value);
    const bool is_double = query.scalar_type() == at::kDouble;
    const auto options = query.options().dtype(is_double ? at::kDouble : at::kFloat);
    const int64_t statistics_size = statistics ? query.size(1) : 0;
    const AttentionOutputs outputs = {
        EmptyHeadsInner(query), at::empty({query.size(0), query.size(1), query.size(2)}, options),
        at::empty({statistics_size}, options), at::empty({statistics_size}, options),
        at::empty({statistics_size}, options)};
    const AttentionTimer timer;
    switch (query.scalar_type()) {
      case at::kFloat:
        ForwardFloat<float>(q, k, v, visibility.get(), Options(scale, softcap), outputs);
        break;
      case at::kBFloat16:
        ForwardFloat<Bfloat16>(q, k, v, visibility.get(), Options(scale, softcap), outputs);
        break;
      case at::kHalf:
        ForwardFloat<Float16>(q, k, v, visibility.get(), Options(scale, softcap), outputs);
        break;
      case at::kDouble:
        ForwardDouble(q, k, v, visibility.get(), Options(scale, softcap), outputs);
        break;
      default:
        ThrowError(ErrorKind::kBadInput,
                   "attention: query must be float32, float64, bfloat16 or float16, got ",
                   c10::toString(query.scalar_type()));
    }
    return outputs;
  });
}

AttentionGradients AttentionBackwardCpu(const at::Tensor& grad_out, const at::Tensor& query,
                                        const at::Tensor& key, const at::Tensor& value,
                                        const at::Tensor& out, const at::Tensor& log_sum_exp,
                                        const at::Tensor& windows, int64_t sinks, double scale,
                                        double softcap, const std::optional<at::Tensor>& key_begin,
                                        const std::optional<at::Tensor>& key_length) {
  return WithTorchErrors([&]() -> AttentionGradients {
    CheckInputs(query, key, value);
    AAH_CHECK(grad_out.sizes() == query.sizes() && out.sizes() == query.sizes(),
              "attention_backward: grad_out and out must have the shape of query");
    AAH_CHECK(log_sum_exp.dim() == 3 && log_sum_exp.size(0) == query.size(0) &&
                  log_sum_exp.size(1) == query.size(1) && log_sum_exp.size(2) == query.size(2),
              "attention_backward: log_sum_exp must be [batch, heads, queries]");
    AAH_CHECK(query.scalar_type() == at::kFloat || query.scalar_type() == at::kDouble,
              "attention_backward: gradients exist for float32 and float64, got ",
              c10::toString(query.scalar_type()), "; convert query, key and value");
    AAH_CHECK(grad_out.scalar_type() == query.scalar_type() &&
                  out.scalar_type() == query.scalar_type() &&
                  log_sum_exp.scalar_type() == query.scalar_type(),
              "attention_backward: grad_out, out and log_sum_exp must have the type of query");
    const VisibilityArguments visibility(windows, sinks, key_begin, key_length);
    const at::Tensor q = WithUnitLastStride(query);
    const at::Tensor k = WithUnitLastStride(key);
    const at::Tensor v = WithUnitLastStride(value);
    const at::Tensor o = WithUnitLastStride(out);
    const at::Tensor lse = WithUnitLastStride(log_sum_exp);
    const at::Tensor grad_o = WithUnitLastStride(grad_out);
    const AttentionGradients gradients = {EmptyHeadsInner(query), EmptyHeadsInner(key),
                                          EmptyHeadsInner(value)};
    const auto& [grad_query, grad_key, grad_value] = gradients;
    const AttentionTimer timer;
    if (query.scalar_type() == at::kDouble) {
      ReferenceAttentionBackward(ViewOf<const double, 4>(q), ViewOf<const double, 4>(k),
                                 ViewOf<const double, 4>(v), ViewOf<const double, 4>(grad_o),
                                 visibility.get(), Options(scale, softcap),
                                 ViewOf<double, 4>(grad_query), ViewOf<double, 4>(grad_key),
                                 ViewOf<double, 4>(grad_value));
    } else {
      AttentionBackward(ViewOf<const float, 4>(q), ViewOf<const float, 4>(k),
                        ViewOf<const float, 4>(v), ViewOf<const float, 4>(o),
                        ViewOf<const float, 3>(lse), ViewOf<const float, 4>(grad_o),
                        visibility.get(), Options(scale, softcap), ViewOf<float, 4>(grad_query),
                        ViewOf<float, 4>(grad_key), ViewOf<float, 4>(grad_value), TorchParallel());
    }
    return gradients;
  });
}

}  // namespace aah
