#include "layers/chunked_cross_entropy.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

namespace aah {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows whose logits are held at a time: 2^22 elements, 16 MiB of float, large enough for the matrix
// products to run at full speed.
int64_t ChunkRows(int64_t vocabulary) {
  return std::max<int64_t>(64, (int64_t{1} << 22) / std::max<int64_t>(1, vocabulary));
}

// The cross entropy of each row of `logits`, which become the softmax in place.
at::Tensor ConsumeLogits(at::Tensor& logits, const at::Tensor& targets) {
  const at::Tensor log_sum_exp = logits.logsumexp(1, /*keepdim=*/true);
  const at::Tensor losses = (log_sum_exp - logits.gather(1, targets.unsqueeze(1))).squeeze(1);
  logits.sub_(log_sum_exp).exp_();
  return losses;
}

class ChunkedCrossEntropyFunction : public torch::autograd::Function<ChunkedCrossEntropyFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden,
                            const at::Tensor& weight, const at::Tensor& targets) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const int64_t rows = hidden.size(0);
    const int64_t chunk = ChunkRows(weight.size(0));
    const at::Tensor losses = at::empty({rows}, hidden.options());
    at::Tensor grad_hidden = at::empty_like(hidden);
    at::Tensor grad_weight = at::zeros_like(weight);
    for (int64_t begin = 0; begin < rows; begin += chunk) {
      const int64_t count = std::min(chunk, rows - begin);
      const at::Tensor rows_hidden = hidden.narrow(0, begin, count);
      const at::Tensor rows_targets = targets.narrow(0, begin, count);
      at::Tensor logits = at::mm(rows_hidden, weight.t());
      losses.narrow(0, begin, count).copy_(ConsumeLogits(logits, rows_targets));
      logits.scatter_add_(1, rows_targets.unsqueeze(1),
                          at::full({count, 1}, -1.0, logits.options()));
      logits.mul_(1.0 / static_cast<double>(rows));
      at::Tensor rows_grad = grad_hidden.narrow(0, begin, count);
      at::mm_out(rows_grad, logits, weight);
      grad_weight.addmm_(logits.t(), rows_hidden);
    }
    context->save_for_backward({grad_hidden, grad_weight});
    return losses.mean();
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    return {saved[0] * gradients[0], saved[1] * gradients[0], at::Tensor()};
  }
};

}  // namespace

at::Tensor ChunkedCrossEntropy(const at::Tensor& hidden, const at::Tensor& weight,
                               const at::Tensor& targets) {
  const bool wants_gradient =
      at::GradMode::is_enabled() && (hidden.requires_grad() || weight.requires_grad());
  if (!wants_gradient) return RowCrossEntropy(hidden, weight, targets).mean();
  return ChunkedCrossEntropyFunction::apply(hidden, weight, targets);
}

at::Tensor RowCrossEntropy(const at::Tensor& hidden, const at::Tensor& weight,
                           const at::Tensor& targets, at::Tensor* correct) {
  const at::NoGradGuard no_grad;
  const int64_t rows = hidden.size(0);
  const int64_t chunk = ChunkRows(weight.size(0));
  const at::Tensor losses = at::empty({rows}, hidden.options());
  if (correct != nullptr) *correct = at::empty({rows}, hidden.options().dtype(at::kBool));
  for (int64_t begin = 0; begin < rows; begin += chunk) {
    const int64_t count = std::min(chunk, rows - begin);
    const at::Tensor logits = at::mm(hidden.narrow(0, begin, count), weight.t());
    const at::Tensor rows_targets = targets.narrow(0, begin, count).unsqueeze(1);
    losses.narrow(0, begin, count)
        .copy_(logits.logsumexp(1) - logits.gather(1, rows_targets).squeeze(1));
    if (correct == nullptr) continue;
    correct->narrow(0, begin, count)
        .copy_(logits.argmax(1, /*keepdim=*/true).eq(rows_targets).squeeze(1));
  }
  return losses;
}

}  // namespace aah
