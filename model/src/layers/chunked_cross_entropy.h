#ifndef AAH_MODEL_SRC_LAYERS_CHUNKED_CROSS_ENTROPY_H_
#define AAH_MODEL_SRC_LAYERS_CHUNKED_CROSS_ENTROPY_H_

#include <ATen/core/Tensor.h>

namespace aah {

// Mean over rows of the cross entropy of softmax(hidden weight^T) and `targets`, a scalar.
//   hidden [rows, width], weight [vocabulary, width], targets int64 [rows]
// The logits exist for a stretch of rows at a time. Where a gradient may be wanted it is taken in
// the same walk, so that no logits are kept or computed twice (the loss is the last operation, its
// own gradient only a factor).
at::Tensor ChunkedCrossEntropy(const at::Tensor& hidden, const at::Tensor& weight,
                               const at::Tensor& targets);

// The same per row, [rows], without gradient. `correct`, if given, becomes bool [rows]: whether the
// target has the greatest logit.
at::Tensor RowCrossEntropy(const at::Tensor& hidden, const at::Tensor& weight,
                           const at::Tensor& targets, at::Tensor* correct = nullptr);

}  // namespace aah

#endif  // AAH_MODEL_SRC_LAYERS_CHUNKED_CROSS_ENTROPY_H_
