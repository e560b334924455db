#include "train/stretch_losses.h"

#include <torch/torch.h>

#include <algorithm>
#include <numbers>
#include <numeric>
#include <span>

namespace aah {

StretchLosses MeasureLosses(Gpt& model, const EvaluationStretches& stretches, int64_t batch_size) {
  const torch::NoGradGuard no_grad;
  const bool was_training = model->is_training();
  model->eval();
  const int64_t context = stretches.space().context();
  at::Tensor sums = torch::zeros({context}, torch::kDouble);
  for (int64_t first = 0; first < stretches.count(); first += batch_size) {
    const int64_t rows = std::min(batch_size, stretches.count() - first);
    const at::Tensor tokens = torch::empty({rows, context + 1}, torch::kLong);
    stretches.Fill(first, rows,
                   std::span<int64_t>(tokens.mutable_data_ptr<int64_t>(),
                                      static_cast<size_t>(tokens.numel())));
    const at::Tensor losses =
        model->PositionLosses(tokens.narrow(1, 0, context), tokens.narrow(1, 1, context));
    sums += losses.to(torch::kDouble).sum(0);
  }
  model->train(was_training);

  sums /= static_cast<double>(stretches.count());
  StretchLosses losses;
  losses.by_position.assign(sums.const_data_ptr<double>(), sums.const_data_ptr<double>() + context);
  losses.mean = std::accumulate(losses.by_position.begin(), losses.by_position.end(), 0.0) /
                static_cast<double>(context);
  return losses;
}

double BitsPerByte(double loss, double bytes_per_token) {
  return loss / (std::numbers::ln2 * bytes_per_token);
}

}  // namespace aah
