#include "aah/model/optimizer.h"

#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "aah/error.h"

namespace aah {

AdamW::AdamW(const torch::nn::Module& module, const OptimizerConfig& config,
             std::span<const OwnParameter> own)
    : config_(config) {
  const auto add = [&](const std::string& name, const torch::Tensor& value, bool decayed,
                       double learning_rate) {
    parameters_.push_back({.name = name,
                           .value = value,
                           .exp_avg = torch::zeros_like(value),
                           .exp_avg_sq = torch::zeros_like(value),
                           .steps = torch::zeros({}, torch::kFloat32),
                           .decayed = decayed,
                           .learning_rate = learning_rate});
  };
  for (const auto& item : module.named_parameters()) {
    add(item.key(), item.value(), config.decay_everything || item.value().dim() >= 2, 0);
  }
  for (const OwnParameter& parameter : own) {
    add("attention." + parameter.name, parameter.value, false, parameter.learning_rate);
  }
}

void AdamW::Step(double learning_rate) {
  const torch::NoGradGuard no_grad;
  std::vector<Parameter*> decayed, others;
  for (Parameter& parameter : parameters_) {
    if (!parameter.value.grad().defined()) continue;
    if (parameter.learning_rate > 0) {
      Update(std::array{&parameter}, parameter.learning_rate, 0);
    } else {
      (parameter.decayed ? decayed : others).push_back(&parameter);
    }
  }
  Update(decayed, learning_rate, config_.weight_decay);
  Update(others, learning_rate, 0);
}

void AdamW::Update(std::span<Parameter* const> parameters, double learning_rate,
                   double weight_decay) {
  if (parameters.empty()) return;
  std::vector<torch::Tensor> values, gradients, exp_avgs, exp_avg_sqs, steps;
  for (Parameter* parameter : parameters) {
    parameter->steps.add_(1);
    values.push_back(parameter->value);
    gradients.push_back(parameter->value.grad());
    exp_avgs.push_back(parameter->exp_avg);
    exp_avg_sqs.push_back(parameter->exp_avg_sq);
    steps.push_back(parameter->steps);
  }
  at::_fused_adamw_(values, gradients, exp_avgs, exp_avg_sqs, /*max_exp_avg_sqs=*/{}, steps,
                    learning_rate, config_.beta1, config_.beta2, weight_decay, config_.epsilon,
                    /*amsgrad=*/false, /*maximize=*/false);
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
    if (parameter.learning_rate > 0) continue;
    sum_of_squares += norm * norm;
  }
  const double norm = std::sqrt(sum_of_squares);
  if (bound > 0 && norm > bound) {
    for (AdamW::Parameter& parameter : optimizer.parameters()) {
      if (parameter.learning_rate > 0) continue;
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
