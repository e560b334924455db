#include "layers/learned/scorer_logits.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "aah/error.h"
#include "aah/grouping.h"
#include "aah/model/learned_attention.h"
#include "aah/model/operator.h"
#include "aah/regime.h"
#include "layers/learned/learned_checks.h"
#include "layers/variants.h"

namespace aah {
namespace {

constexpr const char* kScorerState = "the state of trained scorers in the checkpoint";
constexpr const char* kName = "aah_learned";

// With every mixed step open to a grouping.
ControlOptions Checked(ControlOptions control, int32_t heads) {
  control.warmup_steps = 0;
  CheckControlOptions(control, heads);
  const Regime regime = FindRegime(control.regime);
  AAH_CHECK(regime.windows == WindowSource::kScorer && !regime.shuffled,
            "regime: expected one whose windows are scored by group, got '", control.regime,
            "', which leaves nothing to train; choose another or attention.variant aah");
  return control;
}

// How many groups the items are in that are numbered 0, 1, ...; -1 where a number is left out.
int64_t NumberOf(std::vector<int32_t> groups) {
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  const int64_t count = std::ssize(groups);
  return count == 0 || (groups.front() == 0 && groups.back() + 1 == count) ? count : -1;
}

}  // namespace

ScorerLogits::ScorerLogits(const ControlOptions& control, const AttentionShape& shape,
                           int64_t context, int32_t sinks, WindowShare share, double learning_rate)
    : control_(Checked(control, shape.heads)),
      shape_(shape),
      context_(context),
      sinks_(sinks),
      share_(share),
      learning_rate_(learning_rate),
      network_(control_, shape.layers) {
  for (int32_t layer = 0; layer < shape.layers; ++layer) {
    layers_.push_back({.controller = {control_, layer, shape.heads, network_.weights(layer)},
                       .projections = {shape.heads, shape.kv_heads},
                       .statistics = StatisticSums(shape.heads),
                       .inputs = {},
                       .group_of_head = {}});
  }
}

void ScorerLogits::BeginStep(const StepPosition& position, MixedSteps mixed) {
  for (int64_t layer = 0; layer < shape_.layers; ++layer) {
    LayerState& state = layers_[static_cast<size_t>(layer)];
    if (mixed.current && !state.projections.empty() &&
        state.controller.NeedsFeatures(position.step)) {
      Regroup(position.step, layer);
    }
    AAH_CHECK(!mixed.current || state.inputs.rows.defined(),
              "expected a step of warm-up, in which the heads are measured, got none of ",
              position.steps, " steps; raise attention.learned.warmup");
    state.projections.Clear();
    state.statistics.Clear();
  }
  measuring_ = mixed.next && layers_.front().controller.NeedsFeatures(position.step + 1);
}

void ScorerLogits::Regroup(int64_t step, int64_t layer) {
  LayerState& state = layers_[static_cast<size_t>(layer)];
  try {
    state.controller.RecordStatistics(state.statistics.Means());
    state.controller.Advance(step, context_, &state.projections);
  } catch (const Error& error) {
    // What the controller refuses here is numbers that training has driven to infinity.
    ThrowError(ErrorKind::kMachine, "layer ", layer, ": ", error.what());
  }
  const Hierarchy& hierarchy = state.controller.report().hierarchy;
  state.inputs = GroupInputsOf(hierarchy, 0, control_.input);
  state.group_of_head = GroupOfItems(hierarchy.levels.front().groups, shape_.heads);
}

void ScorerLogits::Observe(const AttentionInputs& inputs) {
  if (measuring_) Measure(inputs, layers_[static_cast<size_t>(inputs.layer)]);
}

void ScorerLogits::Measure(const AttentionInputs& inputs, LayerState& layer) const {
  const c10::NoGradGuard no_grad;
  AddProjections(inputs, layer.projections);
  AttentionOperatorOptions options;
  options.sinks = sinks_;
  options.statistics = true;
  const at::Tensor full = at::full({shape_.heads}, context_, at::kInt);
  const AttentionOperatorResult result =
      Attention(inputs.query, inputs.key, inputs.value, full, options);
  AddStatistics({result.entropy, result.norm, result.usage}, layer.statistics);
}

at::Tensor ScorerLogits::Layer(int64_t layer) const {
  const LayerState& state = LayerAt(layer);
  const int64_t items = share_ == WindowShare::kHead ? shape_.heads : shape_.kv_heads;
  const int64_t candidates = std::ssize(control_.windows);
  if (!state.inputs.rows.defined()) return at::zeros({items, candidates});
  const at::Tensor of_head = at::tensor(state.group_of_head, at::kLong);
  at::Tensor logits = network_.Logits(layer, state.inputs).index_select(0, of_head);
  if (share_ == WindowShare::kHead) return logits;
  return logits.view({items, -1, candidates}).mean(1);
}

std::vector<OwnParameter> ScorerLogits::parameters() {
  std::vector<OwnParameter> parameters;
  for (const ScorerNetwork::Parameter& parameter : network_.parameters()) {
    parameters.push_back({.name = "scorers." + parameter.name,
                          .value = parameter.value,
                          .learning_rate = learning_rate_});
  }
  return parameters;
}

PolicyState ScorerLogits::Save() const {
  PolicyState state;
  for (const ScorerNetwork::Parameter& parameter : network_.parameters()) {
    state.tensors[parameter.name] = VectorOf(std::span(
        parameter.value.const_data_ptr<float>(), static_cast<size_t>(parameter.value.numel())));
  }
  Json json = {{"logits", kName}, {"regime", control_.regime}, {"layers", Json::array()}};
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerState& layer = layers_[i];
    const std::string prefix = LayerPrefix(i);
    SaveController(layer.controller.state(), prefix, state,
                   json["layers"].emplace_back(Json::object()));
    SaveSums(layer.projections, layer.statistics, prefix, state);
    const at::Tensor rows = layer.inputs.rows.defined() ? layer.inputs.rows : at::empty({0});
    state.tensors[prefix + "inputs"] =
        VectorOf(std::span(rows.const_data_ptr<float>(), static_cast<size_t>(rows.numel())));
    state.tensors[prefix + "scored_group"] =
        VectorOf(std::span<const int32_t>(layer.group_of_head));
    state.tensors[prefix + "family"] = VectorOf(std::span<const int32_t>(layer.inputs.family));
  }
  state.json = json.dump();
  return state;
}

