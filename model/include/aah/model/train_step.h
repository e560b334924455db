#ifndef AAH_MODEL_TRAIN_STEP_H_
#define AAH_MODEL_TRAIN_STEP_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "aah/model/gpt.h"
#include "aah/model/optimizer.h"

namespace aah {

struct StepSettings {
  int64_t step = 0;              // from 0; the attention variant is told
  int64_t steps = 0;             // of the whole run, for variants with phases; 0: unknown
  int64_t micro_batch_size = 0;  // divides the batch; 0: the batch at once
  double learning_rate = 0;
  double clip_norm = 0;    // 0: no clipping
  at::Tensor scored = {};  // int64, positions whose predictions count; undefined: all
};

struct StepOutcome {
  double loss = 0;       // nats per token, mean over those that count, before the update
  double grad_norm = 0;  // before clipping
};

// One optimiser step: forward and backward over the batch, micro-batch by micro-batch, clip,
// update. `stretches` is int64 [batch, n + 1]: columns [0, n) are the inputs, [1, n + 1) the
// targets. Loss and gradients are those of the whole batch, whatever micro_batch_size is.
// Throws aah::Error(kMachine) for a loss or gradient that is not finite, before any parameter
// changes; the message names the first tensor concerned.
StepOutcome TrainStep(Gpt& model, AdamW& optimizer, const at::Tensor& stretches,
                      const StepSettings& settings);

}  // namespace aah

#endif  // AAH_MODEL_TRAIN_STEP_H_
