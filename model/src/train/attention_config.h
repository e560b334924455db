#ifndef AAH_MODEL_SRC_TRAIN_ATTENTION_CONFIG_H_
#define AAH_MODEL_SRC_TRAIN_ATTENTION_CONFIG_H_

#include <cstdint>

#include "aah/io/config.h"
#include "aah/model/train_config.h"
#include "train/config_fields.h"

namespace aah {

// The section `attention` of a recipe, whose keys depend on the variant.

// Reads it; what it leaves open is taken from `config`, all of whose other sections are read.
AttentionConfig ReadAttention(ConfigReader& recipe, const RunConfig& config);

// Writes the keys that the variant has a use for, the variant first.
void WriteAttention(const AttentionConfig& attention, FieldWriter section);

// Reads every key that WriteAttention writes, so that `recipe` knows them.
void MarkAttentionRead(const AttentionConfig& attention, ConfigReader& recipe);

// Throws aah::Error where a run of `steps` steps is too short for the variant.
void CheckAttentionSteps(const AttentionConfig& attention, int64_t steps);

}  // namespace aah

#endif  // AAH_MODEL_SRC_TRAIN_ATTENTION_CONFIG_H_
