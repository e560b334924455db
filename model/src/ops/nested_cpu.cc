// The nested-window operator's CPU kernels: torch tensors in, core's views, torch tensors out.
#include <ATen/ATen.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "aah/error.h"
#include "aah/model/attention_timer.h"
#include "aah/model/torch_parallel.h"
#include "aah/nested_attention.h"
#include "ops/nested_kernels.h"
#include "ops/tensor_arguments.h"

namespace aah {
namespace {

// Owns what a NestedVisibility borrows.
class NestedArguments {
 public:
  NestedArguments(at::IntArrayRef windows, at::IntArrayRef live, int64_t sinks,
                  const std::optional<at::Tensor>& key_begin,
                  const std::optional<at::Tensor>& key_length)
      : key_bounds_(key_begin, key_length) {
    for (const int64_t window : windows) {
      AAH_CHECK(window >= 1 && window <= std::numeric_limits<int32_t>::max(),
                "nested_attention: windows must be numbers of tokens from 1 on, got ", window);
      windows_.push_back(static_cast<int32_t>(window));
    }
    for (const int64_t flag : live) live_.push_back(flag != 0 ? 1 : 0);
    visibility_.windows = windows_;
    visibility_.live = live_;
    visibility_.sinks = Sinks(sinks);
    key_bounds_.LendTo(visibility_);
  }
  NestedArguments(const NestedArguments&) = delete;
  NestedArguments& operator=(const NestedArguments&) = delete;

  const NestedVisibility& get() const { return visibility_; }

