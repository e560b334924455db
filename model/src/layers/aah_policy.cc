#include "aah/model/aah_policy.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "aah/error.h"
#include "aah/io/json.h"
#include "layers/controller_io.h"
#include "layers/variants.h"

namespace aah {
namespace {

constexpr const char* kStateName = "state of the AAH controller";

// Adds the time from its construction to its destruction to `seconds`.
class AddTime {
 public:
  explicit AddTime(double* seconds) : seconds_(seconds) {}
  ~AddTime() {
    *seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  AddTime(const AddTime&) = delete;
  AddTime& operator=(const AddTime&) = delete;

 private:
  double* seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

struct AahPolicy::Layer {
  Layer(const ControlOptions& options, int32_t layer, int32_t heads, int32_t kv_heads,
        const OwnedScorers& scorers)
      : controller(options, layer, heads, scorers.weights()),
        projections(heads, kv_heads),
        statistics(heads) {}

  Controller controller;
  // Gathered for the next decision, and not yet reduced. Projections only where a step has several
  // micro-batches.
  ProjectionSums projections;
  StatisticSums statistics;
  std::vector<int32_t> windows;  // what Decide has returned
  bool advanced = false;         // in this step
  bool grouped = false;          // in this step
};

AahPolicy::AahPolicy(const ControlOptions& options, int64_t layers, int64_t heads, int64_t kv_heads,
                     int64_t context, std::vector<OwnedScorers> scorers)
    : regime_(options.regime), context_(context), scorers_(std::move(scorers)) {
  CheckControlOptions(options, static_cast<int32_t>(heads));
  if (scorers_.empty()) {
    for (int64_t layer = 0; layer < layers; ++layer) {
      scorers_.push_back(MakeScorers(options, static_cast<int32_t>(layer)));
    }
  }
  AAH_CHECK(static_cast<int64_t>(scorers_.size()) == layers, "expected scorers of ", layers,
            " layers, got ", scorers_.size());
  layers_.reserve(scorers_.size());
  for (size_t layer = 0; layer < scorers_.size(); ++layer) {
    layers_.emplace_back(options, static_cast<int32_t>(layer), static_cast<int32_t>(heads),
                         static_cast<int32_t>(kv_heads), scorers_[layer]);
  }
}

AahPolicy::~AahPolicy() = default;

void AahPolicy::BeginStep(int64_t step, int64_t micro_batches) {
  step_ = step;
  micro_batches_ = micro_batches;
  features_seconds_ = 0;
  for (Layer& layer : layers_) layer.advanced = layer.grouped = false;
}

std::span<const int32_t> AahPolicy::Decide(const AttentionInputs& inputs) {
  Layer& layer = layers_[static_cast<size_t>(inputs.layer)];
  if (inputs.training && step_ >= 0) {
    if (!layer.advanced) Advance(inputs, layer);
    if (micro_batches_ > 1 && layer.controller.NeedsFeatures(step_ + 1)) {
      Measure(inputs, layer.projections);
    }
  }
  layer.windows = layer.controller.WindowsFor(inputs.query.size(2));
  return layer.windows;
}

void AahPolicy::Advance(const AttentionInputs& inputs, Layer& layer) {
  layer.grouped = layer.controller.NeedsFeatures(step_);
  if (layer.grouped) {
    if (layer.projections.empty()) Measure(inputs, layer.projections);
    Reduce(layer);
    if (layer.statistics.values()[0] > 0) {
      layer.controller.RecordStatistics(layer.statistics.Means());
    }
  }
  try {
    layer.controller.Advance(step_, inputs.query.size(2), &layer.projections);
  } catch (const Error& error) {
    // What the controller refuses here is numbers that training has driven to infinity.
    ThrowError(ErrorKind::kMachine, "layer ", inputs.layer, ": ", error.what());
  }
  layer.projections.Clear();
  layer.statistics.Clear();
  layer.advanced = true;
}

void AahPolicy::Measure(const AttentionInputs& inputs, ProjectionSums& sums) {
  const AddTime timer(&features_seconds_);
  AddProjections(inputs, sums);
}

void AahPolicy::Reduce(Layer& layer) const {
  if (!reduction_) return;
  const std::span<double> projections = layer.projections.values();
  const std::span<double> statistics = layer.statistics.values();
  std::vector<double> values(projections.begin(), projections.end());
  values.insert(values.end(), statistics.begin(), statistics.end());
  reduction_(values);
  const auto middle = values.begin() + static_cast<int64_t>(projections.size());
  std::copy(values.begin(), middle, projections.begin());
  std::copy(middle, values.end(), statistics.begin());
}

bool AahPolicy::WantsStatistics(const AttentionInputs& inputs) const {
  return inputs.training && step_ >= 0 &&
         layers_[static_cast<size_t>(inputs.layer)].controller.NeedsFeatures(step_ + 1);
}

void AahPolicy::Observe(const AttentionInputs& inputs, const LayerStatistics& statistics) {
  const AddTime timer(&features_seconds_);
  AddStatistics(statistics, layers_[static_cast<size_t>(inputs.layer)].statistics);
}

std::vector<std::vector<int32_t>> AahPolicy::windows() const {
  std::vector<std::vector<int32_t>> windows;
  for (const Layer& layer : layers_) windows.push_back(layer.controller.WindowsFor(context_));
  return windows;
}

ControlView AahPolicy::control() const {
  ControlView view;
  for (const Layer& layer : layers_) {
    view.layers.push_back(&layer.controller);
    view.grouped = view.grouped || layer.grouped;
  }
  view.features_seconds = features_seconds_;
  return view;
}

PolicyState AahPolicy::Save() const {
  PolicyState state;
  Json json = {{"policy", "aah"}, {"regime", regime_}, {"layers", Json::array()}};
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    Json& numbers = json["layers"].emplace_back(Json::object());
    SaveController(layer.controller.state(), LayerPrefix(i), state, numbers);
    SaveSums(layer.projections, layer.statistics, LayerPrefix(i), state);
  }
  state.json = json.dump();
  return state;
}

void AahPolicy::Restore(const PolicyState& state) {
  AAH_CHECK(!state.json.empty(),
            "the checkpoint holds no controller's state, expected that of the regime ", regime_,
            "; resume with the attention it was written by, or start a new run from its weights");
  const Json json = ParseJson(state.json, kStateName);
  const auto policy = JsonMember<std::string>(json, "policy", kStateName);
  const auto regime = JsonMember<std::string>(json, "regime", kStateName);
  AAH_CHECK(policy == "aah" && regime == regime_, kStateName, ": expected that of the regime ",
            regime_, ", got that of ", policy, " ", regime);
  const Json& numbers = JsonAt(json, "layers", kStateName);
  AAH_CHECK(numbers.is_array() && numbers.size() == layers_.size(), kStateName, ": expected ",
            layers_.size(), " layers, got ", numbers.size());
  StateReader reader(state, kStateName);
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    layer.controller.set_state(ReadController(LayerPrefix(i), numbers[i], reader));
    ReadSums(LayerPrefix(i), reader, layer.projections, layer.statistics);
  }
  reader.Finish();
}

std::unique_ptr<AttentionVariant> MakeAahAttention(const AttentionConfig& attention,
                                                   const ModelConfig& model) {
  RefuseUnusedSettings(attention, false, false, true);
  ControlOptions options = attention.control;
  if (options.windows.empty()) options.windows = DefaultWindows(model.context);
  try {
    return MakeWindowedAttention(
        std::make_unique<AahPolicy>(options, model.layers, model.heads, model.kv_heads_or_default(),
                                    model.context),
        attention.sinks);
  } catch (const Error& error) {
    ThrowError(error.kind(), "attention.control: ", error.what());
  }
}

}  // namespace aah
