#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aah/instruction_set.h"
#include "aah/lab/bench.h"
#include "aah/model/allocation_measures.h"
#include "aah/model/attention_variant.h"
#include "aah/model/config.h"
#include "aah/model/gpt.h"
#include "aah/model/learned_attention.h"
#include "aah/model/optimizer.h"
#include "aah/model/train_config.h"
#include "aah/model/train_step.h"
#include "bench/attention_probes.h"
#include "bench/interleaved.h"
#include "bench/learned_run.h"

namespace aah {
namespace {

using bench::PassSeconds;
using bench::Probe;
using bench::Windows;

constexpr int64_t kContext = 4096;
// Random scorers choose anything between next to nothing and everything; with those of this seed
// 0.3 to 0.5 of all pairs are visible, as in the paper's own runs.
constexpr uint64_t kAdaptiveSeed = 0;

ModelConfig TimedModel() {
  ModelConfig config;
  config.layers = 2;
  config.heads = bench::kHeads;
  config.width = bench::kHeads * bench::kHeadDim;
  config.context = kContext;
  config.vocabulary = 256;
  return config;
}

// A model in training, always on the same tokens: only the time matters.
class TrainedModel {
 public:
  explicit TrainedModel(std::unique_ptr<AttentionVariant> attention)
      : model_(TimedModel(), std::move(attention), /*seed=*/0),
        optimizer_(*model_, OptimizerConfig{}) {
    for (const OwnParameter& own : model_->attention().parameters()) {
      first_.emplace_back(own.value, own.value.detach().clone());
    }
    torch::manual_seed(0);
    tokens_ = torch::randint(TimedModel().vocabulary, {1, kContext + 1}, torch::kInt64);
  }

  explicit TrainedModel(const AttentionConfig& attention)
      : TrainedModel(MakeAttentionVariant(attention, TimedModel())) {}

  PassSeconds Step() { return StepAt(step_++, /*steps=*/0); }

  // Step number `step` of `steps`. What the attention learns begins each time as it was at first,
  // so that all repeats of a step compute the same.
  PassSeconds StepAt(int64_t step, int64_t steps) {
    for (const auto& [value, first] : first_) {
      const c10::NoGradGuard no_grad;
      value.copy_(first);
    }
    const StepSettings settings = {
        .step = step, .steps = steps, .learning_rate = 1e-4, .clip_norm = 1.0};
    const double seconds =
        bench::Seconds([&] { TrainStep(model_, optimizer_, tokens_, settings); });
    visible_.push_back(VisiblePairRatio(model_->attention().windows(), 0, kContext));
    return {.forward = seconds};
  }

  // Mean over the last `steps` steps.
  double VisiblePairs(int steps) const {
    return std::accumulate(visible_.end() - steps, visible_.end(), 0.0) / steps;
  }

 private:
  Gpt model_;
  AdamW optimizer_;
  at::Tensor tokens_;
  int64_t step_ = 0;
  std::vector<std::pair<at::Tensor, at::Tensor>> first_;  // own parameters, and their first values
  std::vector<double> visible_;                           // of each step
};

// Every step from the first one on has windows that are decided, every fifth step decides.
AttentionConfig FullAdaptive() {
  AttentionConfig attention;
  attention.variant = "aah";
  attention.control.regime = "full_adaptive";
  attention.control.warmup_steps = 0;
  attention.control.seed = kAdaptiveSeed;
  return attention;
}

// A run that learns its windows, phase by phase.
class LearnedRun {
 public:
  std::vector<Probe*> probes() { return {&warmup_, &search_, &plan_, &track_}; }
  std::vector<Probe*> one_of_each_model() { return {&search_, &plan_}; }

  PhasedRun Result() const {
    PhasedRun run = bench::SharesOfPhases(bench::LearnedRunOptions());
    const std::vector<const Probe*> probes = {&warmup_, &search_, &plan_, &track_};
    for (size_t i = 0; i < probes.size(); ++i) run.phases[i].seconds = probes[i]->forward();
    run.visible_pair_ratio_of_plan = planned_.VisiblePairs(1);
    return run;
  }

 private:
  PassSeconds Step(TrainedModel& model, int64_t step) {
    return model.StepAt(step, bench::kLearnedRunSteps);
  }

