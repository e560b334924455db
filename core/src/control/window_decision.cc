#include "aah/window_decision.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "aah/error.h"
#include "aah/random.h"
#include "control/named_choice.h"

namespace aah {
namespace {

using Inputs = std::vector<std::vector<float>>;
// Groups under one parent, in index order.
using Families = std::vector<std::vector<int32_t>>;

// At the top, where there are no parents, all groups are siblings.
Families SiblingsOf(const HierarchyLevel& level) {
  Families families;
  if (!level.parent.empty()) return GroupsFromItems(level.parent);
  families.emplace_back();
  for (size_t group = 0; group < level.groups.size(); ++group) {
    families[0].push_back(static_cast<int32_t>(group));
  }
  return families;
}

// row minus the mean of the family's other rows; zeros where there is no other.
template <typename Row>
std::vector<float> SiblingDifference(std::span<const Row> rows, std::span<const int32_t> family,
                                     int32_t group) {
  const Row& own = rows[static_cast<size_t>(group)];
  std::vector<float> difference(own.size(), 0.0F);
  if (family.size() < 2) return difference;
  for (size_t i = 0; i < own.size(); ++i) {
    double sum = 0;
    for (const int32_t sibling : family) {
      if (sibling != group) sum += double{rows[static_cast<size_t>(sibling)][i]};
    }
    difference[i] =
        static_cast<float>(double{own[i]} - sum / static_cast<double>(family.size() - 1));
  }
  return difference;
}

void Append(std::vector<float>& input, std::span<const float> part) {
  input.insert(input.end(), part.begin(), part.end());
}

std::vector<float> Difference(std::span<const float> a, std::span<const float> b) {
  std::vector<float> difference(a.begin(), a.end());
  for (size_t i = 0; i < b.size(); ++i) difference[i] -= b[i];
  return difference;
}

// The pieces that inputs are made of, for one level.
class InputParts {
 public:
  InputParts(const Hierarchy& hierarchy, int32_t level)
      : level_(hierarchy.levels[static_cast<size_t>(level)]), families_(SiblingsOf(level_)) {
    const size_t levels = hierarchy.levels.size();
    if (!level_.parent.empty()) above_ = &hierarchy.levels[static_cast<size_t>(level) + 1];
    depth_ = levels < 2 ? 0.0F : static_cast<float>(level) / static_cast<float>(levels - 1);
    for (const std::vector<int32_t>& group : level_.groups) members_ += group.size();
    for (size_t i = 0; i < kFeatureCount; ++i) {
      double sum = 0;
      for (const FeatureRow& row : level_.features) sum += double{row[i]};
      mean_[i] = static_cast<float>(sum / static_cast<double>(level_.features.size()));
    }
  }

  const Families& families() const { return families_; }

  std::vector<float> Base(int32_t group) const {
    const FeatureRow& row = features(group);
    return {row.begin(), row.end()};
  }

  std::vector<float> Enriched(int32_t group) const {
    std::vector<float> input = Base(group);
    input.push_back(depth_);
    Append(input, ParentDifference(group));
    Append(input, Difference(features(group), mean_));
    const auto own = static_cast<float>(level_.groups[static_cast<size_t>(group)].size());
    input.push_back(own / static_cast<float>(members_));
    return input;
  }

  std::vector<float> Contrastive(int32_t group, std::span<const int32_t> family) const {
    std::vector<float> input = Enriched(group);
    Append(input, SiblingDifference<FeatureRow>(level_.features, family, group));
    return input;
  }

  std::vector<float> PositionAware(int32_t group, std::span<const int32_t> family) const {
    std::vector<float> input = Enriched(group);
    const auto position = std::find(family.begin(), family.end(), group) - family.begin();
    const auto last = std::max<std::ptrdiff_t>(std::ssize(family) - 1, 1);
    input.push_back(static_cast<float>(position) / static_cast<float>(last));
    input.push_back(position == 0 ? 1.0F : 0.0F);
    input.push_back(position == 0 ? 0.0F : 1.0F);
    return input;
  }

  std::vector<float> RelativeSiblingMean(int32_t group, std::span<const int32_t> family) const {
    std::vector<float> input = Base(group);
    Append(input, SiblingDifference<FeatureRow>(level_.features, family, group));
    Append(input, ParentDifference(group));
    input.push_back(depth_);
    return input;
  }

 private:
  const FeatureRow& features(int32_t group) const {
    return level_.features[static_cast<size_t>(group)];
  }

  std::vector<float> ParentDifference(int32_t group) const {
    if (above_ == nullptr) return std::vector<float>(kFeatureCount, 0.0F);
    const int32_t parent = level_.parent[static_cast<size_t>(group)];
    return Difference(features(group), above_->features[static_cast<size_t>(parent)]);
  }

