#include "aah/model/learned_attention.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "aah/error.h"
#include "aah/io/json.h"
#include "aah/model/nested_operator.h"
#include "aah/model/operator.h"
#include "aah/random.h"
#include "layers/learned/learned_checks.h"
#include "layers/variants.h"

namespace aah {
namespace {

const std::string kSelectionState = "the attention's state in the checkpoint";
const std::string kLogitsPrefix = "logits.";
const std::string kPlanTensor = "plan";  // int32 [layers * heads] into the candidates, or empty

// How many snapshots of the selection a search leaves in the logs at most.
constexpr int64_t kSnapshots = 64;

// Part of the search in which the target falls; in the rest the weights settle within the budget.
constexpr double kTargetFall = 0.7;

// The first target is what it costs to have the widest candidate with this weight, and the others
// with equal shares of the rest.
constexpr double kFirstWeight = 0.9;

SelectionPhase ParsePhase(const std::string& name) {
  for (const SelectionPhase phase :
       {SelectionPhase::kWarmup, SelectionPhase::kSearch, SelectionPhase::kPlan}) {
    if (name == SelectionPhaseName(phase)) return phase;
  }
  ThrowError(ErrorKind::kBadInput, kSelectionState, ": unknown phase '", name, "'");
}

// Cost of one head, or key/value head, by candidate: a share of its full cost.
at::Tensor CandidateCost(const std::vector<int32_t>& candidates, int32_t head_dim, int32_t sinks,
                         const WindowBudget& budget) {
  const AttentionShape one = {.layers = 1, .heads = 1, .kv_heads = 1, .head_dim = head_dim};
  const at::Tensor cost = at::empty({std::ssize(candidates)}, at::kDouble);
  for (size_t n = 0; n < candidates.size(); ++n) {
    cost.mutable_data_ptr<double>()[n] = CostRatio({{candidates[n]}}, one, sinks, budget);
  }
  return cost;
}

double FirstTarget(const CandidateCosts& costs) {
  const int64_t others = costs.cost.numel() - 1;
  if (others == 0) return costs.cost.item<double>();
  const at::Tensor weights =
      at::full({others + 1}, (1 - kFirstWeight) / static_cast<double>(others), at::kDouble);
  weights[-1] = kFirstWeight;
  return ExpectedCost(weights.repeat({costs.largest_of, 1}), costs).item<double>();
}

}  // namespace

LearnedAttention::LearnedAttention(const LearnedOptions& options, const ModelConfig& model,
                                   int32_t sinks, std::unique_ptr<SelectionLogits> logits)
    : options_(options),
      model_(model),
      shape_(PlanModelOf(model).shape),
      sinks_(sinks),
      logits_(std::move(logits)),
      temperature_(options.temperature) {
  AAH_CHECK(sinks >= 0, "sinks: expected a number of tokens from 0 on, got ", sinks);
  if (options_.candidates.empty()) options_.candidates = DefaultCandidates(model.context);
  CheckLearnedOptions(options_, model.context);
  options_.candidates.back() = static_cast<int32_t>(model.context);
  budget_ = BudgetOf(options_, model.context);
  CheckWindowBudget(budget_, shape_);
  const int32_t group = shape_.heads / shape_.kv_heads;
  heads_per_item_ = options_.share == WindowShare::kKvHead ? group : 1;
  costs_ = {
      .cost = CandidateCost(options_.candidates, shape_.head_dim, sinks, budget_),
      .largest_of = options_.budget_kind == BudgetKind::kCacheBytes ? group / heads_per_item_ : 1};
  first_target_ = FirstTarget(costs_);
  target_cost_ = expected_cost_ = costs_.cost[-1].item<double>();
  const double least = costs_.cost[0].item<double>();
  AAH_CHECK(least <= options_.budget, "budget: expected at least ", least,
            ", what the smallest candidate, ", options_.candidates.front(), ", with ", sinks,
            " sinks costs everywhere at ", budget_.length, " tokens, got ", options_.budget,
            "; raise the budget, add a smaller candidate, or change sinks or budget_length");
  if (logits_ == nullptr) {
    logits_ = MakeFreeLogits(shape_.layers, shape_.heads / heads_per_item_,
                             std::ssize(options_.candidates), options_.learning_rate);
  }
}

void LearnedAttention::BeginStep(const StepPosition& position) {
  const int64_t step = position.step;
  const auto tracks = [&](int64_t at) {
    return options_.track_every > 0 && at > plan_step_ &&
           (at - plan_step_) % options_.track_every == 0;
  };
  decided_ = tracking_ = snapshot_ = false;
  moved_ = 0;
  computed_.clear();
  // A search goes on as it began, and a plan stays one, also where the run is made longer.
  SelectionSchedule schedule(options_, position.steps);
  if (phase_ == SelectionPhase::kSearch) {
    schedule.search_begin = search_begin_;
    schedule.search_end = search_end_;
  }
  const SelectionPhase phase =
      phase_ == SelectionPhase::kPlan ? SelectionPhase::kPlan : schedule.Phase(step);
  if (phase == SelectionPhase::kSearch) {
    search_begin_ = schedule.search_begin;
    search_end_ = schedule.search_end;
    BeginSearchStep(schedule, step);
  } else if (phase == SelectionPhase::kPlan) {
    temperature_ = options_.final_temperature;
    target_cost_ = options_.budget;
    least_multiplier_ = 0;
    if (phase_ != SelectionPhase::kPlan) plan_step_ = step;
    if (plan_step_ == step || tracks(step - 1)) Decide();
    tracking_ = tracks(step);
    snapshot_ = decided_;
  }
  phase_ = phase;
  const bool next_mixes = phase == SelectionPhase::kPlan
                              ? tracks(step + 1)
                              : schedule.Phase(step + 1) == SelectionPhase::kSearch;
  logits_->BeginStep(position, {.current = Mixes(true), .next = next_mixes});
  DrawNoise(step);
  ChooseWeights();
}

void LearnedAttention::BeginSearchStep(const SelectionSchedule& schedule, int64_t step) {
  const double progress = schedule.Progress(step);
  temperature_ =
      options_.temperature + progress * (options_.final_temperature - options_.temperature);
  const double fall = std::min(1.0, progress / kTargetFall);
  target_cost_ =
      fall < 1 ? first_target_ + fall * (options_.budget - first_target_) : options_.budget;
  // On its way the target is met; a search that then wants less than the budget may have it.
  least_multiplier_ = fall < 1 ? std::nullopt : std::optional<double>(0);
  const int64_t length = schedule.search_end - schedule.search_begin;
  snapshot_ = (step - schedule.search_begin) % ((length + kSnapshots - 1) / kSnapshots) == 0 ||
              step + 1 == schedule.search_end;
}

void LearnedAttention::DrawNoise(int64_t step) {
  noise_ = at::Tensor();
  if (options_.estimator != SelectionEstimator::kGumbel || !Mixes(true)) return;
  // A stream for every step: nothing to keep in checkpoints.
  uint64_t mixed = options_.seed;
  mixed = SplitMix64(mixed) + static_cast<uint64_t>(step);
  Random random(SplitMix64(mixed));
  noise_ =
      at::empty({shape_.layers, shape_.heads / heads_per_item_, std::ssize(options_.candidates)});
  for (int64_t i = 0; i < noise_.numel(); ++i) {
    const double uniform = random.Uniform() + 0x1.0p-54;  // in (0, 1)
    noise_.mutable_data_ptr<float>()[i] = static_cast<float>(-std::log(-std::log(uniform)));
  }
}

bool LearnedAttention::Mixes(bool training) const {
  return phase_ == SelectionPhase::kSearch || (training && tracking_);
}

double LearnedAttention::WeightTemperature() const {
  // A candidate drawn with Gumbel noise follows the softmax of the logits at any temperature.
  return options_.estimator == SelectionEstimator::kGumbel ? 1 : temperature_;
}

at::Tensor LearnedAttention::ScaledLogits(int64_t layer) const {
  // In double, so that no weight vanishes before the knapsack has compared it.
  return logits_->Layer(layer).to(at::kDouble) / WeightTemperature();
}

at::Tensor LearnedAttention::ScaledLogits() const {
  std::vector<at::Tensor> layers;
  for (int64_t layer = 0; layer < shape_.layers; ++layer) layers.push_back(ScaledLogits(layer));
  return at::stack(layers);
}

at::Tensor LearnedAttention::Tilted(const at::Tensor& logits) const {
  return logits - multiplier_ * costs_.cost;
}

LearnedAttention::Selection LearnedAttention::Select(const at::Tensor& logits, bool drawn) const {
  const at::Tensor likeliest =
      at::zeros_like(logits, at::kBool).scatter_(-1, logits.argmax(-1, /*keepdim=*/true), 1);
  const at::Tensor live =
      (logits.detach().softmax(-1) >= options_.drop_below).logical_or_(likeliest);
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  at::Tensor weights = logits.masked_fill(live.logical_not(), kNever).softmax(-1);
  if (drawn) weights = likeliest.to(weights.scalar_type()) + (weights - weights.detach());
  return {weights, live};
}

at::Tensor LearnedAttention::OfHeads(const at::Tensor& items) const {
  return items.repeat_interleave(heads_per_item_, -2);
}

void LearnedAttention::ChooseWeights() {
  step_ = {};
  differentiable_weights_ = at::Tensor();
  if (!Mixes(true)) return;
  const at::Tensor logits = ScaledLogits();
  const at::Tensor multiplier =
      CostMultiplier(logits.flatten(0, 1), costs_, target_cost_, least_multiplier_);
  if (least_multiplier_.has_value() && multiplier.requires_grad()) {
    // A lower cost may be had now, so what it would gain counts; a higher one may not.
    multiplier.register_hook([](const at::Tensor& gradient) { return gradient.clamp_min(0); });
  }
  multiplier_ = multiplier.item<double>();
  expected_cost_ =
      ExpectedCost(Tilted(logits.detach()).softmax(-1).flatten(0, 1), costs_).item<double>();
  at::Tensor tilted = logits - multiplier * costs_.cost;
  if (noise_.defined()) tilted = (tilted + noise_) / temperature_;
  const Selection items = Select(tilted, noise_.defined());
  if (logits.requires_grad()) {
    // Nothing is known of candidates that are not computed, not even by way of the multiplier.
    logits.register_hook([dead = items.live.logical_not()](const at::Tensor& gradient) {
      return gradient.masked_fill(dead, 0);
    });
  }
  differentiable_weights_ = OfHeads(items.weights);
  step_ = {differentiable_weights_.detach().requires_grad_(), OfHeads(items.live)};
}

void LearnedAttention::EndBackward() {
  if (step_.weights.defined() && step_.weights.grad().defined()) {
    differentiable_weights_.backward(step_.weights.grad());
  }
  step_ = {};
  differentiable_weights_ = at::Tensor();
}

at::Tensor LearnedAttention::Attend(const AttentionInputs& inputs) {
  if (inputs.training) logits_->Observe(inputs);
  if (!Mixes(inputs.training)) {
    const std::vector<int32_t> table = windows()[static_cast<size_t>(inputs.layer)];
    AttentionOperatorOptions options;
    options.sinks = sinks_;
    return Attention(inputs.query, inputs.key, inputs.value, at::tensor(table, at::kInt), options)
        .out;
  }
  Selection selection;  // of the layer's heads
  if (inputs.training) {
    AAH_CHECK(step_.weights.defined(), "expected BeginStep before a training pass, got none");
    selection = {step_.weights.select(0, inputs.layer), step_.live.select(0, inputs.layer)};
    if (computed_.empty()) computed_ = FullTable();
    computed_[static_cast<size_t>(inputs.layer)] = WidestLive(selection.live);
  } else {
    const Selection items = Select(Tilted(ScaledLogits(inputs.layer)), false);
    selection = {OfHeads(items.weights), OfHeads(items.live)};
  }
  NestedOperatorOptions options;
  const at::Tensor live = selection.live.to(at::kLong).contiguous();
  options.live.assign(live.const_data_ptr<int64_t>(),
                      live.const_data_ptr<int64_t>() + live.numel());
  options.sinks = sinks_;
  const std::vector<int64_t> candidates(options_.candidates.begin(), options_.candidates.end());
  return NestedAttention(inputs.query, inputs.key, inputs.value,
                         selection.weights.to(inputs.query.scalar_type()), candidates, options)
      .out;
}

at::Tensor LearnedAttention::Weights() const {
  const c10::NoGradGuard no_grad;
  return OfHeads(Tilted(ScaledLogits()).softmax(-1)).flatten(0, 1);
}

void LearnedAttention::Decide() {
  const c10::NoGradGuard no_grad;
  const at::Tensor loss = OfHeads(ScaledLogits().log_softmax(-1)).neg().contiguous();
  const std::vector<int32_t> current = index_;
  // The losses of query heads that share a window add up, so staying is worth as many times more.
  const WindowChoice choice =
      ChooseWindows(std::span(loss.const_data_ptr<double>(), static_cast<size_t>(loss.numel())),
                    options_.candidates, shape_, sinks_, budget_,
                    {.share = options_.share,
                     .current = current,
                     .stickiness = options_.hysteresis * heads_per_item_});
  index_ = choice.index;
  moved_ = choice.moved;
  duality_gap_ = choice.knapsack.duality_gap();
  decided_ = true;
}

WindowTable LearnedAttention::LikeliestTable(const at::Tensor& weights) const {
  const at::Tensor index = weights.argmax(-1).to(at::kInt).contiguous();
  return TableOf(
      {index.const_data_ptr<int32_t>(), index.const_data_ptr<int32_t>() + index.numel()});
}

WindowTable LearnedAttention::TableOf(const std::vector<int32_t>& index) const {
  WindowTable windows(static_cast<size_t>(shape_.layers));
  for (size_t i = 0; i < index.size(); ++i) {
    windows[i / static_cast<size_t>(shape_.heads)].push_back(
        options_.candidates[static_cast<size_t>(index[i])]);
  }
  return windows;
}

std::vector<std::vector<int32_t>> LearnedAttention::windows() const {
  if (phase_ == SelectionPhase::kPlan) return TableOf(index_);
  if (phase_ == SelectionPhase::kWarmup) return FullTable();
  const c10::NoGradGuard no_grad;
  const at::Tensor live = OfHeads(Select(Tilted(ScaledLogits()), false).live);
  WindowTable windows;
  for (int64_t layer = 0; layer < shape_.layers; ++layer) {
    windows.push_back(WidestLive(live.select(0, layer)));
  }
  return windows;
}

std::vector<std::vector<int32_t>> LearnedAttention::computed_windows() const {
  return computed_.empty() ? windows() : computed_;
}

WindowTable LearnedAttention::FullTable() const {
  return WindowTable(
      static_cast<size_t>(shape_.layers),
      std::vector(static_cast<size_t>(shape_.heads), static_cast<int32_t>(model_.context)));
}

std::vector<int32_t> LearnedAttention::WidestLive(const at::Tensor& live) const {
  const at::Tensor rows = live.contiguous();
  const bool* row = rows.const_data_ptr<bool>();
  std::vector<int32_t> windows;
  for (int64_t head = 0; head < rows.size(0); ++head, row += rows.size(1)) {
    int64_t last = rows.size(1) - 1;
    while (!row[last]) --last;
    windows.push_back(options_.candidates[static_cast<size_t>(last)]);
  }
  return windows;
}

std::optional<SelectionView> LearnedAttention::selection() const {
  const c10::NoGradGuard no_grad;
  const at::Tensor weights = Weights();
  const WindowTable hard = phase_ == SelectionPhase::kSearch ? LikeliestTable(weights) : windows();
  SelectionView view;
  view.phase = SelectionPhaseName(phase_);
  view.temperature = temperature_;
  view.target_cost = target_cost_;
  view.expected_cost = expected_cost_;
  view.multiplier = multiplier_;
  view.hard_cost = CostRatio(hard, shape_, sinks_, budget_);
  view.entropy = -at::xlogy(weights, weights).sum(-1).mean().item<double>();
  view.decided = decided_;
  view.moved = moved_;
  view.duality_gap = duality_gap_;
  if (snapshot_) view.weights = weights;
  view.candidates = options_.candidates;
  return view;
}

std::optional<WindowPlan> LearnedAttention::plan() const {
  if (phase_ != SelectionPhase::kPlan) return {};
  WindowPlan plan;
  plan.model = PlanModelOf(model_);
  plan.sinks = sinks_;
  plan.windows = TableOf(index_);
  plan.budget = budget_;
  plan.predicted["cost"] = CostRatio(plan.windows, shape_, sinks_, budget_);
  plan.predicted["duality_gap"] = duality_gap_;
  plan.provenance.method =
      std::string(logits_->name()) +
      (options_.estimator == SelectionEstimator::kGumbel ? ", gumbel" : ", softmax");
  return plan;
}

PolicyState LearnedAttention::Save() const {
  PolicyState state;
  const PolicyState logits = logits_->Save();
  for (const auto& [name, tensor] : logits.tensors) state.tensors[kLogitsPrefix + name] = tensor;
  state.tensors[kPlanTensor] = at::tensor(index_, at::kInt);
  const Json json = {{"variant", "learned"},
                     {"phase", SelectionPhaseName(phase_)},
                     {"temperature", temperature_},
                     {"target_cost", target_cost_},
                     {"plan_step", plan_step_},
                     {"search_begin", search_begin_},
                     {"search_end", search_end_},
                     {"cost_multiplier", multiplier_},
                     {"expected_cost", expected_cost_},
                     {"duality_gap", duality_gap_},
                     {"logits", logits.json}};
  state.json = json.dump();
  return state;
}

void LearnedAttention::Restore(const PolicyState& state) {
  AAH_CHECK(!state.json.empty(), kSelectionState,
            ": expected learned windows, got nothing; resume ",
            "with the attention it was written by, or start a new run from its weights");
  const Json json = ParseJson(state.json, kSelectionState);
  AAH_CHECK(json.is_object() && json.contains("variant"), kSelectionState,
            ": expected that of learned windows, got another; resume with the attention it was ",
            "written by, or start a new run from its weights");
  const SelectionPhase phase = ParsePhase(JsonMember<std::string>(json, "phase", kSelectionState));
  const auto heads = static_cast<size_t>(shape_.layers) * static_cast<size_t>(shape_.heads);
  const auto plan = state.tensors.find(kPlanTensor);
  AAH_CHECK(plan != state.tensors.end() && plan->second.scalar_type() == at::kInt, kSelectionState,
            ": expected an int32 tensor '", kPlanTensor, "', got none");
  const at::Tensor saved = plan->second.contiguous();
  const std::vector<int32_t> index(saved.const_data_ptr<int32_t>(),
                                   saved.const_data_ptr<int32_t>() + saved.numel());
  AAH_CHECK(index.size() == (phase == SelectionPhase::kPlan ? heads : 0), kSelectionState,
            ": expected a window for each of ", heads, " heads, got ", index.size());
  for (const int32_t candidate : index) {
    AAH_CHECK(candidate >= 0 && candidate < std::ssize(options_.candidates), kSelectionState,
              ": expected indices below ", options_.candidates.size(), ", got ", candidate);
  }
  PolicyState logits;
  logits.json = JsonMember<std::string>(json, "logits", kSelectionState);
  for (const auto& [name, tensor] : state.tensors) {
    if (name == kPlanTensor) continue;
    AAH_CHECK(name.starts_with(kLogitsPrefix), kSelectionState, ": unknown tensor '", name, "'");
    logits.tensors[name.substr(kLogitsPrefix.size())] = tensor;
  }
  const auto temperature = JsonMember<double>(json, "temperature", kSelectionState);
  AAH_CHECK(temperature > 0, kSelectionState, ": expected a temperature above 0, got ",
            temperature);
  step_ = {};
  differentiable_weights_ = noise_ = at::Tensor();
  computed_.clear();
  tracking_ = false;
  logits_->Restore(logits);
  phase_ = phase;
  index_ = index;
  temperature_ = temperature;
  target_cost_ = JsonMember<double>(json, "target_cost", kSelectionState);
  plan_step_ = JsonMember<int64_t>(json, "plan_step", kSelectionState);
  search_begin_ = JsonMember<int64_t>(json, "search_begin", kSelectionState);
  search_end_ = JsonMember<int64_t>(json, "search_end", kSelectionState);
  multiplier_ = JsonMember<double>(json, "cost_multiplier", kSelectionState);
  expected_cost_ = JsonMember<double>(json, "expected_cost", kSelectionState);
  duality_gap_ = JsonMember<double>(json, "duality_gap", kSelectionState);
}

std::unique_ptr<AttentionVariant> MakeLearnedAttention(const AttentionConfig& attention,
                                                       const ModelConfig& model) {
  RefuseUnusedSettings(attention, false, false, true);
  try {
    return std::make_unique<LearnedAttention>(attention.learned, model, attention.sinks);
  } catch (const Error& error) {
    ThrowError(error.kind(), "attention.learned: ", error.what());
  }
}

}  // namespace aah