  const bench::LearnedRunSteps steps_ = bench::StepsOfPhases(bench::LearnedRunOptions());
  TrainedModel searching_{bench::SearchingAttention(TimedModel())};
  TrainedModel planned_{bench::PlannedAttention(TimedModel())};
  Probe warmup_{[this] { return Step(searching_, steps_.warmup); }};
  Probe search_{[this] { return Step(searching_, steps_.search); }};
  Probe plan_{[this] { return Step(planned_, steps_.plan); }};
  Probe track_{[this] { return Step(planned_, steps_.track); }};
};

// Mean over a run's steps; a tracking step counts as its plan, the first two phases see all.
double VisiblePairs(const PhasedRun& run) {
  const double full = run.phases[0].share + run.phases[1].share;
  return full + (1 - full) * run.visible_pair_ratio_of_plan;
}

// Operations of one step: six a matrix weight and token, and attention's own.
double StepFlops(double visible_pair_ratio) {
  const ModelConfig config = TimedModel();
  const Windows full(static_cast<size_t>(config.heads), static_cast<int32_t>(kContext));
  const double block = 4.0 * static_cast<double>(config.width * config.width) +
                       2.0 * static_cast<double>(config.width * config.mlp_width_or_default());
  const double weights = static_cast<double>(config.layers) * block +
                         static_cast<double>(config.vocabulary * config.width);
  const double attention = visible_pair_ratio * (bench::ForwardFlops(full, kContext) +
                                                 bench::BackwardFlops(full, kContext));
  return 6 * weights * static_cast<double>(kContext) +
         static_cast<double>(config.layers) * attention;
}

}  // namespace

void BenchTrain(const BenchOptions& options, const BenchSink& sink) {
  at::set_num_threads(options.threads);
  const Windows windows = bench::MixedWindows(kContext);
  AttentionConfig sdpa;
  sdpa.variant = "sdpa";
  AttentionConfig mixed;
  mixed.variant = "windows";
  mixed.windows = {windows};
  TrainedModel sdpa_model(sdpa);
  TrainedModel mixed_model(mixed);
  TrainedModel adaptive_model(FullAdaptive());
  Probe sdpa_step([&] { return sdpa_model.Step(); });
  Probe mixed_step([&] { return mixed_model.Step(); });
  Probe adaptive_step([&] { return adaptive_model.Step(); });
  LearnedRun learned_run;
  const auto with_others = [&](std::vector<Probe*> probes) {
    probes.insert(probes.begin(), {&sdpa_step, &mixed_step, &adaptive_step});
    return probes;
  };
  // Every model takes one step before the clock counts.
  bench::RunInterleaved(with_others(learned_run.one_of_each_model()),
                        {.warm_up = 1, .least = 0, .most = 0});
  // Whole intervals of full_adaptive's decisions: five repeats.
  bench::RunInterleaved(with_others(learned_run.probes()),
                        {.warm_up = 0, .least = 5, .most = 15, .budget_seconds = 30});

  // Tokens per second of a model over those of sdpa: the step times the other way round.
  const auto emit = [&](const char* name, double step_seconds, double visible_pair_ratio,
                        double bar, const std::optional<PhasedRun>& run = {}) {
    BenchResult result;
    result.name = name;
    result.batch = 1;
    result.heads = bench::kHeads;
    result.head_dim = bench::kHeadDim;
    result.tokens = kContext;
    result.instruction_set = CurrentInstructionSet();
    result.threads = at::get_num_threads();
    result.visible_pair_ratio = visible_pair_ratio;
    result.repeats = sdpa_step.repeats();
    result.numerator = sdpa_step.forward();
    result.denominator = step_seconds;
    result.ratio = result.numerator / result.denominator;
    result.gflops = StepFlops(visible_pair_ratio) / result.denominator * 1e-9;
    result.bar_kind = BarKind::kAtLeast;
    result.bar = bar;
    result.run = run;
    sink(result);
  };
  emit("mixed_over_sdpa_tokens_per_second", mixed_step.forward(),
       bench::VisiblePairRatio(windows, kContext), 1.3);
  emit("adaptive_over_sdpa_tokens_per_second", adaptive_step.forward(),
       adaptive_model.VisiblePairs(adaptive_step.repeats()), 1.15);
  const PhasedRun run = learned_run.Result();
  emit("learned_run_over_sdpa_tokens_per_second", run.mean_step_seconds(), VisiblePairs(run), 1.2,
       run);
}

}  // namespace aah