  const HierarchyLevel& level_;
  const HierarchyLevel* above_ = nullptr;
  Families families_;
  float depth_ = 0;
  size_t members_ = 0;
  FeatureRow mean_ = {};
};

double Gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); }

void Scale(std::vector<float>& row, float factor) {
  for (float& x : row) x *= factor;
}

// In place of their base logits, pairs of siblings get logits from what both are.
void ScoreJointly(const Inputs& inputs, const Families& families, const ScorerWeights& scorers,
                  float scale, std::vector<std::vector<float>>& logits) {
  for (const std::vector<int32_t>& family : families) {
    for (size_t i = 0; i + 1 < family.size(); i += 2) {
      const auto first = static_cast<size_t>(family[i]);
      const auto second = static_cast<size_t>(family[i + 1]);
      std::vector<float> pair = inputs[first];
      Append(pair, inputs[second]);
      Append(pair, Difference(inputs[first], inputs[second]));
      Append(pair, Difference(inputs[second], inputs[first]));
      std::vector<float> both = RunMlp(scorers.siblings, pair);
      Scale(both, scale);
      const auto middle = both.begin() + std::ssize(both) / 2;
      logits[first].assign(both.begin(), middle);
      logits[second].assign(middle, both.end());
    }
  }
}

void AddSiblingBias(const Inputs& inputs, const Families& families, const ScorerWeights& scorers,
                    float scale, std::vector<std::vector<float>>& logits) {
  for (const std::vector<int32_t>& family : families) {
    for (const int32_t group : family) {
      const std::vector<float> bias =
          RunMlp(scorers.siblings, SiblingDifference<std::vector<float>>(inputs, family, group));
      std::vector<float>& row = logits[static_cast<size_t>(group)];
      for (size_t i = 0; i < row.size(); ++i) row[i] += scale * bias[i];
    }
  }
}

std::vector<std::vector<float>> Score(const Inputs& inputs, const Families& families,
                                      const ScorerWeights& scorers,
                                      const DecisionOptions& options) {
  std::vector<std::vector<float>> logits;
  for (const std::vector<float>& input : inputs) {
    Scale(logits.emplace_back(RunMlp(scorers.base, input)), options.logit_scale);
  }
  if (options.siblings == SiblingScoring::kJoint) {
    ScoreJointly(inputs, families, scorers, options.joint_output_scale, logits);
  } else if (options.siblings == SiblingScoring::kBias) {
    AddSiblingBias(inputs, families, scorers, options.sibling_bias_scale, logits);
  }
  return logits;
}

void CheckMlp(const char* what, const MlpWeights& mlp, int32_t inputs, int32_t outputs) {
  AAH_CHECK(!mlp.empty(), "the ", what, " scorer has no weights");
  auto width = static_cast<size_t>(inputs);
  for (size_t layer = 0; layer < mlp.size(); ++layer) {
    AAH_CHECK(
        !mlp[layer].bias.empty() && mlp[layer].weight.size() == width * mlp[layer].bias.size(),
        "layer ", layer, " of the ", what, " scorer takes ", width, " inputs, but has ",
        mlp[layer].weight.size(), " weights for ", mlp[layer].bias.size(), " outputs");
    width = mlp[layer].bias.size();
  }
  AAH_CHECK(width == static_cast<size_t>(outputs), "the ", what, " scorer should give ", outputs,
            " numbers, but gives ", width);
}

}  // namespace

ControllerInput ParseControllerInput(std::string_view name) {
  static constexpr std::array<std::pair<const char*, ControllerInput>, 5> kTable = {{
      {"base", ControllerInput::kBase},
      {"enriched", ControllerInput::kEnriched},
      {"contrastive", ControllerInput::kContrastive},
      {"position_aware", ControllerInput::kPositionAware},
      {"relative_sibling_mean", ControllerInput::kRelativeSiblingMean},
  }};
  return ParseChoice("controller input", name, kTable);
}

SiblingScoring ParseSiblingScoring(std::string_view name) {
  static constexpr std::array<std::pair<const char*, SiblingScoring>, 3> kTable = {{
      {"none", SiblingScoring::kNone},
      {"joint_sibling", SiblingScoring::kJoint},
      {"sibling_bias", SiblingScoring::kBias},
  }};
  return ParseChoice("sibling scoring", name, kTable);
}

int32_t ControllerInputSize(ControllerInput input) {
  constexpr int32_t kFeatures = kFeatureCount;
  constexpr int32_t kEnriched = 3 * kFeatures + 2;
  switch (input) {
    case ControllerInput::kBase:
      return kFeatures;
    case ControllerInput::kEnriched:
      return kEnriched;
    case ControllerInput::kContrastive:
      return kEnriched + kFeatures;
    case ControllerInput::kPositionAware:
      return kEnriched + 3;
    case ControllerInput::kRelativeSiblingMean:
      return 3 * kFeatures + 1;
  }
  return 0;
}

