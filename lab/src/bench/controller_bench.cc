// What deciding windows costs a training step.
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "aah/instruction_set.h"
#include "aah/lab/bench.h"
#include "aah/model/aah_policy.h"
#include "aah/model/allocation_measures.h"
#include "aah/model/attention_variant.h"
#include "aah/model/gpt.h"
#include "aah/model/optimizer.h"
#include "aah/model/train_config.h"
#include "aah/model/train_step.h"
#include "bench/interleaved.h"

namespace aah {
namespace {

constexpr int64_t kInterval = 5;
constexpr double kBudgetSeconds = 70;
constexpr int kLeastIntervals = 1;
constexpr int kMostIntervals = 6;

ModelConfig BenchModel() {
  ModelConfig config;
  config.layers = 8;
  config.heads = 12;
  config.width = 768;
  config.context = 2048;
  config.vocabulary = 256;
  return config;
}

// The AAH policy, or its windows of the moment as a plan that nothing is measured for.
class SwitchedPolicy final : public WindowPolicy {
 public:
  explicit SwitchedPolicy(std::unique_ptr<AahPolicy> policy) : policy_(std::move(policy)) {}

  void set_adaptive(bool adaptive) {
    adaptive_ = adaptive;
    plan_ = policy_->windows();
  }

  void BeginStep(int64_t step, int64_t micro_batches) override {
    if (adaptive_) policy_->BeginStep(step, micro_batches);
  }
  std::span<const int32_t> Decide(const AttentionInputs& inputs) override {
    if (adaptive_) return policy_->Decide(inputs);
    return plan_[static_cast<size_t>(inputs.layer)];
  }
  bool WantsStatistics(const AttentionInputs& inputs) const override {
    return adaptive_ && policy_->WantsStatistics(inputs);
  }
  void Observe(const AttentionInputs& inputs, const LayerStatistics& statistics) override {
    policy_->Observe(inputs, statistics);
  }
  std::vector<std::vector<int32_t>> windows() const override { return policy_->windows(); }

 private:
  std::unique_ptr<AahPolicy> policy_;
  bool adaptive_ = true;
  std::vector<std::vector<int32_t>> plan_;
};

// Sums the time of a step's forward passes of attention: deciding, measuring, attending. All that
// adaptive steps and steps by a plan do differently happens in there, and a small difference of
// whole steps would be lost in their noise.
class TimedAttention final : public AttentionVariant {
 public:
  explicit TimedAttention(std::unique_ptr<AttentionVariant> variant)
      : variant_(std::move(variant)) {}

  void BeginStep(const StepPosition& position) override {
    seconds_ = 0;
    variant_->BeginStep(position);
  }
  at::Tensor Attend(const AttentionInputs& inputs) override {
    at::Tensor out;
    seconds_ += bench::Seconds([&] { out = variant_->Attend(inputs); });
    return out;
  }
  std::vector<std::vector<int32_t>> windows() const override { return variant_->windows(); }
  double seconds() const { return seconds_; }

 private:
  std::unique_ptr<AttentionVariant> variant_;
  double seconds_ = 0;
};

struct StepSeconds {
  double attend = 0;  // forward passes of attention
  double step = 0;    // all of it
};

// One model whose steps are adaptive or go by the plan, so that nothing else can differ.
class SwitchedModel {
 public:
  SwitchedModel() : model_(MakeModel()), optimizer_(*model_, OptimizerConfig{}) {
    torch::manual_seed(0);
    const ModelConfig& config = model_->config();
    tokens_ = torch::randint(config.vocabulary, {1, config.context + 1}, torch::kInt64);
  }

  StepSeconds AdaptiveStep(int64_t step) { return Step(step, true); }
  StepSeconds PlanStep(int64_t step) { return Step(step, false); }
  double visible_pair_ratio() const {
    return VisiblePairRatio(policy_->windows(), 0, model_->config().context);
  }

