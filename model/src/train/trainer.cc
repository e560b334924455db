#include "aah/model/trainer.h"

#include <torch/torch.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "aah/error.h"
#include "aah/io/window_plan_file.h"
#include "aah/model/allocation_measures.h"
#include "aah/model/attention_timer.h"
#include "aah/model/checkpoint.h"
#include "aah/model/run_summary.h"
#include "aah/model/train_step.h"
#include "aah/random.h"
#include "aah/text/batches.h"
#include "train/control_records.h"
#include "train/prepare_run.h"
#include "train/run_lock.h"
#include "train/run_logs.h"
#include "train/stretch_losses.h"

namespace aah {
namespace {

using Clock = std::chrono::steady_clock;

// What is drawn from the run's seed; each has a stream of its own.
enum class Stream : uint64_t { kWeights = 1, kDropout = 2, kData = 3 };

uint64_t StreamSeed(uint64_t seed, Stream stream) {
  uint64_t state = seed + static_cast<uint64_t>(stream) * 0xd1342543de82ef95U;
  return SplitMix64(state);
}

Gpt MakeModel(const RunConfig& config) {
  return Gpt(config.model, MakeAttentionVariant(config.attention, config.model),
             StreamSeed(config.seed, Stream::kWeights));
}

// What `read` returns; where the checkpoint is damaged, the way on is part of the message.
template <typename Read>
auto OrAdvise(const std::string& checkpoint, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    ThrowError(error.kind(), error.what(), "; remove ", checkpoint,
               " to go on from the checkpoint before it, or from the start");
  }
}

// One run from its start, or its last checkpoint, to its end.
class TrainingRun {
 public:
  // `config` has been resolved against `data`.
  TrainingRun(const RunConfig& config, const TokenFile& data, TrainObserver& observer);

  TrainOutcome Run(const std::atomic<bool>& stop);

 private:
  bool Done() const { return step_ == config_.training.steps; }
  int64_t MicroBatch() const;

  void Begin();
  void Restore(int64_t checkpoint_step);
  void Step();
  void Validate();
  void Save();
  void SavePlan() const;
  void Finish();
  StepRecord Record(const StepOutcome& outcome, double learning_rate, double seconds,
                    double attention_seconds) const;

