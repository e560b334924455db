#ifndef AAH_MODEL_SRC_LAYERS_LEARNED_LEARNED_CHECKS_H_
#define AAH_MODEL_SRC_LAYERS_LEARNED_LEARNED_CHECKS_H_

#include <cstdint>

#include "aah/model/learned_options.h"

namespace aah {

// Throws aah::Error, one line, for options out of range or that contradict each other, for a model
// of `context` tokens. Whether the budget can be kept is another question: LearnedAttention's.
void CheckLearnedOptions(const LearnedOptions& options, int64_t context);

}  // namespace aah

#endif  // AAH_MODEL_SRC_LAYERS_LEARNED_LEARNED_CHECKS_H_
