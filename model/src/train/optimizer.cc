#include "aah/model/optimizer.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "aah/error.h"

namespace aah {

AdamW::AdamW(const torch::nn::Module& module, const OptimizerConfig& config) : config_(config) {
  for (const auto& item : module.named_parameters()) {
    const torch::Tensor& value = item.value();
    parameters_.push_back({.name = item.key(),
                           .value = value,
                           .exp_avg = torch::zeros_like(value),
                           .exp_avg_sq = torch::zeros_like(value),
                           .steps = torch::zeros({}, torch::kFloat32),
                           .decayed = config.decay_everything || value.dim() >= 2});
  }
}

void AdamW::Step(double learning_rate) {
  const torch::NoGradGuard no_grad;
  for (const bool decayed : {true, false}) {
    std::vector<torch::Tensor> values, gradients, exp_avgs, exp_avg_sqs, steps;
    for (Parameter& parameter : parameters_) {
      if (parameter.decayed != decayed || !parameter.value.grad().defined()) continue;
      parameter.steps.add_(1);
      values.push_back(parameter.value);
      gradients.push_back(parameter.value.grad());
      exp_avgs.push_back(parameter.exp_avg);
      exp_avg_sqs.push_back(parameter.exp_avg_sq);
      steps.push_back(parameter.steps);
    }
    if (values.empty()) continue;
    at::_fused_adamw_(values, gradients, exp_avgs, exp_avg_sqs, /*max_exp_avg_sqs=*/{}, steps,
                      learning_rate, config_.beta1, config_.beta2,
                      decayed ? config_.weight_decay : 0.0, config_.epsilon, /*amsgrad=*/false,
                      /*maximize=*/false);
  }
}

void AdamW::ZeroGradients() {
  for (Parameter& parameter : parameters_) parameter.value.mutable_grad().reset();
}

double LearningRate(const OptimizerConfig& config, int64_t step, int64_t steps) {
  if (step < config.warmup_steps) {
    return config.learning_rate * static_cast<double>(step + 1) /
           static_cast<double>(config.warmup_steps);
  }
  // The last step, steps - 1, has progress 1.
  const int64_t span = std::max<int64_t>(1, steps - 1 - config.warmup_steps);
  const double progress =
      std::min(1.0, static_cast<double>(step - config.warmup_steps) / static_cast<double>(span));
  const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * progress));
  return config.min_learning_rate + (config.learning_rate - config.min_learning_rate) * cosine;
}

double ClipGradients(AdamW& optimizer, double bound) {
  const torch::NoGradGuard no_grad;
  double sum_of_squares = 0;
  for (const AdamW::Parameter& parameter : optimizer.parameters()) {
    const torch::Tensor& gradient = parameter.value.grad();
    if (!gradient.defined()) continue;
    const double norm = gradient.norm().item<double>();
    if (!std::isfinite(norm)) {
      ThrowError(ErrorKind::kMachine, "the gradient of ", parameter.name, " is not finite (norm ",
                 norm, ")");
    }
    sum_of_squares += norm * norm;
  }
  const double norm = std::sqrt(sum_of_squares);
  if (bound > 0 && norm > bound) {
    for (AdamW::Parameter& parameter : optimizer.parameters()) {
      if (parameter.value.grad().defined()) parameter.value.mutable_grad().mul_(bound / norm);
    }
  }
  return norm;
}

void CheckParametersFinite(const AdamW& optimizer) {
  for (const AdamW::Parameter& parameter : optimizer.parameters()) {
    // A sum is finite only if all its terms are; it may overflow, hence the second look.
    if (std::isfinite(parameter.value.detach().sum().item<double>())) continue;
    if (!parameter.value.detach().isfinite().all().item<bool>()) {
      ThrowError(ErrorKind::kMachine, "the parameter ", parameter.name, " is not finite");
    }
  }
}

}  // namespace aah