  RunConfig config_;
  TrainObserver& observer_;
  std::string content_hash_;
  std::string tokenizer_hash_;
  TrainingBatches batches_;
  EvaluationStretches validation_;
  Gpt model_;
  AdamW optimizer_;
  std::optional<RunLock> lock_;
  std::unique_ptr<RunLogs> logs_;
  at::Tensor batch_;  // int64 [batch_size, context + 1], filled anew in each step
  int64_t step_ = 0;  // finished ones
};

TrainingRun::TrainingRun(const RunConfig& config, const TokenFile& data, TrainObserver& observer)
    : config_(config),
      observer_(observer),
      content_hash_(data.info().content_hash),
      tokenizer_hash_(data.info().tokenizer_hash),
      batches_(data, config.model.context, StreamSeed(config.seed, Stream::kData)),
      validation_(data, Split::kValidation, config.model.context, config.validation.stretches),
      model_(MakeModel(config)),
      optimizer_(*model_, config.optimizer, model_->attention().parameters()),
      batch_(torch::empty({config.training.batch_size, config.model.context + 1}, torch::kLong)) {}

int64_t TrainingRun::MicroBatch() const {
  const TrainingConfig& training = config_.training;
  return training.micro_batch_size == 0 ? training.batch_size : training.micro_batch_size;
}

TrainOutcome TrainingRun::Run(const std::atomic<bool>& stop) {
  Begin();
  while (!Done() && !stop) {
    Step();
    const auto due = [&](int64_t every) { return Done() || (every > 0 && step_ % every == 0); };
    if (due(config_.validation.every)) Validate();
    if (due(config_.checkpoint.every)) Save();
  }
  Save();
  if (Done()) Finish();
  return {.end = Done() ? RunEnd::kFinished : RunEnd::kStopped,
          .step = step_,
          .checkpoint = CheckpointPath(config_.out, step_)};
}

void TrainingRun::Begin() {
  torch::manual_seed(StreamSeed(config_.seed, Stream::kDropout));
  std::vector<int64_t> checkpoints = CheckpointSteps(config_.out);
  if (checkpoints.empty() && !config_.init_from.empty()) {
    LoadModelWeights(FindCheckpoint(config_.init_from), model_);
  }
  const bool existed = OpenRunFolder(config_);
  lock_.emplace(config_.out);
  checkpoints = CheckpointSteps(config_.out);  // another process may just have saved and ended
  if (existed) CheckResumable(config_);
  RemoveRemains(config_.out);
  if (checkpoints.empty()) {
    logs_ = std::make_unique<RunLogs>(config_.out, LogSizes{});
  } else {
    Restore(checkpoints.back());
  }
  WriteConfig(config_);
  observer_.OnStart({.run_folder = config_.out,
                     .step = step_,
                     .steps = config_.training.steps,
                     .parameters = ParameterCount(config_.model),
                     .tokens_per_step = config_.training.batch_size * config_.model.context,
                     .attention = AttentionName(config_.attention),
                     .scored = batches_.space().file().info().scored.has_value(),
                     .resumed = existed});
}

void TrainingRun::Restore(int64_t checkpoint_step) {
  const std::string path = CheckpointPath(config_.out, checkpoint_step);
  const CheckpointState state = OrAdvise(path, [&] { return ReadCheckpointState(path); });
  AAH_CHECK(state.step == checkpoint_step && state.step <= config_.training.steps, path,
            ": expected the state after step ", checkpoint_step, " of ", config_.training.steps,
            ", got step ", state.step);
  AAH_CHECK(state.content_hash == content_hash_, config_.data,
            ": expected the data that the run was begun with (content ",
            state.content_hash.substr(0, 12), "), got other data (content ",
            content_hash_.substr(0, 12), "); begin a new run in another folder");
  OrAdvise(path, [&] { LoadCheckpoint(path, model_, optimizer_); });
  step_ = state.step;
  SavePlan();
  logs_ = std::make_unique<RunLogs>(config_.out, state.logs);
}

void TrainingRun::Step() {
  const int64_t batch_size = config_.training.batch_size;
  batches_.Fill(
      step_ * batch_size, batch_size,
      std::span<int64_t>(batch_.mutable_data_ptr<int64_t>(), static_cast<size_t>(batch_.numel())));
  const StepSettings settings = {
      .step = step_,
      .steps = config_.training.steps,
      .micro_batch_size = config_.training.micro_batch_size,
      .learning_rate = LearningRate(config_.optimizer, step_, config_.training.steps),
      .clip_norm = config_.optimizer.clip_norm,
      .scored = ScoredPositions(batches_.space())};

  const double attention_before = AttentionSeconds();
  const Clock::time_point start = Clock::now();
  StepOutcome outcome;
  try {
    outcome = TrainStep(model_, optimizer_, batch_, settings);
  } catch (const Error& error) {
    ThrowError(error.kind(), "step ", step_ + 1, ": ", error.what(), "; ",
               LastCheckpointHint(config_));
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();

  ++step_;
  logs_->AppendWindows(step_, model_->attention().windows(), model_->attention().control());
  const std::optional<SelectionView> selection = model_->attention().selection();
  if (selection) logs_->AppendSelection(step_, config_.model.layers, *selection);
  StepRecord record =
      Record(outcome, settings.learning_rate, seconds, AttentionSeconds() - attention_before);
  record.selection = selection;
  logs_->Append(record);
  observer_.OnStep(record);
}

StepRecord TrainingRun::Record(const StepOutcome& outcome, double learning_rate, double seconds,
                               double attention_seconds) const {
  const int64_t context = config_.model.context;
  const int64_t tokens_per_step = config_.training.batch_size * context;
  const auto windows = model_->attention().computed_windows();
  const int32_t sinks = model_->attention().sinks();
  return {.step = step_,
          .loss = outcome.loss,
          .learning_rate = learning_rate,
          .grad_norm = outcome.grad_norm,
          .tokens = step_ * tokens_per_step,
          .seconds = seconds,
          .tokens_per_second = static_cast<double>(tokens_per_step) / seconds,
          .attention_share = attention_seconds / seconds,
          .allocated_context_ratio = AllocatedContextRatio(windows, sinks, context),
          .visible_pair_ratio = VisiblePairRatio(windows, sinks, context),
          .flops_per_token = ForwardFlopsPerToken(config_.model, windows, sinks),
          .control = MakeControlRecord(model_->attention().control())};
}

void TrainingRun::Validate() {
  const StretchLosses losses = MeasureLosses(model_, validation_, MicroBatch());
  if (!std::isfinite(losses.mean)) {
    ThrowError(ErrorKind::kMachine, "step ", step_, ": the validation loss is not finite (",
               losses.mean, "); ", LastCheckpointHint(config_));
  }
  const ValidationRecord record = {
      .step = step_,
      .loss = losses.mean,
      .bits_per_byte = BitsPerByte(losses.mean, validation_.bytes_per_token()),
      .accuracy = losses.accuracy};
  logs_->Append(record);
  observer_.OnValidation(record);
}

void TrainingRun::Save() {
  const std::vector<int64_t> saved = CheckpointSteps(config_.out);
  if (!saved.empty() && saved.back() == step_) return;
  try {
    CheckParametersFinite(optimizer_);
  } catch (const Error& error) {
    ThrowError(error.kind(), "step ", step_, ": ", error.what(), "; ", LastCheckpointHint(config_));
  }
  // Before the checkpoint: a run that has it has the plan as well.
  SavePlan();
  const std::string path = CheckpointPath(config_.out, step_);
  SaveCheckpoint(path, model_, optimizer_,
                 {.step = step_,
                  .samples = step_ * config_.training.batch_size,
                  .config = RunConfigYaml(config_),
                  .content_hash = content_hash_,
                  .tokenizer_hash = tokenizer_hash_,
                  .logs = logs_->Sync()});
  RemoveOldCheckpoints(config_.out, config_.checkpoint.keep);
  observer_.OnCheckpoint(step_, path);
}

// plan.json as the model is now; one that was written later, before a kill, goes.
void TrainingRun::SavePlan() const {
  std::optional<WindowPlan> plan = model_->attention().plan();
  if (!plan) {
    std::error_code ignored;  // none was there
    std::filesystem::remove(PlanPath(config_.out), ignored);
    return;
  }
  plan->provenance.data = config_.data;
  plan->provenance.tokens = step_ * config_.training.batch_size * config_.model.context;
  plan->provenance.seed = config_.seed;
  plan->provenance.versions = {{"aah", AAH_VERSION}, {"torch", TORCH_VERSION}};
  WriteWindowPlan(PlanPath(config_.out), *plan);
}

void TrainingRun::Finish() {
  SummaryRecord summary = Summarise(ReadMetrics(config_.out));
  summary.parameters = ParameterCount(config_.model);
  summary.peak_memory_bytes = PeakMemoryBytes();
  logs_->Append(summary);
  observer_.OnFinish(summary);
}

}  // namespace

void InitialiseDeterminism() {
  // Read once, by MKL's first call: the best code path of this processor, but a fixed one.
  setenv("MKL_CBWR", "AUTO", /*replace=*/0);
}

TrainOutcome TrainRun(const RunConfig& config, TrainObserver& observer,
                      const std::atomic<bool>& stop) {
  InitialiseDeterminism();
  CheckRunConfig(config);
  CheckTrainingMemory(config);
  if (config.threads > 0) at::set_num_threads(static_cast<int>(config.threads));
  const TokenFile data = TokenFile::Open(config.data);
  TrainingRun run(ResolveAgainstData(config, data), data, observer);
  return run.Run(stop);
}

}  // namespace aah