std::vector<std::vector<float>> ControllerInputs(const Hierarchy& hierarchy, int32_t level,
                                                 ControllerInput input) {
  const InputParts parts(hierarchy, level);
  Inputs inputs(hierarchy.levels[static_cast<size_t>(level)].groups.size());
  for (const std::vector<int32_t>& family : parts.families()) {
    for (const int32_t group : family) {
      std::vector<float>& row = inputs[static_cast<size_t>(group)];
      switch (input) {
        case ControllerInput::kBase:
          row = parts.Base(group);
          break;
        case ControllerInput::kEnriched:
          row = parts.Enriched(group);
          break;
        case ControllerInput::kContrastive:
          row = parts.Contrastive(group, family);
          break;
        case ControllerInput::kPositionAware:
          row = parts.PositionAware(group, family);
          break;
        case ControllerInput::kRelativeSiblingMean:
          row = parts.RelativeSiblingMean(group, family);
          break;
      }
    }
  }
  return inputs;
}

std::vector<float> RunMlp(const MlpWeights& mlp, std::span<const float> input) {
  std::vector<double> values(input.begin(), input.end());
  for (size_t layer = 0; layer < mlp.size(); ++layer) {
    const LinearWeights& linear = mlp[layer];
    std::vector<double> outputs(linear.bias.begin(), linear.bias.end());
    for (size_t out = 0; out < outputs.size(); ++out) {
      const std::span<const float> row = linear.weight.subspan(out * values.size(), values.size());
      for (size_t in = 0; in < values.size(); ++in) outputs[out] += double{row[in]} * values[in];
      if (layer + 1 < mlp.size()) outputs[out] = Gelu(outputs[out]);
    }
    values = std::move(outputs);
  }
  std::vector<float> result;
  result.reserve(values.size());
  for (const double value : values) result.push_back(static_cast<float>(value));
  return result;
}

void CheckScorerWeights(const ScorerWeights& scorers, const DecisionOptions& options,
                        int32_t windows) {
  const int32_t inputs = ControllerInputSize(options.input);
  CheckMlp("base", scorers.base, inputs, windows);
  if (options.siblings == SiblingScoring::kJoint) {
    CheckMlp("joint sibling", scorers.siblings, 4 * inputs, 2 * windows);
  } else if (options.siblings == SiblingScoring::kBias) {
    CheckMlp("sibling bias", scorers.siblings, inputs, windows);
  }
}

std::vector<LevelDecision> DecideWindows(const Hierarchy& hierarchy, const ScorerWeights& scorers,
                                         const DecisionOptions& options, int32_t windows) {
  CheckScorerWeights(scorers, options, windows);
  std::vector<LevelDecision> decisions(hierarchy.levels.size());
  for (size_t level = hierarchy.levels.size(); level-- > 0;) {
    const HierarchyLevel& groups = hierarchy.levels[level];
    LevelDecision& decision = decisions[level];
    decision.logits = Score(ControllerInputs(hierarchy, static_cast<int32_t>(level), options.input),
                            SiblingsOf(groups), scorers, options);
    for (size_t group = 0; group < decision.logits.size(); ++group) {
      const std::vector<float>& logits = decision.logits[group];
      AAH_CHECK(std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); }),
                "the window scorer gave a logit that is not finite: its weights have diverged");
      const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
      decision.raw.push_back(static_cast<int32_t>(best));
      int32_t index = decision.raw.back();
      if (options.parent_constraint && !groups.parent.empty()) {
        const auto parent = static_cast<size_t>(groups.parent[group]);
        index = std::min(index, decisions[level + 1].index[parent]);
      }
      decision.index.push_back(index);
    }
  }
  return decisions;
}

OwnedMlp::OwnedMlp(std::span<const int32_t> sizes, uint64_t seed) {
  Random random(seed);
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    const auto inputs = static_cast<size_t>(sizes[i]);
    const auto outputs = static_cast<size_t>(sizes[i + 1]);
    const double bound = 1 / std::sqrt(static_cast<double>(inputs));
    const auto fill = [&](size_t count) {
      std::vector<float> values(count);
      for (float& x : values) x = static_cast<float>(bound * (2 * random.Uniform() - 1));
      return values;
    };
    Layer& layer = layers_.emplace_back();
    layer.weight = fill(inputs * outputs);
    layer.bias = fill(outputs);
  }
}

MlpWeights OwnedMlp::weights() const {
  MlpWeights weights;
  for (const Layer& layer : layers_) weights.push_back({layer.weight, layer.bias});
  return weights;
}

}  // namespace aah
