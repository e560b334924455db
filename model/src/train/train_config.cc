#include "aah/model/train_config.h"

#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aah/error.h"
#include "aah/io/config.h"
#include "aah/model/attention_variant.h"
#include "train/attention_config.h"
#include "train/config_fields.h"

namespace aah {
namespace {

constexpr std::array<std::pair<std::string_view, Positions>, 2> kPositions = {
    {{"learned", Positions::kLearned}, {"rope", Positions::kRope}}};
constexpr std::array<std::pair<std::string_view, Initialisation>, 2> kInitialisations = {
    {{"gpt2", Initialisation::kGpt2}, {"paper", Initialisation::kPaper}}};

template <typename Model, typename Fields>
void VisitModel(Model& model, Fields fields) {
  fields.Value("layers", model.layers, kBlocks);
  fields.Value("heads", model.heads, kBlocks);
  fields.Value("kv_heads", model.kv_heads, {.min = 0, .max = 4096});
  fields.Value("width", model.width, kSize);
  fields.Value("mlp_width", model.mlp_width, kSizeOrZero);
  fields.Value("context", model.context, kSize);
  fields.Value("vocabulary", model.vocabulary, kSizeOrZero);
  fields.Value("dropout", model.dropout, kFraction);
  fields.Enum("positions", model.positions, kPositions);
  fields.Value("rope_theta", model.rope_theta, {.min = 1, .max = 1e12});
  fields.Enum("initialisation", model.initialisation, kInitialisations);
  fields.Value("tied_head", model.tied_head);
  fields.Value("norm_epsilon", model.norm_epsilon, {.min = 1e-12, .max = 1});
}

template <typename Optimizer, typename Fields>
void VisitOptimizer(Optimizer& optimizer, Fields fields) {
  fields.Value("learning_rate", optimizer.learning_rate, {.min = 0, .max = 1e3});
  fields.Value("min_learning_rate", optimizer.min_learning_rate, {.min = 0, .max = 1e3});
  fields.Value("warmup_steps", optimizer.warmup_steps, kCountOrZero);
  fields.Value("weight_decay", optimizer.weight_decay, {.min = 0, .max = 1e3});
  fields.Value("decay_everything", optimizer.decay_everything);
  fields.Value("beta1", optimizer.beta1, kFraction);
  fields.Value("beta2", optimizer.beta2, kFraction);
  fields.Value("epsilon", optimizer.epsilon, {.min = 0, .max = 1});
  fields.Value("clip_norm", optimizer.clip_norm, {.min = 0, .max = 1e9});
}

// Every key of a recipe but `attention`, which may be a word and is visited by itself.
template <typename Config, typename Fields>
void VisitRunConfig(Config& config, Fields fields) {
  fields.Value("out", config.out);
  fields.Value("data", config.data);
  fields.Value("seed", config.seed);
  fields.Value("threads", config.threads, {.min = 0, .max = kMaxThreads});
  fields.Value("init_from", config.init_from);
  VisitModel(config.model, fields.Section("model"));
  auto training = fields.Section("training");
  training.Value("steps", config.training.steps, kCount);
  training.Value("batch_size", config.training.batch_size, kSize);
  training.Value("micro_batch_size", config.training.micro_batch_size, kSizeOrZero);
  VisitOptimizer(config.optimizer, fields.Section("optimizer"));
  auto validation = fields.Section("validation");
  validation.Value("every", config.validation.every, kCountOrZero);
  validation.Value("stretches", config.validation.stretches, kCountOrZero);
  auto checkpoint = fields.Section("checkpoint");
  checkpoint.Value("every", config.checkpoint.every, kCountOrZero);
  checkpoint.Value("keep", config.checkpoint.keep, kCount);
}

RunConfig Read(ConfigReader reader) {
  RunConfig config;
  VisitRunConfig(config, FieldReader(reader));
  config.attention = ReadAttention(reader, config);
  reader.Finish();
  CheckRunConfig(config);
  return config;
}

// The config as a reader whose values have all been read.
ConfigReader Resolved(const RunConfig& config) {
  nlohmann::ordered_json json;
  VisitRunConfig(config, FieldWriter(&json));
  WriteAttention(config.attention, FieldWriter(&json).Section("attention"));
  ConfigReader reader = ConfigReader::FromText(json.dump(), "config");
  RunConfig copy;
  VisitRunConfig(copy, FieldReader(reader));
  MarkAttentionRead(config.attention, reader);
  return reader;
}

}  // namespace

RunConfig ReadRunConfig(const std::string& path, std::span<const std::string> overrides) {
  return Read(ConfigReader::FromFile(path, overrides));
}

RunConfig ParseRunConfig(const std::string& yaml, const std::string& name,
                         std::span<const std::string> overrides) {
  return Read(ConfigReader::FromText(yaml, name, overrides));
}

RunConfig ReadRunConfig(ConfigReader config) { return Read(std::move(config)); }

void CheckRunConfig(const RunConfig& config) {
  AAH_CHECK(!config.out.empty(), "out: expected the folder of the run; add `out: runs/NAME`");
  AAH_CHECK(!config.data.empty(), "data: expected a token file or the folder of one; make it with ",
            "`aah data prepare` and add `data: PATH`");
  ModelConfig model = config.model;
  if (model.vocabulary == 0) model.vocabulary = 1;
  CheckModelConfig(model);
  constexpr int64_t kHeadDimStep = 8;
  constexpr int64_t kGreatestHeadDim = 256;
  AAH_CHECK(model.head_dim() % kHeadDimStep == 0 && model.head_dim() <= kGreatestHeadDim,
            "model.width / model.heads: expected a head size that is a multiple of ", kHeadDimStep,
            " up to ", kGreatestHeadDim, ", got ", model.width, " / ", model.heads, " = ",
            model.head_dim());
  // One layer shows all that the settings may have wrong, and is small whatever the model's size.
  ModelConfig one_layer = model;
  one_layer.layers = config.attention.windows.empty() ? 1 : model.layers;
  MakeAttentionVariant(config.attention, one_layer);
  CheckAttentionSteps(config.attention, config.training.steps);
  const TrainingConfig& training = config.training;
  AAH_CHECK(training.micro_batch_size == 0 || training.batch_size % training.micro_batch_size == 0,
            "training.micro_batch_size: expected a divisor of training.batch_size = ",
            training.batch_size, ", got ", training.micro_batch_size);
  AAH_CHECK(config.optimizer.min_learning_rate <= config.optimizer.learning_rate,
            "optimizer.min_learning_rate: expected at most optimizer.learning_rate = ",
            config.optimizer.learning_rate, ", got ", config.optimizer.min_learning_rate);
  AAH_CHECK(config.optimizer.warmup_steps <= training.steps,
            "optimizer.warmup_steps: expected at most training.steps = ", training.steps, ", got ",
            config.optimizer.warmup_steps);
  AAH_CHECK(config.checkpoint.keep >= 1, "checkpoint.keep: expected at least 1, got ",
            config.checkpoint.keep);
}

void CheckTrainingMemory(const RunConfig& config) {
  const double machine =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  constexpr double kGibibyte = 1 << 30;
  // Value, gradient and two moments in fp32; a batch is int64.
  const double model = 16.0 * static_cast<double>(ParameterCount(config.model));
  AAH_CHECK(model < machine, "model: its ", ParameterCount(config.model), " parameters take ",
            model / kGibibyte, " GiB to train, this machine has ", machine / kGibibyte,
            " GiB; choose fewer model.layers or a smaller model.width");
  const double batch = 8.0 * static_cast<double>(config.training.batch_size) *
                       static_cast<double>(config.model.context);
  AAH_CHECK(batch < machine, "training.batch_size: the token ids of ", config.training.batch_size,
            " stretches of ", config.model.context, " take ", batch / kGibibyte,
            " GiB, this machine has ", machine / kGibibyte, " GiB; choose smaller batches");
  // What the backward pass needs at the least, in fp32: per token and layer the inputs of both
  // norms, the queries, the attention's output and the hidden values of the MLP.
  const int64_t stretches = config.training.micro_batch_size == 0
                                ? config.training.batch_size
                                : config.training.micro_batch_size;
  const double activations =
      4.0 * static_cast<double>(stretches) * static_cast<double>(config.model.context) *
      static_cast<double>(config.model.layers) *
      static_cast<double>(4 * config.model.width + config.model.mlp_width_or_default());
  AAH_CHECK(model + batch + activations < machine, "training.micro_batch_size: a forward pass of ",
            stretches, " stretches of ", config.model.context, " takes at least ",
            (model + batch + activations) / kGibibyte, " GiB, this machine has ",
            machine / kGibibyte, " GiB; choose a smaller micro_batch_size");
}

std::string RunConfigYaml(const RunConfig& config) { return Resolved(config).ToYaml(); }

std::vector<ConfigDifference> CompareRunConfigs(const RunConfig& was, const RunConfig& is) {
  constexpr std::string_view kAbsent = "(absent)";
  std::vector<ConfigDifference> differences;
  const auto before = Resolved(was).Flatten();
  const auto after = Resolved(is).Flatten();
  const auto find = [](const auto& pairs, const std::string& key) -> const std::string* {
    for (const auto& [name, value] : pairs) {
      if (name == key) return &value;
    }
    return nullptr;
  };
  for (const auto& [key, value] : before) {
    const std::string* other = find(after, key);
    if (other == nullptr) {
      differences.push_back({key, value, std::string(kAbsent)});
    } else if (*other != value) {
      differences.push_back({key, value, *other});
    }
  }
  for (const auto& [key, value] : after) {
    if (find(before, key) == nullptr) differences.push_back({key, std::string(kAbsent), value});
  }
  return differences;
}

}  // namespace aah
