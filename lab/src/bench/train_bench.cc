#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "aah/instruction_set.h"
#include "aah/lab/bench.h"
#include "aah/model/allocation_measures.h"
#include "aah/model/attention_variant.h"
#include "aah/model/config.h"
#include "aah/model/gpt.h"
#include "aah/model/optimizer.h"
#include "aah/model/train_config.h"
#include "aah/model/train_step.h"
#include "bench/attention_probes.h"
#include "bench/interleaved.h"

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
  explicit TrainedModel(const AttentionConfig& attention)
      : model_(TimedModel(), MakeAttentionVariant(attention, TimedModel()), /*seed=*/0),
        optimizer_(*model_, OptimizerConfig{}) {
    torch::manual_seed(0);
    tokens_ = torch::randint(TimedModel().vocabulary, {1, kContext + 1}, torch::kInt64);
  }

  PassSeconds Step() {
    const StepSettings settings = {.step = step_++, .learning_rate = 1e-4, .clip_norm = 1.0};
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
  std::vector<double> visible_;  // of each step
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
  bench::RunInterleaved({&sdpa_step, &mixed_step, &adaptive_step},
                        {.least = 5, .most = 15, .budget_seconds = 30});

  // Tokens per second of a model over those of sdpa: the step times the other way round.
  const auto emit = [&](const char* name, const Probe& step, double visible_pair_ratio,
                        double bar) {
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
    result.denominator = step.forward();
    result.ratio = result.numerator / result.denominator;
    result.gflops = StepFlops(visible_pair_ratio) / result.denominator * 1e-9;
    result.bar_kind = BarKind::kAtLeast;
    result.bar = bar;
    sink(result);
  };
  emit("mixed_over_sdpa_tokens_per_second", mixed_step, bench::VisiblePairRatio(windows, kContext),
       1.3);
  emit("adaptive_over_sdpa_tokens_per_second", adaptive_step,
       adaptive_model.VisiblePairs(adaptive_step.repeats()), 1.15);
}

}  // namespace aah
