// Shapes, types and layouts of the nested-window operator alone, for fake tensors and
// torch.compile.
#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "ops/nested_kernels.h"
#include "ops/tensor_arguments.h"

namespace aah {
namespace {

void CheckRanks(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                const at::Tensor& selection) {
  TORCH_CHECK_VALUE(query.dim() == 4 && key.dim() == 4 && value.dim() == 4 && selection.dim() == 2,
                    "nested_attention: query, key and value must have four dimensions [batch, "
                    "heads, tokens, head_dim], selection two");
}

}  // namespace

NestedOutputTensors NestedAttentionMeta(const at::Tensor& query, const at::Tensor& key,
                                        const at::Tensor& value, const at::Tensor& selection,
                                        at::IntArrayRef windows, at::IntArrayRef live,
                                        int64_t /*sinks*/, double /*scale*/, double /*softcap*/,
                                        const std::optional<at::Tensor>& /*key_begin*/,
                                        const std::optional<at::Tensor>& /*key_length*/) {
  CheckRanks(query, key, value, selection);
  const c10::SymInt slots = live.empty()
                                ? query.sym_size(1) * static_cast<int64_t>(windows.size())
                                : c10::SymInt(static_cast<int64_t>(live.size()) -
                                              std::count(live.begin(), live.end(), int64_t{0}));
  return {EmptyHeadsInnerSymbolic(query),
          at::empty_symint({query.sym_size(0), slots, query.sym_size(2), query.sym_size(3)},
                           query.options()),
          at::empty_symint({query.sym_size(0), slots, query.sym_size(2)}, query.options())};
}

NestedGradientTensors NestedAttentionBackwardMeta(
    const at::Tensor& /*grad_out*/, const at::Tensor& query, const at::Tensor& key,
    const at::Tensor& value, const at::Tensor& selection, const at::Tensor& /*candidate_out*/,
    const at::Tensor& /*log_sum_exp*/, at::IntArrayRef /*windows*/, at::IntArrayRef /*live*/,
    int64_t /*sinks*/, double /*scale*/, double /*softcap*/,
    const std::optional<at::Tensor>& /*key_begin*/,
    const std::optional<at::Tensor>& /*key_length*/) {
  CheckRanks(query, key, value, selection);
  return {EmptyHeadsInnerSymbolic(query), EmptyHeadsInnerSymbolic(key),
          EmptyHeadsInnerSymbolic(value),
          at::empty_symint(selection.sym_sizes(), selection.options())};
}

}  // namespace aah
