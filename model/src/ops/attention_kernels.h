#ifndef AAH_MODEL_SRC_OPS_ATTENTION_KERNELS_H_
#define AAH_MODEL_SRC_OPS_ATTENTION_KERNELS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <tuple>

namespace aah {

// The implementations behind the schemas in operator.h, one set per backend; all with the schema's
// arguments.
using AttentionOutputs = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
using AttentionGradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

AttentionOutputs AttentionCpu(const at::Tensor& query, const at::Tensor& key,
                              const at::Tensor& value, const at::Tensor& windows, int64_t sinks,
                              double scale, double softcap,
                              const std::optional<at::Tensor>& key_begin,
                              const std::optional<at::Tensor>& key_length, bool statistics);
AttentionGradients AttentionBackwardCpu(const at::Tensor& grad_out, const at::Tensor& query,
                                        const at::Tensor& key, const at::Tensor& value,
                                        const at::Tensor& out, const at::Tensor& log_sum_exp,
                                        const at::Tensor& windows, int64_t sinks, double scale,
                                        double softcap, const std::optional<at::Tensor>& key_begin,
                                        const std::optional<at::Tensor>& key_length);

AttentionOutputs AttentionMeta(const at::Tensor& query, const at::Tensor& key,
                               const at::Tensor& value, const at::Tensor& windows, int64_t sinks,
                               double scale, double softcap,
                               const std::optional<at::Tensor>& key_begin,
                               const std::optional<at::Tensor>& key_length, bool statistics);
AttentionGradients AttentionBackwardMeta(const at::Tensor& grad_out, const at::Tensor& query,
                                         const at::Tensor& key, const at::Tensor& value,
                                         const at::Tensor& out, const at::Tensor& log_sum_exp,
                                         const at::Tensor& windows, int64_t sinks, double scale,
                                         double softcap, const std::optional<at::Tensor>& key_begin,
                                         const std::optional<at::Tensor>& key_length);

at::Tensor RotaryCpu(const at::Tensor& x, const at::Tensor& table, bool inverse);
at::Tensor RotaryMeta(const at::Tensor& x, const at::Tensor& table, bool inverse);

}  // namespace aah

#endif  // AAH_MODEL_SRC_OPS_ATTENTION_KERNELS_H_
