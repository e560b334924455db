#ifndef AAH_WINDOW_DECISION_H_
#define AAH_WINDOW_DECISION_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aah/hierarchy.h"

namespace aah {

// What a scorer is told of a group (METHOD.md section 5.1), f being its features:
enum class ControllerInput {
  kBase,                 //  9: f
  kEnriched,             // 29: f, level, f - parent, f - level's mean, share of the level's members
  kContrastive,          // 38: enriched, f - siblings
  kPositionAware,        // 32: enriched, position among siblings, is first, is not first
  kRelativeSiblingMean,  // 28: f, f - siblings, f - parent, level
};

// By name: base, enriched, contrastive, position_aware, relative_sibling_mean. Throws aah::Error
// with the nearest name.
ControllerInput ParseControllerInput(std::string_view name);
int32_t ControllerInputSize(ControllerInput input);

// [groups of the level][ControllerInputSize]
std::vector<std::vector<float>> ControllerInputs(const Hierarchy& hierarchy, int32_t level,
                                                 ControllerInput input);

// y = weight x + bias. Borrowed: weight [outputs][inputs] row-major as torch's Linear, bias
// [outputs].
struct LinearWeights {
  std::span<const float> weight;
  std::span<const float> bias;
};

// Linear layers with GELU (erf) between them.
using MlpWeights = std::vector<LinearWeights>;

// The output of `mlp` for one row, in double inside. REQUIRES: sizes fit.
std::vector<float> RunMlp(const MlpWeights& mlp, std::span<const float> input);

// How siblings, the groups under one parent, see each other when they are scored.
enum class SiblingScoring {
  kNone,
  kJoint,  // pairs in index order get their logits together, from one scorer
  kBias,   // logits gain what a scorer says of the difference to the other siblings
};

// By name: none, joint_sibling, sibling_bias. Throws aah::Error with the nearest name.
SiblingScoring ParseSiblingScoring(std::string_view name);

// The scorers of one layer, all levels. With u inputs and K windows: base u -> ... -> K; siblings
// 4u -> h -> 2K for kJoint, u -> h -> K for kBias, none for kNone.
struct ScorerWeights {
  MlpWeights base;
  MlpWeights siblings;
};

struct DecisionOptions {
  ControllerInput input = ControllerInput::kEnriched;
  SiblingScoring siblings = SiblingScoring::kJoint;
  bool parent_constraint = true;
  float logit_scale = 1;
  float joint_output_scale = 1;
  float sibling_bias_scale = 1;
};

struct LevelDecision {
  std::vector<std::vector<float>> logits;  // [groups][windows]
  std::vector<int32_t> raw;                // [groups] index of the largest logit (the first one)
  std::vector<int32_t> index;              // [groups] never above the parent's
};

// Window indices for every group, top down; one entry per level, finest first. Throws aah::Error
// where the weights' sizes do not fit the inputs and `windows`, or a logit is not finite.
std::vector<LevelDecision> DecideWindows(const Hierarchy& hierarchy, const ScorerWeights& scorers,
                                         const DecisionOptions& options, int32_t windows);

// Throws aah::Error unless the sizes fit; hidden sizes are free.
void CheckScorerWeights(const ScorerWeights& scorers, const DecisionOptions& options,
                        int32_t windows);

// A scorer's weights with the memory they live in, initialised as torch's Linear does: uniform in
// +-1/sqrt(inputs). Layer by layer, weight before bias, from one Random(seed).
class OwnedMlp {
 public:
  OwnedMlp() = default;
  // sizes: inputs, hidden..., outputs.
  OwnedMlp(std::span<const int32_t> sizes, uint64_t seed);

  // Valid while this object lives and is not assigned to.
  MlpWeights weights() const;

  struct Layer {
    std::vector<float> weight;
    std::vector<float> bias;
  };
  std::vector<Layer>& layers() { return layers_; }

 private:
  std::vector<Layer> layers_;
};

}  // namespace aah

#endif  // AAH_WINDOW_DECISION_H_
