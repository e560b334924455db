#include "train/stretch_losses.h"

#include <torch/torch.h>

#include <algorithm>
#include <numbers>
#include <numeric>
#include <span>

namespace aah {

at::Tensor ScoredPositions(const StretchSpace& space) {
  const auto& scored = space.file().info().scored;
  return scored ? torch::tensor(scored->Positions(), torch::kLong) : at::Tensor();
}

StretchLosses MeasureLosses(Gpt& model, const EvaluationStretches& stretches, int64_t batch_size) {
  const torch::NoGradGuard no_grad;
  const bool was_training = model->is_training();
  model->eval();
  const int64_t context = stretches.space().context();
  const at::Tensor scored = ScoredPositions(stretches.space());
  const at::Tensor positions = scored.defined() ? scored : torch::arange(context, torch::kLong);
  const int64_t counted = positions.size(0);
  at::Tensor sums = torch::zeros({counted}, torch::kDouble);
  int64_t correct = 0;
  for (int64_t first = 0; first < stretches.count(); first += batch_size) {
    const int64_t rows = std::min(batch_size, stretches.count() - first);
    const at::Tensor tokens = torch::empty({rows, context + 1}, torch::kLong);
    stretches.Fill(first, rows,
                   std::span<int64_t>(tokens.mutable_data_ptr<int64_t>(),
                                      static_cast<size_t>(tokens.numel())));
    const PositionScores scores =
        model->ScorePositions(tokens.narrow(1, 0, context), tokens.narrow(1, 1, context), scored);
    sums += scores.losses.to(torch::kDouble).sum(0);
    correct += scores.correct.sum().item<int64_t>();
  }
  model->train(was_training);

  sums /= static_cast<double>(stretches.count());
  StretchLosses losses;
  losses.by_position.assign(sums.const_data_ptr<double>(), sums.const_data_ptr<double>() + counted);
  losses.positions.assign(positions.const_data_ptr<int64_t>(),
                          positions.const_data_ptr<int64_t>() + counted);
  losses.accuracy = static_cast<double>(correct) / static_cast<double>(stretches.count() * counted);
  losses.mean = std::accumulate(losses.by_position.begin(), losses.by_position.end(), 0.0) /
                static_cast<double>(counted);
  return losses;
}

double BitsPerByte(double loss, double bytes_per_token) {
  return loss / (std::numbers::ln2 * bytes_per_token);
}

}  // namespace aah
