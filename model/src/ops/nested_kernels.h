#ifndef AAH_MODEL_SRC_OPS_NESTED_KERNELS_H_
#define AAH_MODEL_SRC_OPS_NESTED_KERNELS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <tuple>

namespace aah {

// The implementations behind the schemas in nested_operator.h, one set per backend; all with the
// schema's arguments.
using NestedOutputTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using NestedGradientTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

NestedOutputTensors NestedAttentionCpu(const at::Tensor& query, const at::Tensor& key,
                                       const at::Tensor& value, const at::Tensor& selection,
                                       at::IntArrayRef windows, at::IntArrayRef live, int64_t sinks,
                                       double scale, double softcap,
                                       const std::optional<at::Tensor>& key_begin,
                                       const std::optional<at::Tensor>& key_length);
NestedGradientTensors NestedAttentionBackwardCpu(
    const at::Tensor& grad_out, const at::Tensor& query, const at::Tensor& key,
    const at::Tensor& value, const at::Tensor& selection, const at::Tensor& candidate_out,
    const at::Tensor& log_sum_exp, at::IntArrayRef windows, at::IntArrayRef live, int64_t sinks,
    double scale, double softcap, const std::optional<at::Tensor>& key_begin,
    const std::optional<at::Tensor>& key_length);

NestedOutputTensors NestedAttentionMeta(const at::Tensor& query, const at::Tensor& key,
                                        const at::Tensor& value, const at::Tensor& selection,
                                        at::IntArrayRef windows, at::IntArrayRef live,
                                        int64_t sinks, double scale, double softcap,
                                        const std::optional<at::Tensor>& key_begin,
                                        const std::optional<at::Tensor>& key_length);
NestedGradientTensors NestedAttentionBackwardMeta(
    const at::Tensor& grad_out, const at::Tensor& query, const at::Tensor& key,
    const at::Tensor& value, const at::Tensor& selection, const at::Tensor& candidate_out,
    const at::Tensor& log_sum_exp, at::IntArrayRef windows, at::IntArrayRef live, int64_t sinks,
    double scale, double softcap, const std::optional<at::Tensor>& key_begin,
    const std::optional<at::Tensor>& key_length);

}  // namespace aah

#endif  // AAH_MODEL_SRC_OPS_NESTED_KERNELS_H_
