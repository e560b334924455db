#include "layers/learned/scorer_network.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "aah/grouping.h"
#include "aah/regime.h"

namespace aah {
namespace {

at::Tensor IndexOf(const std::vector<int32_t>& index) { return at::tensor(index, at::kLong); }

// Rows minus the mean of their family's other rows; zeros where there is no other.
at::Tensor SiblingDifferences(const GroupInputs& groups) {
  at::Tensor differences = at::zeros_like(groups.rows);
  for (const std::vector<int32_t>& family : GroupsFromItems(groups.family)) {
    if (family.size() < 2) continue;
    const at::Tensor members = IndexOf(family);
    const at::Tensor own = groups.rows.index_select(0, members).to(at::kDouble);
    const at::Tensor others =
        (own.sum(0, /*keepdim=*/true) - own) / static_cast<double>(family.size() - 1);
    differences.index_copy_(0, members, (own - others).to(at::kFloat));
  }
  return differences;
}

}  // namespace

GroupInputs GroupInputsOf(const Hierarchy& hierarchy, int32_t level, ControllerInput input) {
  const std::vector<std::vector<float>> rows = ControllerInputs(hierarchy, level, input);
  GroupInputs groups;
  groups.rows = at::empty({std::ssize(rows), ControllerInputSize(input)});
  float* to = groups.rows.mutable_data_ptr<float>();
  for (const std::vector<float>& row : rows) to = std::copy(row.begin(), row.end(), to);
  groups.family = hierarchy.levels[static_cast<size_t>(level)].parent;
  groups.family.resize(rows.size(), 0);
  return groups;
}

ScorerNetwork::ScorerNetwork(const ControlOptions& options, int64_t layers)
    : decision_(MakeDecisionOptions(options, FindRegime(options.regime))) {
  std::vector<OwnedMlp> base;
  std::vector<OwnedMlp> siblings;
  for (int64_t layer = 0; layer < layers; ++layer) {
    OwnedScorers scorers = MakeScorers(options, static_cast<int32_t>(layer));
    base.push_back(std::move(scorers.base));
    siblings.push_back(std::move(scorers.siblings));
  }
  base_ = Add("base", std::move(base));
  siblings_ = Add("siblings", std::move(siblings));
}

ScorerNetwork::Range ScorerNetwork::Add(const char* name, std::vector<OwnedMlp> layers) {
  Range range = {.begin = parameters_.size(), .end = parameters_.size()};
  for (size_t linear = 0; linear < layers.front().layers().size(); ++linear) {
    std::vector<at::Tensor> weights;
    std::vector<at::Tensor> biases;
    for (OwnedMlp& mlp : layers) {
      const OwnedMlp::Layer& from = mlp.layers()[linear];
      biases.push_back(at::tensor(from.bias, at::kFloat));
      weights.push_back(at::tensor(from.weight, at::kFloat).view({std::ssize(from.bias), -1}));
    }
    const std::string prefix = std::string(name) + "." + std::to_string(linear) + ".";
    parameters_.push_back({prefix + "weight", at::stack(weights).requires_grad_()});
    parameters_.push_back({prefix + "bias", at::stack(biases).requires_grad_()});
  }
  range.end = parameters_.size();
  return range;
}

at::Tensor ScorerNetwork::Run(const Range& mlp, int64_t layer, const at::Tensor& rows) const {
  at::Tensor values = rows.to(at::kDouble);
  for (size_t i = mlp.begin; i < mlp.end; i += 2) {
    if (i > mlp.begin) values = at::gelu(values);
    values = at::linear(values, parameters_[i].value.select(0, layer).to(at::kDouble),
                        parameters_[i + 1].value.select(0, layer).to(at::kDouble));
  }
  return values.to(at::kFloat);
}

// Pairs of siblings in index order get their rows together, in place of those in `logits`.
at::Tensor ScorerNetwork::ScorePairs(int64_t layer, const GroupInputs& groups,
                                     const at::Tensor& logits) const {
  std::vector<int32_t> members;  // of the first pair, of the second, ...
  for (const std::vector<int32_t>& family : GroupsFromItems(groups.family)) {
    members.insert(members.end(), family.begin(), family.end() - std::ssize(family) % 2);
  }
  if (members.empty()) return logits;
  const at::Tensor index = IndexOf(members);
  const at::Tensor pairs =
      groups.rows.index_select(0, index).view({std::ssize(members) / 2, 2, groups.rows.size(1)});
  const at::Tensor first = pairs.select(1, 0);
  const at::Tensor second = pairs.select(1, 1);
  const at::Tensor both =
      Run(siblings_, layer, at::cat({first, second, first - second, second - first}, 1));
  return logits.index_copy(0, index,
                           decision_.joint_output_scale * both.view({-1, logits.size(1)}));
}

at::Tensor ScorerNetwork::Logits(int64_t layer, const GroupInputs& groups) const {
  at::Tensor logits = decision_.logit_scale * Run(base_, layer, groups.rows);
  switch (decision_.siblings) {
    case SiblingScoring::kJoint:
      return ScorePairs(layer, groups, logits);
    case SiblingScoring::kBias:
      return logits +
             decision_.sibling_bias_scale * Run(siblings_, layer, SiblingDifferences(groups));
    case SiblingScoring::kNone:
      break;
  }
  return logits;
}

MlpWeights ScorerNetwork::WeightsOf(const Range& mlp, int64_t layer) const {
  const auto row = [&](const at::Tensor& all) {
    const auto size = static_cast<size_t>(all.numel() / all.size(0));
    return std::span(all.const_data_ptr<float>() + static_cast<size_t>(layer) * size, size);
  };
  MlpWeights weights;
  for (size_t i = mlp.begin; i < mlp.end; i += 2) {
    weights.push_back({row(parameters_[i].value), row(parameters_[i + 1].value)});
  }
  return weights;
}

ScorerWeights ScorerNetwork::weights(int64_t layer) const {
  return {WeightsOf(base_, layer), WeightsOf(siblings_, layer)};
}

}  // namespace aah
