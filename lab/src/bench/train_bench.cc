#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "aah/instruction_set.h"
#include "aah/lab/bench.h"
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

constexpr int64_t kTokens = 4096;

ModelConfig BenchModel() {
  ModelConfig config;
  config.layers = 2;
  config.heads = bench::kHeads;
  config.width = bench::kHeads * bench::kHeadDim;
  config.context = kTokens;
  config.vocabulary = 256;
  return config;
}

// A model in training, always on the same tokens: only the time matters.
class TrainedModel {
 public:
  explicit TrainedModel(const AttentionConfig& attention)
      : model_(BenchModel(), MakeAttentionVariant(attention, BenchModel()), /*seed=*/0),
        optimizer_(*model_, OptimizerConfig{}) {
    torch::manual_seed(0);
    tokens_ = torch::randint(BenchModel().vocabulary, {1, kTokens + 1}, torch::kInt64);
  }

  PassSeconds Step() {
    const StepSettings settings = {.step = step_++, .learning_rate = 1e-4, .clip_norm = 1.0};
    return {.forward = bench::Seconds([&] { TrainStep(model_, optimizer_, tokens_, settings); })};
  }

 private:
  Gpt model_;
  AdamW optimizer_;
  at::Tensor tokens_;
  int64_t step_ = 0;
};

// Operations of one step: six a matrix weight and token, and attention's own.
double StepFlops(const Windows& windows) {
  const ModelConfig config = BenchModel();
  const double block = 4.0 * static_cast<double>(config.width * config.width) +
                       2.0 * static_cast<double>(config.width * config.mlp_width_or_default());
  const double weights = static_cast<double>(config.layers) * block +
                         static_cast<double>(config.vocabulary * config.width);
  const double attention =
      bench::ForwardFlops(windows, kTokens) + bench::BackwardFlops(windows, kTokens);
  return 6 * weights * static_cast<double>(kTokens) +
         static_cast<double>(config.layers) * attention;
}

}  // namespace

void BenchTrain(const BenchOptions& options, const BenchSink& sink) {
  at::set_num_threads(options.threads);
  const Windows windows = bench::MixedWindows(kTokens);
  AttentionConfig sdpa;
  sdpa.variant = "sdpa";
  AttentionConfig mixed;
  mixed.variant = "windows";
  mixed.windows = {windows};
  TrainedModel sdpa_model(sdpa);
  TrainedModel mixed_model(mixed);
  Probe sdpa_step([&] { return sdpa_model.Step(); });
  Probe mixed_step([&] { return mixed_model.Step(); });
  bench::RunInterleaved({&sdpa_step, &mixed_step}, {.least = 3, .most = 15, .budget_seconds = 30});

  BenchResult result;
  result.name = "mixed_over_sdpa_tokens_per_second";
  result.batch = 1;
  result.heads = bench::kHeads;
  result.head_dim = bench::kHeadDim;
  result.tokens = kTokens;
  result.instruction_set = CurrentInstructionSet();
  result.threads = at::get_num_threads();
  result.visible_pair_ratio = bench::VisiblePairRatio(windows, kTokens);
  result.repeats = sdpa_step.repeats();
  // Tokens per second of mixed over those of sdpa: the step times the other way round.
  result.numerator = sdpa_step.forward();
  result.denominator = mixed_step.forward();
  result.ratio = result.numerator / result.denominator;
  result.gflops = StepFlops(windows) / result.denominator * 1e-9;
  result.bar_kind = BarKind::kAtLeast;
  result.bar = 1.3;
  sink(result);
}

}  // namespace aah