ScorerLogits::LayerState ScorerLogits::ReadLayer(size_t index, const Json& json,
                                                 StateReader& reader) const {
  const std::string prefix = LayerPrefix(index);
  LayerState layer = layers_[index];
  layer.controller.set_state(ReadController(prefix, json, reader));
  ReadSums(prefix, reader, layer.projections, layer.statistics);
  const std::span<const float> rows = reader.Vector<float>(prefix + "inputs");
  const std::span<const int32_t> family = reader.Vector<int32_t>(prefix + "family");
  const std::span<const int32_t> group = reader.Vector<int32_t>(prefix + "scored_group");
  layer.inputs = {};
  layer.inputs.family.assign(family.begin(), family.end());
  layer.group_of_head.assign(group.begin(), group.end());
  const int64_t size = ControllerInputSize(control_.input);
  const int64_t groups = NumberOf(layer.group_of_head);
  AAH_CHECK(group.empty() || std::ssize(group) == shape_.heads, kScorerState, ": ", prefix,
            "scored_group: expected that of ", shape_.heads, " heads, got ", group.size());
  AAH_CHECK(groups >= 0 && NumberOf(layer.inputs.family) >= 0, kScorerState, ": ", prefix,
            "scored_group and family: expected numbers from 0 on with none left out");
  AAH_CHECK(std::ssize(rows) == groups * size && std::ssize(family) == groups, kScorerState, ": ",
            prefix, "inputs: expected ", size, " numbers and a family for each of ", groups,
            " groups, got ", rows.size(), " and ", family.size());
  if (groups == 0) return layer;
  AAH_CHECK(std::all_of(rows.begin(), rows.end(), [](float x) { return std::isfinite(x); }),
            kScorerState, ": ", prefix, "inputs: expected finite numbers");
  layer.inputs.rows = VectorOf(rows).view({groups, size});
  return layer;
}

void ScorerLogits::Restore(const PolicyState& state) {
  AAH_CHECK(!state.json.empty(), kScorerState, ": expected that of ", kName,
            ", got that of other logits; resume with the config it was written by");
  const Json json = ParseJson(state.json, kScorerState);
  const auto regime = JsonMember<std::string>(json, "regime", kScorerState);
  AAH_CHECK(regime == control_.regime, kScorerState, ": expected that of the regime ",
            control_.regime, ", got that of ", regime);
  const Json& numbers = JsonAt(json, "layers", kScorerState);
  AAH_CHECK(numbers.is_array() && numbers.size() == layers_.size(), kScorerState, ": expected ",
            layers_.size(), " layers, got ", numbers.size());
  StateReader reader(state, kScorerState);
  std::vector<LayerState> layers;
  for (size_t i = 0; i < layers_.size(); ++i) layers.push_back(ReadLayer(i, numbers[i], reader));
  std::vector<std::vector<float>> values;
  for (const ScorerNetwork::Parameter& parameter : network_.parameters()) {
    reader.ReadInto(
        parameter.name,
        std::span<float>(values.emplace_back(static_cast<size_t>(parameter.value.numel()))));
  }
  reader.Finish();
  layers_ = std::move(layers);
  const c10::NoGradGuard no_grad;
  for (size_t i = 0; i < values.size(); ++i) {
    const at::Tensor& value = network_.parameters()[i].value;
    value.copy_(VectorOf(std::span<const float>(values[i])).view_as(value));
  }
}

std::unique_ptr<AttentionVariant> MakeAahLearnedAttention(const AttentionConfig& attention,
                                                          const ModelConfig& model) {
  RefuseUnusedSettings(attention, false, false, true);
  AAH_CHECK(attention.control.windows.empty(), "attention.control.windows is set, but the ",
            "candidates of '", kName, "' are attention.learned.candidates; remove it");
  LearnedOptions learned = attention.learned;
  if (learned.candidates.empty()) learned.candidates = DefaultCandidates(model.context);
  try {
    CheckLearnedOptions(learned, model.context);
  } catch (const Error& error) {
    ThrowError(error.kind(), "attention.learned: ", error.what());
  }
  ControlOptions control = attention.control;
  control.windows = learned.candidates;
  std::unique_ptr<SelectionLogits> logits;
  try {
    logits = std::make_unique<ScorerLogits>(control, PlanModelOf(model).shape, model.context,
                                            attention.sinks, learned.share,
                                            learned.scorer_learning_rate);
  } catch (const Error& error) {
    ThrowError(error.kind(), "attention.control: ", error.what());
  }
  try {
    return std::make_unique<LearnedAttention>(learned, model, attention.sinks, std::move(logits));
  } catch (const Error& error) {
    ThrowError(error.kind(), "attention.learned: ", error.what());
  }
}

}  // namespace aah