 private:
  std::vector<int32_t> windows_;
  std::vector<uint8_t> live_;
  KeyBounds key_bounds_;
  NestedVisibility visibility_;
};

void CheckNestedInputs(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                       const at::Tensor& selection, at::IntArrayRef windows) {
  CheckInputs(query, key, value);
  AAH_CHECK(query.scalar_type() == at::kFloat || query.scalar_type() == at::kDouble,
            "nested_attention: query must be float32 or float64, got ",
            c10::toString(query.scalar_type()));
  const auto candidates = static_cast<int64_t>(windows.size());
  AAH_CHECK(
      selection.dim() == 2 && selection.size(0) == query.size(1) && selection.size(1) == candidates,
      "nested_attention: selection must be [heads, candidates], [", query.size(1), ", ", candidates,
      "]");
  AAH_CHECK(selection.scalar_type() == query.scalar_type() && selection.device().is_cpu(),
            "nested_attention: selection must be ", c10::toString(query.scalar_type()),
            " on the CPU, as query is, got ", c10::toString(selection.scalar_type()), " on ",
            selection.device().str());
}

}  // namespace

NestedOutputTensors NestedAttentionCpu(const at::Tensor& query, const at::Tensor& key,
                                       const at::Tensor& value, const at::Tensor& selection,
                                       at::IntArrayRef windows, at::IntArrayRef live, int64_t sinks,
                                       double scale, double softcap,
                                       const std::optional<at::Tensor>& key_begin,
                                       const std::optional<at::Tensor>& key_length) {
  return WithTorchErrors([&]() -> NestedOutputTensors {
    CheckNestedInputs(query, key, value, selection, windows);
    const NestedArguments visibility(windows, live, sinks, key_begin, key_length);
    const at::Tensor q = WithUnitLastStride(query);
    const at::Tensor k = WithUnitLastStride(key);
    const at::Tensor v = WithUnitLastStride(value);
    const at::Tensor weights = selection.contiguous();
    const int64_t slots = LiveCandidates(visibility.get(), query.size(1));
    const NestedOutputTensors outputs = {
        EmptyHeadsInner(query),
        at::empty({query.size(0), slots, query.size(2), query.size(3)}, query.options()),
        at::empty({query.size(0), slots, query.size(2)}, query.options())};
    const auto& [out, candidate_out, log_sum_exp] = outputs;
    const AttentionTimer timer;
    if (query.scalar_type() == at::kDouble) {
      ReferenceNestedAttentionForward(
          ViewOf<const double, 4>(q), ViewOf<const double, 4>(k), ViewOf<const double, 4>(v),
          ConstSpanOf<double>(weights), visibility.get(), Options(scale, softcap),
          ViewOf<double, 4>(out), ViewOf<double, 4>(candidate_out), ViewOf<double, 3>(log_sum_exp));
    } else {
      NestedAttentionForward(ViewOf<const float, 4>(q), ViewOf<const float, 4>(k),
                             ViewOf<const float, 4>(v), ConstSpanOf<float>(weights),
                             visibility.get(), Options(scale, softcap), ViewOf<float, 4>(out),
                             ViewOf<float, 4>(candidate_out), ViewOf<float, 3>(log_sum_exp),
                             TorchParallel());
    }
    return outputs;
  });
}

NestedGradientTensors NestedAttentionBackwardCpu(
    const at::Tensor& grad_out, const at::Tensor& query, const at::Tensor& key,
    const at::Tensor& value, const at::Tensor& selection, const at::Tensor& candidate_out,
    const at::Tensor& log_sum_exp, at::IntArrayRef windows, at::IntArrayRef live, int64_t sinks,
    double scale, double softcap, const std::optional<at::Tensor>& key_begin,
    const std::optional<at::Tensor>& key_length) {
  return WithTorchErrors([&]() -> NestedGradientTensors {
    CheckNestedInputs(query, key, value, selection, windows);
    AAH_CHECK(grad_out.sizes() == query.sizes(),
              "nested_attention_backward: grad_out must have the shape of query");
    AAH_CHECK(candidate_out.dim() == 4 && log_sum_exp.dim() == 3,
              "nested_attention_backward: candidate_out and log_sum_exp must have four and three "
              "dimensions");
    AAH_CHECK(grad_out.scalar_type() == query.scalar_type() &&
                  candidate_out.scalar_type() == query.scalar_type() &&
                  log_sum_exp.scalar_type() == query.scalar_type(),
              "nested_attention_backward: grad_out, candidate_out and log_sum_exp must have the "
              "type of query");
    const NestedArguments visibility(windows, live, sinks, key_begin, key_length);
    const at::Tensor q = WithUnitLastStride(query);
    const at::Tensor k = WithUnitLastStride(key);
    const at::Tensor v = WithUnitLastStride(value);
    const at::Tensor o = WithUnitLastStride(candidate_out);
    const at::Tensor lse = WithUnitLastStride(log_sum_exp);
    const at::Tensor grad_o = WithUnitLastStride(grad_out);
    const at::Tensor weights = selection.contiguous();
    const NestedGradientTensors gradients = {EmptyHeadsInner(query), EmptyHeadsInner(key),
                                             EmptyHeadsInner(value),
                                             at::empty(selection.sizes(), selection.options())};
    const auto& [grad_query, grad_key, grad_value, grad_selection] = gradients;
    const AttentionTimer timer;
    if (query.scalar_type() == at::kDouble) {
      ReferenceNestedAttentionBackward(
          ViewOf<const double, 4>(q), ViewOf<const double, 4>(k), ViewOf<const double, 4>(v),
          ConstSpanOf<double>(weights), ViewOf<const double, 4>(o), ViewOf<const double, 4>(grad_o),
          visibility.get(), Options(scale, softcap), ViewOf<double, 4>(grad_query),
          ViewOf<double, 4>(grad_key), ViewOf<double, 4>(grad_value),
          SpanOf<double>(grad_selection));
    } else {
      NestedAttentionBackward(
          ViewOf<const float, 4>(q), ViewOf<const float, 4>(k), ViewOf<const float, 4>(v),
          ConstSpanOf<float>(weights), ViewOf<const float, 4>(o), ViewOf<const float, 3>(lse),
          ViewOf<const float, 4>(grad_o), visibility.get(), Options(scale, softcap),
          ViewOf<float, 4>(grad_query), ViewOf<float, 4>(grad_key), ViewOf<float, 4>(grad_value),
          SpanOf<float>(grad_selection), TorchParallel());
    }
    return gradients;
  });
}

}  // namespace aah
