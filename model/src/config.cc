#include "aah/model/config.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "aah/error.h"

namespace aah {

std::vector<int32_t> DefaultWindows(int64_t context) {
  std::vector<int32_t> windows;
  for (const int64_t part : {8, 4, 2, 1}) {
    if (context / part >= 1) windows.push_back(static_cast<int32_t>(context / part));
  }
  // Of very short contexts several parts are the same.
  windows.erase(std::unique(windows.begin(), windows.end()), windows.end());
  return windows;
}

const std::string& AttentionName(const AttentionConfig& attention) {
  return attention.variant == "aah" ? attention.control.regime : attention.variant;
}

PlanModel PlanModelOf(const ModelConfig& config) {
  const auto size = [](int64_t value) { return static_cast<int32_t>(value); };
  return {.architecture = "gpt2",
          .shape = {.layers = size(config.layers),
                    .heads = size(config.heads),
                    .kv_heads = size(config.kv_heads_or_default()),
                    .head_dim = size(config.head_dim())},
          .fingerprint = ""};
}

void CheckModelConfig(const ModelConfig& config) {
  const auto positive = [](const char* name, int64_t value) {
    AAH_CHECK(value >= 1, "model.", name, " must be at least 1, got ", value);
  };
  positive("layers", config.layers);
  positive("heads", config.heads);
  positive("width", config.width);
  positive("context", config.context);
  positive("vocabulary", config.vocabulary);
  AAH_CHECK(config.kv_heads >= 0,
            "model.kv_heads must be at least 1 (or 0: as many as heads), got ", config.kv_heads);
  AAH_CHECK(config.mlp_width >= 0, "model.mlp_width must be at least 1 (or 0: 4 * width), got ",
            config.mlp_width);
  AAH_CHECK(config.width % config.heads == 0, "model.heads must divide model.width, got ",
            config.heads, " heads and a width of ", config.width);
  AAH_CHECK(config.heads % config.kv_heads_or_default() == 0,
            "model.kv_heads must divide model.heads, got ", config.kv_heads, " kv_heads and ",
            config.heads, " heads");
  AAH_CHECK(config.dropout >= 0 && config.dropout < 1, "model.dropout must be in [0, 1), got ",
            config.dropout);
  AAH_CHECK(config.norm_epsilon > 0, "model.norm_epsilon must be positive, got ",
            config.norm_epsilon);
  if (config.positions == Positions::kRope) {
    AAH_CHECK(config.head_dim() % 2 == 0, "rotary positions need an even head_dim, got ",
              config.head_dim(), " (model.width / model.heads)");
    AAH_CHECK(config.rope_theta > 0, "model.rope_theta must be positive, got ", config.rope_theta);
  }
}

int64_t ParameterCount(const ModelConfig& config) {
  const int64_t width = config.width;
  const int64_t mlp = config.mlp_width_or_default();
  const int64_t kv_width = config.kv_heads_or_default() * config.head_dim();
  const int64_t layer = width * (width + 2 * kv_width) + width * width  // qkv, output projection
                        + 2 * width * mlp + mlp + width                 // MLP with biases
                        + 4 * width;                                    // two norms
  const int64_t embeddings = config.vocabulary * width * (config.tied_head ? 1 : 2) +
                             (config.positions == Positions::kLearned ? config.context * width : 0);
  return config.layers * layer + embeddings + 2 * width;
}

}  // namespace aah
