// Shapes, types and layouts alone, for fake tensors and torch.compile: what the CPU kernels would
// return, without data.
#include <ATen/ATen.h>

#include "ops/attention_kernels.h"
#include "ops/tensor_arguments.h"

namespace aah {
namespace {

void CheckRank(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  TORCH_CHECK_VALUE(query.dim() == 4 && key.dim() == 4 && value.dim() == 4,
                    "attention: query, key and value must have four dimensions "
                    "[batch, heads, tokens, head_dim]");
}

}  // namespace

AttentionOutputs AttentionMeta(const at::Tensor& query, const at::Tensor& key,
                               const at::Tensor& value, const at::Tensor& /*windows*/,
                               int64_t /*sinks*/, double /*scale*/, double /*softcap*/,
                               const std::optional<at::Tensor>& /*key_begin*/,
                               const std::optional<at::Tensor>& /*key_length*/, bool statistics) {
  CheckRank(query, key, value);
  const auto options =
      query.options().dtype(query.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  const c10::SymInt statistics_size = statistics ? query.sym_size(1) : c10::SymInt(0);
  return {EmptyHeadsInnerSymbolic(query),
          at::empty_symint({query.sym_size(0), query.sym_size(1), query.sym_size(2)}, options),
          at::empty_symint({statistics_size}, options),
          at::empty_symint({statistics_size}, options),
          at::empty_symint({statistics_size}, options)};
}

AttentionGradients AttentionBackwardMeta(const at::Tensor& /*grad_out*/, const at::Tensor& query,
                                         const at::Tensor& key, const at::Tensor& value,
                                         const at::Tensor& /*out*/,
                                         const at::Tensor& /*log_sum_exp*/,
                                         const at::Tensor& /*windows*/, int64_t /*sinks*/,
                                         double /*scale*/, double /*softcap*/,
                                         const std::optional<at::Tensor>& /*key_begin*/,
                                         const std::optional<at::Tensor>& /*key_length*/) {
  CheckRank(query, key, value);
  return {EmptyHeadsInnerSymbolic(query), EmptyHeadsInnerSymbolic(key),
          EmptyHeadsInnerSymbolic(value)};
}

at::Tensor RotaryMeta(const at::Tensor& x, const at::Tensor& /*table*/, bool /*inverse*/) {
  return at::empty_symint(x.sym_sizes(), x.options());
}

}  // namespace aah
