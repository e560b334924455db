// The operator's CPU kernels: torch tensors in, core's views, torch tensors out.
#include <ATen/ATen.h>

#include <limits>
#include <string>
#include <type_traits>

#include "aah/attention.h"
#include "aah/error.h"
#include "aah/model/attention_timer.h"
#include "aah/model/torch_parallel.h"
#include "ops/attention_kernels.h"

namespace aah {
namespace {

// Every tensor with heads that the operator makes lies [batch, tokens, heads, head_dim] in memory,
// so that joining the heads for the projection that follows copies nothing.
at::Tensor EmptyHeadsInner(const at::Tensor& like) {
  return at::empty({like.size(0), like.size(2), like.size(1), like.size(3)}, like.options())
      .transpose(1, 2);
}

at::Tensor WithUnitLastStride(const at::Tensor& tensor) {
  return tensor.dim() == 0 || tensor.stride(-1) == 1 || tensor.size(-1) <= 1 ? tensor
                                                                             : tensor.contiguous();
}

template <typename Element, size_t N>
TensorView<Element, N> ViewOf(const at::Tensor& tensor) {
  TensorView<Element, N> view;
  view.data = static_cast<Element*>(tensor.data_ptr());
  for (size_t axis = 0; axis < N; ++axis) {
    view.shape[axis] = tensor.size(static_cast<int64_t>(axis));
    view.strides[axis] = tensor.stride(static_cast<int64_t>(axis));
  }
  return view;
}

void CheckInputs(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  const auto check_one = [&](const char* name, const at::Tensor& tensor) {
    AAH_CHECK(tensor.dim() == 4, "attention: ", name,
              " must have four dimensions [batch, heads, tokens, head_dim], got ", tensor.dim());
    AAH_CHECK(tensor.scalar_type() == query.scalar_type(), "attention: ", name,
              " must have the type of query, ", c10::toString(query.scalar_type()), ", got ",
              c10::toString(tensor.scalar_type()));
    AAH_CHECK(tensor.device().is_cpu(), "attention: ", name, " must be on the CPU, got ",
              tensor.device().str());
  };
  check_one("query", query);
  check_one("key", key);
  check_one("value", value);
}

// An int32 CPU vector argument; contiguous.
at::Tensor Int32Vector(const char* name, const at::Tensor& tensor) {
  AAH_CHECK(tensor.dim() == 1 && tensor.scalar_type() == at::kInt && tensor.device().is_cpu(),
            "attention: ", name, " must be an int32 vector on the CPU, got ",
            c10::toString(tensor.scalar_type()), " of ", tensor.dim(), " dimensions on ",
            tensor.device().str());
  return tensor.contiguous();
}

// Owns what a Visibility borrows.
class VisibilityArguments {
 public:
  VisibilityArguments(const at::Tensor& windows, int64_t sinks,
                      const std::optional<at::Tensor>& key_begin,
                      const std::optional<at::Tensor>& key_length)
      : windows_(Int32Vector("windows", windows)) {
    AAH_CHECK(sinks >= 0 && sinks <= std::numeric_limits<int32_t>::max(),
              "attention: sinks must be a number of tokens from 0 on, got ", sinks);
    visibility_.windows = Span(windows_);
    visibility_.sinks = static_cast<int32_t>(sinks);
    if (key_begin) {
      key_begin_ = Int32Vector("key_begin", *key_begin);
      visibility_.key_begin = Span(key_begin_);
    }
    if (key_length) {
      key_length_ = Int32Vector("key_length", *key_length);
      visibility_.key_length = Span(key_length_);
    }
  }
  VisibilityArguments(const VisibilityArguments&) = delete;
  VisibilityArguments& operator=(const VisibilityArguments&) = delete;

  const Visibility& get() const { return visibility_; }

 private:
  static std::span<const int32_t> Span(const at::Tensor& tensor) {
    return {tensor.const_data_ptr<int32_t>(), static_cast<size_t>(tensor.numel())};
  }

  at::Tensor windows_;
  at::Tensor key_begin_;
  at::Tensor key_length_;
  Visibility visibility_;
};

AttentionOptions Options(double scale, double softcap) {
  return {static_cast<float>(scale), static_cast<float>(softcap)};
}

template <typename Element>
std::span<Element> SpanOf(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr<Element>(), static_cast<size_t>(tensor.numel())};
}

// Calls `run`, turning core's complaint about arguments into the exception that Python shows as a
// ValueError.
template <typename Run>
auto WithTorchErrors(const Run& run) {
  try {
    return run();
  } catch (const Error& error) {
    TORCH_CHECK_VALUE(error.kind() != ErrorKind::kBadInput, error.what());
    throw;
  }
}

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
