#ifndef AAH_MODEL_TRAIN_CONFIG_H_
#define AAH_MODEL_TRAIN_CONFIG_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "aah/io/config.h"
#include "aah/model/config.h"

namespace aah {

// Everything that defines a training run; what a recipe (YAML) holds. Field names are the recipe's
// keys, defaults stand beside them. In a recipe `attention: full` is short for
// `attention: {variant: full}`, and a `window`, `windows` or `regime` alone names its variant;
// `attention: full_adaptive`, or any other regime, is short for `attention: {regime: ...}`. The
// settings of the controller stand under `attention.control`; where they are not given, its
// candidate windows are 1/8, 1/4, 1/2 and all of the context, its warm-up is the optimiser's and
// its seed that of the run. `attention: {plan: FILE}` takes the windows and sinks of a window plan
// (aah/io/window_plan_file.h) for a model of this shape. They are read with the recipe and stand in
// its place as `windows` and `sinks`, so that a run needs the file no more and a plan changed since
// is seen as other windows; windows beyond the context see all of it. The plan's fingerprint is not
// compared: training changes the weights. A step is one optimiser step; a stretch is
// `model.context` consecutive tokens with the token that follows each.

struct TrainingConfig {
  int64_t steps = 1000;
  int64_t batch_size = 8;        // stretches per step
  int64_t micro_batch_size = 0;  // stretches per forward pass, divides batch_size; 0: batch_size
};

// AdamW (Loshchilov and Hutter, 2019) with linear warm-up, then a cosine to min_learning_rate.
struct OptimizerConfig {
  double learning_rate = 1e-3;
  double min_learning_rate = 1e-4;
  int64_t warmup_steps = 100;
  double weight_decay = 0.1;
  bool decay_everything = false;  // false: matrices and embeddings only, no norms and no biases
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double clip_norm = 1.0;  // bound of the global gradient norm; 0: none
};

struct ValidationConfig {
  int64_t every = 100;     // steps; 0: only at the end
  int64_t stretches = 16;  // the same ones every time, spread over the split; 0: all of it
};

struct CheckpointConfig {
  int64_t every = 500;  // steps; 0: only at the end and when stopped
  int64_t keep = 2;     // newest ones that stay; at least 1
};

// More are a slip: torch fails to start them in the middle of the work.
inline constexpr int64_t kMaxThreads = 4096;

struct RunConfig {
  std::string out;   // the run folder
  std::string data;  // token file, or the folder that `aah data prepare` wrote
  uint64_t seed = 0;
  int64_t threads = 0;    // 0: as many as torch finds
  std::string init_from;  // run folder or checkpoint whose model weights to begin with; empty: none
  ModelConfig model = {.vocabulary = 0};  // vocabulary 0: the data's
  AttentionConfig attention;
  TrainingConfig training;
  OptimizerConfig optimizer;
  ValidationConfig validation;
  CheckpointConfig checkpoint;
};

// Reads a recipe and `key.sub=value` overrides. Throws aah::Error, one line with key and place, for
// unknown keys (with the nearest known one), wrong types, values out of range, and settings that
// contradict each other.
RunConfig ReadRunConfig(const std::string& path, std::span<const std::string> overrides);

// As above from text; `name` stands for the file in messages.
RunConfig ParseRunConfig(const std::string& yaml, const std::string& name,
                         std::span<const std::string> overrides);

// As above from a section that holds a recipe and nothing else.
RunConfig ReadRunConfig(ConfigReader config);

// The attention that a window plan's file describes: variant `windows`, its windows and sinks.
// Throws aah::Error where the file is no plan or one for another architecture or shape than
// `model`; its fingerprint is not compared.
AttentionConfig ReadPlannedAttention(const std::string& plan, const ModelConfig& model);

// Throws aah::Error where settings contradict each other (head counts that do not divide, windows
// below 1, ...). The readers above call it; call it for configs put together in code.
void CheckRunConfig(const RunConfig& config);

// Throws aah::Error(kBadInput) where training could never fit in this machine's memory. No reader
// calls it: what a larger machine trained can be read and reported on here.
void CheckTrainingMemory(const RunConfig& config);

// The whole config as a recipe that reads back equal, every key written.
std::string RunConfigYaml(const RunConfig& config);

// One key whose value differs, as RunConfigYaml writes values.
struct ConfigDifference {
  std::string key;  // "optimizer.learning_rate"
  std::string was;
  std::string is;
};
std::vector<ConfigDifference> CompareRunConfigs(const RunConfig& was, const RunConfig& is);

}  // namespace aah

#endif  // AAH_MODEL_TRAIN_CONFIG_H_
