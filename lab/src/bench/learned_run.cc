#include "bench/learned_run.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <array>
#include <bit>
#include <cmath>

#include "aah/error.h"

namespace aah::bench {
namespace {

constexpr int64_t kPlanLayers = 2;
constexpr int64_t kPlanHeads = 8;
constexpr int64_t kLeastContext = 4096;

// Of 4,096 tokens they see 0.192 and 0.188 of all pairs.
constexpr std::array<std::array<uint32_t, kPlanHeads>, kPlanLayers> kPlan = {{
    {4096, 512, 256, 128, 128, 64, 32, 16},
    {64, 1024, 128, 256, 128, 1024, 256, 512},
}};
constexpr double kFallOff = 20;  // of weights, each candidate further from a head's own

}  // namespace

LearnedOptions LearnedRunOptions() { return {}; }

LearnedRunSteps StepsOfPhases(const LearnedOptions& options) {
  const SelectionSchedule schedule(options, kLearnedRunSteps);
  return {.warmup = 0,
          .search = schedule.search_begin,
          .harden = schedule.search_end,
          .track = schedule.search_end + options.track_every,
          .plan = schedule.search_end + options.track_every + 1};
}

std::unique_ptr<LearnedAttention> SearchingAttention(const ModelConfig& model) {
  return std::make_unique<LearnedAttention>(LearnedRunOptions(), model, /*sinks=*/0);
}

std::unique_ptr<LearnedAttention> PlannedAttention(const ModelConfig& model) {
  AAH_CHECK(
      model.layers == kPlanLayers && model.heads == kPlanHeads && model.context >= kLeastContext,
      "expected ", kPlanLayers, " layers of ", kPlanHeads, " heads and a context of at least ",
      kLeastContext, ", got ", model.layers, " of ", model.heads, " and ", model.context);
  const LearnedOptions options = LearnedRunOptions();
  auto attention = std::make_unique<LearnedAttention>(options, model, /*sinks=*/0);
  const double fall = options.final_temperature * std::log(kFallOff);
  {
    const c10::NoGradGuard no_grad;
    const at::Tensor logits = attention->parameters().front().value;
    for (int64_t layer = 0; layer < kPlanLayers; ++layer) {
      for (int64_t head = 0; head < kPlanHeads; ++head) {
        const uint32_t window = kPlan[static_cast<size_t>(layer)][static_cast<size_t>(head)];
        const int own = std::countr_zero(window) - 4;  // candidates begin with 16
        for (int64_t n = 0; n < logits.size(2); ++n) {
          logits[layer][head][n] = -fall * static_cast<double>(std::abs(n - own));
        }
      }
    }
  }
  attention->BeginStep({.step = StepsOfPhases(options).harden, .steps = kLearnedRunSteps});
  return attention;
}

PhasedRun SharesOfPhases(const LearnedOptions& options) {
  const double after = 1 - options.warmup - options.search;
  const double track = after / static_cast<double>(options.track_every);
  PhasedRun run;
  run.phases = {{.name = "warmup", .share = options.warmup},
                {.name = "search", .share = options.search},
                {.name = "plan", .share = after - track},
                {.name = "track", .share = track}};
  run.search_weights = "first";
  run.track_weights = "sharp";
  return run;
}

}  // namespace aah::bench
