#ifndef AAH_MODEL_SRC_TRAIN_STRETCH_LOSSES_H_
#define AAH_MODEL_SRC_TRAIN_STRETCH_LOSSES_H_

#include <cstdint>
#include <vector>

#include "aah/model/gpt.h"
#include "aah/text/batches.h"

namespace aah {

struct StretchLosses {
  double mean = 0;      // nats per token
  double accuracy = 0;  // share of tokens that have the greatest logit
  // The positions whose predictions count, m of them, rising: all of the context, or those that the
  // token file names.
  std::vector<int64_t> positions;
  std::vector<double> by_position;  // [m], means over the stretches
};

// As a tensor int64 [m], the form in which the model takes them; undefined where all count.
at::Tensor ScoredPositions(const StretchSpace& space);

// Losses over all of `stretches`, `batch_size` of them per forward pass, in evaluation mode: no
// state of the model changes, and the mode it was in comes back.
StretchLosses MeasureLosses(Gpt& model, const EvaluationStretches& stretches, int64_t batch_size);

// Mean nats per token as bits per byte of text.
double BitsPerByte(double loss, double bytes_per_token);

}  // namespace aah

#endif  // AAH_MODEL_SRC_TRAIN_STRETCH_LOSSES_H_
