#ifndef AAH_MODEL_CHECKPOINT_H_
#define AAH_MODEL_CHECKPOINT_H_

#include <cstdint>
#include <string>

#include "aah/model/gpt.h"
#include "aah/model/optimizer.h"

namespace aah {

// A checkpoint is a folder that is whole or absent:
//   model.safetensors      the parameters under their names (gpt.h)
//   optimizer.safetensors  optimizer.{exp_avg,exp_avg_sq,steps}.NAME for each of them,
//                          random.torch_cpu (the generator that dropout draws from),
//                          attention.NAME (whatever state the variant or its policy has)
//   state.json             the rest, CheckpointState below, and the SHA-256 of both files, which
//                          every load compares (checkpoints without it are older, and load too)

// How far the logs of the run reached, in bytes; a resumed run cuts them back to it.
struct LogSizes {
  int64_t metrics = 0;
  int64_t windows = 0;
  int64_t groups = 0;
  int64_t selection = 0;
  int64_t events = 0;
};

struct CheckpointState {
  int64_t step = 0;            // finished steps
  int64_t samples = 0;         // stretches drawn from the training data so far
  std::string config;          // RunConfigYaml
  std::string content_hash;    // of the token file
  std::string tokenizer_hash;  // of the token file
  LogSizes logs;
};

// Writes the folder `path`, which must not exist yet: filled under a temporary name, flushed to the
// disk, renamed.
void SaveCheckpoint(const std::string& path, Gpt& model, const AdamW& optimizer,
                    const CheckpointState& state);

// The readers throw aah::Error(kBadInput) where a file is missing or damaged, or a tensor's dtype
// or shape is not the model's; the message names file and tensor.
CheckpointState ReadCheckpointState(const std::string& path);

// Everything back: parameters, optimiser, torch's CPU generator, the attention's state.
void LoadCheckpoint(const std::string& path, Gpt& model, AdamW& optimizer);

// The parameters alone, and nothing but the model's own must be there.
void LoadModelWeights(const std::string& path, Gpt& model);

// The attention's state alone; for evaluation.
void LoadAttentionState(const std::string& path, Gpt& model);

// `path` itself where it is a checkpoint, the newest one where it is a run folder. Throws
// aah::Error(kBadInput) where it is neither or the run has none yet.
std::string FindCheckpoint(const std::string& path);

}  // namespace aah

#endif  // AAH_MODEL_CHECKPOINT_H_
