#ifndef AAH_MODEL_CONFIG_H_
#define AAH_MODEL_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "aah/control_options.h"
#include "aah/model/learned_options.h"
#include "aah/window_plan.h"

namespace aah {

enum class Positions {
  kLearned,  // a table of `context` vectors, added to the token embeddings
  kRope,     // rotary, applied to query and key: half rotation, base `rope_theta`
};

enum class Initialisation {
  kGpt2,   // N(0, 0.02), residual projections N(0, 0.02 / sqrt(2 layers)), biases 0
  kPaper,  // torch's defaults, as the paper's code: embeddings N(0, 1), so a first loss far above
           // ln(vocabulary)
};

// A GPT-2 style decoder (METHOD.md section 6): pre-LayerNorm, erf GELU, no bias in the qkv and
// output projections, bias in the MLP.
struct ModelConfig {
  int64_t layers = 4;
  int64_t heads = 4;
  int64_t kv_heads = 0;   // divides heads; 0: as many as heads
  int64_t width = 256;    // heads divide it, head_dim = width / heads
  int64_t mlp_width = 0;  // 0: 4 * width
  int64_t context = 1024;
  int64_t vocabulary = 256;
  double dropout = 0.0;  // on embeddings, attention outputs and MLP outputs; in [0, 1)
  Positions positions = Positions::kLearned;
  double rope_theta = 10000.0;
  Initialisation initialisation = Initialisation::kGpt2;
  bool tied_head = true;  // the output head is the token embedding
  double norm_epsilon = 1e-5;

  int64_t head_dim() const { return width / heads; }
  int64_t kv_heads_or_default() const { return kv_heads == 0 ? heads : kv_heads; }
  int64_t mlp_width_or_default() const { return mlp_width == 0 ? 4 * width : mlp_width; }
};

// How attention is computed and which windows the heads get; `variant` is a name of the table in
// attention_variant.h. Fields that the variant does not use must keep their defaults.
struct AttentionConfig {
  std::string variant = "full";
  int32_t window = 0;  // `window`: for every head, >= 1
  std::vector<std::vector<int32_t>>
      windows;        // `windows`: rows of `heads` windows, each >= 1; the
                      // rows repeat over the layers, their number divides it
  int32_t sinks = 0;  // first tokens that every query sees, >= 0
  // `aah`: regime and settings of the controller. No candidate windows: DefaultWindows(context).
  // `aah_learned`: how heads are grouped and scored; its candidates are those of `learned`.
  ControlOptions control = {.windows = {}};
  LearnedOptions learned;  // `learned`, `aah_learned`
};

// The paper's candidates at any context: 1/8, 1/4, 1/2 and all of it, those below 1 left out.
std::vector<int32_t> DefaultWindows(int64_t context);

// What a recipe calls this attention in one word: the variant, or the controller's regime.
const std::string& AttentionName(const AttentionConfig& attention);

// What a window plan for this model says of it: the architecture's name `gpt2` and the shape. No
// fingerprint: it would be that of weights, and a config has none. REQUIRES: sizes below 2^31.
PlanModel PlanModelOf(const ModelConfig& config);

// Throws aah::Error, one line, for the first value out of range or the first pair of values that do
// not fit: heads that do not divide the width, an odd head_dim with rotary positions, ... A float
// model also needs a head_dim that the kernels take (aah/attention.h), a double one does not.
void CheckModelConfig(const ModelConfig& config);

// Trainable parameters; with C = width, F = mlp_width, D = head_dim, G = kv_heads, per layer
//   C (C + 2 G D) + C^2 + 2 C F + F + C + 4 C,
// and V C for the embedding, V C more for an untied head, context * C for learned positions, 2 C
// for the last norm.
int64_t ParameterCount(const ModelConfig& config);

}  // namespace aah

#endif  // AAH_MODEL_CONFIG_H_
