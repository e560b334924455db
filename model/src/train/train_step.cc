#include "aah/model/train_step.h"

#include <torch/torch.h>

#include <cmath>

#include "aah/error.h"

namespace aah {

StepOutcome TrainStep(Gpt& model, AdamW& optimizer, const at::Tensor& stretches,
                      const StepSettings& settings) {
  const int64_t batch = stretches.size(0);
  const int64_t context = stretches.size(1) - 1;
  const int64_t micro = settings.micro_batch_size == 0 ? batch : settings.micro_batch_size;
  AAH_CHECK(micro >= 1 && batch % micro == 0,
            "micro_batch_size: expected a divisor of the batch of ", batch, ", got ", micro);
  const double share = static_cast<double>(micro) / static_cast<double>(batch);

  model->train();
  model->attention().BeginStep(
      {.step = settings.step, .steps = settings.steps, .micro_batches = batch / micro});
  optimizer.ZeroGradients();
  StepOutcome outcome;
  for (int64_t first = 0; first < batch; first += micro) {
    const at::Tensor rows = stretches.narrow(0, first, micro);
    const at::Tensor loss =
        model->Loss(rows.narrow(1, 0, context), rows.narrow(1, 1, context), settings.scored);
    const double value = loss.item<double>();
    if (!std::isfinite(value)) {
      CheckParametersFinite(optimizer);
      ThrowError(ErrorKind::kMachine, "the loss is not finite (", value,
                 ") although all parameters are");
    }
    outcome.loss += share * value;
    (loss * share).backward();
  }
  model->attention().EndBackward();
  outcome.grad_norm = ClipGradients(optimizer, settings.clip_norm);
  optimizer.Step(settings.learning_rate);
  return outcome;
}

}  // namespace aah
