#include "aah/model/evaluate.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>

#include "aah/error.h"
#include "aah/model/allocation_measures.h"
#include "aah/model/checkpoint.h"
#include "aah/model/train_config.h"
#include "aah/model/trainer.h"
#include "aah/nearest_name.h"
#include "train/stretch_losses.h"

namespace aah {
namespace {

Split ReadSplit(const std::string& name) {
  std::vector<std::string> names;
  for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
    if (name == SplitName(split)) return split;
    names.emplace_back(SplitName(split));
  }
  ThrowError(ErrorKind::kBadInput, "split: expected train, validation or test, got '", name, "'",
             NearestNameHint(name, names));
}

std::vector<PositionLoss> Bucket(const StretchLosses& measured, int64_t most_buckets) {
  const std::vector<double>& by_position = measured.by_position;
  const auto positions = static_cast<int64_t>(by_position.size());
  const int64_t buckets = std::min(most_buckets, positions);
  std::vector<PositionLoss> losses;
  for (int64_t bucket = 0; bucket < buckets; ++bucket) {
    const int64_t begin = bucket * positions / buckets;
    const int64_t end = (bucket + 1) * positions / buckets;
    const double sum = std::accumulate(by_position.begin() + begin, by_position.begin() + end, 0.0);
    losses.push_back({.begin = measured.positions[begin],
                      .end = measured.positions[end - 1] + 1,
                      .loss = sum / static_cast<double>(end - begin)});
  }
  return losses;
}

}  // namespace

EvaluationResult EvaluateRun(const EvaluateOptions& options) {
  InitialiseDeterminism();
  AAH_CHECK(options.batch_size >= 1, "batch_size: expected at least 1, got ", options.batch_size);
  AAH_CHECK(options.buckets >= 1, "buckets: expected at least 1, got ", options.buckets);
  AAH_CHECK(options.stretches >= 0, "stretches: expected at least 0, got ", options.stretches);
  AAH_CHECK(options.threads >= 0 && options.threads <= kMaxThreads,
            "threads: expected 0 (as many as torch finds) to ", kMaxThreads, ", got ",
            options.threads);
  const Split split = ReadSplit(options.split);
  if (options.threads > 0) at::set_num_threads(static_cast<int>(options.threads));

  const std::string checkpoint = FindCheckpoint(options.run);
  const CheckpointState state = ReadCheckpointState(checkpoint);
  const RunConfig config = ParseRunConfig(state.config, checkpoint + "/state.json", {});
  const TokenFile data = TokenFile::Open(options.data.empty() ? config.data : options.data);
  AAH_CHECK(data.info().tokenizer_hash == state.tokenizer_hash, data.path(),
            ": expected data made with the tokenizer that the model was trained with (hash ",
            state.tokenizer_hash.substr(0, 12), "), got ", data.info().tokenizer_name, " (hash ",
            data.info().tokenizer_hash.substr(0, 12), "); prepare the text with that tokenizer");

  const bool planned = !options.plan.empty();
  const AttentionConfig attention =
      planned ? ReadPlannedAttention(options.plan, config.model) : config.attention;
  Gpt model(config.model, MakeAttentionVariant(attention, config.model), config.seed);
  LoadModelWeights(checkpoint, model);
  if (!planned) LoadAttentionState(checkpoint, model);
  const int64_t context = config.model.context;
  const EvaluationStretches stretches(data, split, context, options.stretches);
  const StretchLosses losses = MeasureLosses(model, stretches, options.batch_size);

  // A search that has no plan yet is evaluated as it attends, which is not what it will become.
  std::string name = planned ? "plan " + options.plan : AttentionName(attention);
  const std::optional<SelectionView> selection = model->attention().selection();
  if (selection && selection->phase != "plan") name += " (" + selection->phase + ")";
  const auto windows = model->attention().windows();
  const int32_t sinks = model->attention().sinks();
  return {.checkpoint = checkpoint,
          .step = state.step,
          .attention = name,
          .split = options.split,
          .tokens = stretches.count() * std::ssize(losses.positions),
          .loss = losses.mean,
          .accuracy = losses.accuracy,
          .perplexity = std::exp(losses.mean),
          .bits_per_byte = BitsPerByte(losses.mean, stretches.bytes_per_token()),
          .allocated_context_ratio = AllocatedContextRatio(windows, sinks, context),
          .visible_pair_ratio = VisiblePairRatio(windows, sinks, context),
          .by_position = Bucket(losses, options.buckets)};
}

}  // namespace aah