 private:
  Gpt MakeModel() {
    const ModelConfig config = BenchModel();
    ControlOptions options;
    options.windows = DefaultWindows(config.context);
    options.warmup_steps = 0;
    options.control_interval = kInterval;
    auto policy = std::make_unique<SwitchedPolicy>(std::make_unique<AahPolicy>(
        options, config.layers, config.heads, config.heads, config.context));
    policy_ = policy.get();
    auto attention =
        std::make_unique<TimedAttention>(MakeWindowedAttention(std::move(policy), /*sinks=*/0));
    attention_ = attention.get();
    return Gpt(config, std::move(attention), /*seed=*/0);
  }

  StepSeconds Step(int64_t step, bool adaptive) {
    policy_->set_adaptive(adaptive);
    const double seconds = bench::Seconds([&] {
      TrainStep(model_, optimizer_, tokens_,
                {.step = step, .learning_rate = 1e-4, .clip_norm = 1.0});
    });
    return {.attend = attention_->seconds(), .step = seconds};
  }

  SwitchedPolicy* policy_ = nullptr;  // owned by the model, as is
  TimedAttention* attention_ = nullptr;
  Gpt model_;
  AdamW optimizer_;
  at::Tensor tokens_;
};

// Seconds that adaptive steps take longer than steps by the same windows, pair by pair; one list
// for each kind of step.
struct ExtraSeconds {
  std::vector<double> deciding;   // groups, decides
  std::vector<double> gathering;  // the step before, whose attention has by-products
  std::vector<double> cached;     // the others of an interval
};

}  // namespace

void BenchController(const BenchOptions& options, const BenchSink& sink) {
  at::set_num_threads(options.threads);
  SwitchedModel model;
  int64_t step = 0;
  // The first interval warms up, but for one step: the next one then decides from by-products.
  model.AdaptiveStep(step);
  step = kInterval - 1;
  model.AdaptiveStep(step++);

  ExtraSeconds extra;
  std::vector<double> plan_seconds;
  std::vector<double> visible;
  double spent = 0;
  double longest = 0;
  for (int interval = 0; interval < kMostIntervals; ++interval) {
    if (interval >= kLeastIntervals && spent + longest > kBudgetSeconds) break;
    const double seconds = bench::Seconds([&] {
      for (int64_t i = 0; i < kInterval; ++i, ++step) {
        const StepSeconds adaptive = model.AdaptiveStep(step);
        const StepSeconds plan = model.PlanStep(step);
        std::vector<double>& kind = i == 0               ? extra.deciding
                                    : i == kInterval - 1 ? extra.gathering
                                                         : extra.cached;
        kind.push_back(adaptive.attend - plan.attend);
        plan_seconds.push_back(plan.step);
        visible.push_back(model.visible_pair_ratio());
      }
    });
    spent += seconds;
    longest = std::max(longest, seconds);
  }

  const ModelConfig config = BenchModel();
  BenchResult result;
  result.batch = 1;
  result.heads = config.heads;
  result.head_dim = config.head_dim();
  result.tokens = config.context;
  result.instruction_set = CurrentInstructionSet();
  result.threads = at::get_num_threads();
  result.visible_pair_ratio =
      std::accumulate(visible.begin(), visible.end(), 0.0) / static_cast<double>(visible.size());
  result.denominator = bench::Median(plan_seconds);
  result.bar_kind = BarKind::kAtMost;
  const auto emit = [&](const char* name, double seconds, size_t repeats, double bar) {
    result.name = name;
    result.repeats = static_cast<int>(repeats);
    result.numerator = seconds;
    result.ratio = seconds / result.denominator;
    result.bar = bar;
    sink(result);
  };
  const double interval = bench::Median(extra.deciding) + bench::Median(extra.gathering) +
                          static_cast<double>(kInterval - 2) * bench::Median(extra.cached);
  emit("controller_share_of_step", interval / static_cast<double>(kInterval), plan_seconds.size(),
       0.02);
  emit("decision_step_share", bench::Median(extra.deciding), extra.deciding.size(), 0.05);
}

}  // namespace aah
