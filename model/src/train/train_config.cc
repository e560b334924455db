#include "aah/model/train_config.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "aah/control_options.h"
#include "aah/error.h"
#include "aah/io/config.h"
#include "aah/io/window_plan_file.h"
#include "aah/model/attention_variant.h"
#include "aah/model/learned_attention.h"
#include "aah/nearest_name.h"
#include "aah/regime.h"

namespace aah {
namespace {

constexpr std::array<std::pair<std::string_view, Positions>, 2> kPositions = {
    {{"learned", Positions::kLearned}, {"rope", Positions::kRope}}};
constexpr std::array<std::pair<std::string_view, Initialisation>, 2> kInitialisations = {
    {{"gpt2", Initialisation::kGpt2}, {"paper", Initialisation::kPaper}}};

constexpr std::array<std::pair<std::string_view, SimilarityMetric>, 4> kMetrics = {
    {{"cosine", SimilarityMetric::kCosine},
     {"centered_cosine", SimilarityMetric::kCenteredCosine},
     {"l2", SimilarityMetric::kL2},
     {"cosine_normdiff", SimilarityMetric::kCosineNormDifference}}};
constexpr std::array<std::pair<std::string_view, GroupAggregate>, 4> kAggregates = {
    {{"mean", GroupAggregate::kMean},
     {"mean_std", GroupAggregate::kMeanStd},
     {"mean_var", GroupAggregate::kMeanVar},
     {"mean_global_offset", GroupAggregate::kMeanGlobalOffset}}};
constexpr std::array<std::pair<std::string_view, ControllerInput>, 5> kInputs = {
    {{"base", ControllerInput::kBase},
     {"enriched", ControllerInput::kEnriched},
     {"contrastive", ControllerInput::kContrastive},
     {"position_aware", ControllerInput::kPositionAware},
     {"relative_sibling_mean", ControllerInput::kRelativeSiblingMean}}};
constexpr std::array<std::pair<std::string_view, SiblingScoring>, 3> kSiblings = {
    {{"none", SiblingScoring::kNone},
     {"joint_sibling", SiblingScoring::kJoint},
     {"sibling_bias", SiblingScoring::kBias}}};

constexpr std::array<std::pair<std::string_view, BudgetKind>, 3> kBudgetKinds = {
    {{"pairs", BudgetKind::kPairs},
     {"allocated_context_ratio", BudgetKind::kAllocatedContext},
     {"kv_bytes", BudgetKind::kCacheBytes}}};
constexpr std::array<std::pair<std::string_view, CacheElement>, 4> kCacheElements = {
    {{"fp32", CacheElement::kFloat32},
     {"fp16", CacheElement::kFloat16},
     {"bf16", CacheElement::kBfloat16},
     {"q8_0", CacheElement::kQ8}}};
constexpr std::array<std::pair<std::string_view, WindowShare>, 2> kShares = {
    {{"head", WindowShare::kHead}, {"kv_head", WindowShare::kKvHead}}};
constexpr std::array<std::pair<std::string_view, SelectionEstimator>, 2> kEstimators = {
    {{"softmax", SelectionEstimator::kSoftmax}, {"gumbel", SelectionEstimator::kGumbel}}};

// The variant whose windows a controller decides, and those that learn them.
constexpr std::string_view kControlled = "aah";
constexpr std::string_view kLearned = "learned";
constexpr std::string_view kLearnedScorers = "aah_learned";

constexpr ConfigRange kFraction = {.min = 0, .max = 0.999999999};
constexpr ConfigRange kCount = {.min = 1, .max = 1e9};
constexpr ConfigRange kCountOrZero = {.min = 0, .max = 1e9};
// Far above any model, so that products of sizes stay in range.
constexpr ConfigRange kBlocks = {.min = 1, .max = 4096};
constexpr ConfigRange kSize = {.min = 1, .max = 1 << 24};
constexpr ConfigRange kSizeOrZero = {.min = 0, .max = 1 << 24};

// The double that a recipe writes for a float: 0.1 for 0.1f, not 0.10000000149.
double ShortestDouble(float value) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  double shortest = 0;
  std::from_chars(text.data(), end, shortest);
  return shortest;
}

// The two ways VisitRunConfig goes over a config: fields from a reader, fields into JSON.
class FieldReader {
 public:
  explicit FieldReader(ConfigReader reader) : reader_(std::move(reader)) {}
  FieldReader Section(std::string_view key) { return FieldReader(reader_.Section(key)); }
  template <typename T>
  void Value(std::string_view key, T& field, ConfigRange range = kAnyNumber) {
    if constexpr (std::is_same_v<T, float>) {
      field = static_cast<float>(reader_.Get<double>(key, ShortestDouble(field), range));
    } else {
      field = reader_.Get<T>(key, field, range);
    }
  }
  template <typename E, size_t kCount>
  void Enum(std::string_view key, E& field,
            const std::array<std::pair<std::string_view, E>, kCount>& names) {
    field = reader_.GetEnum(key, field, names);
  }

 private:
  ConfigReader reader_;
};

class FieldWriter {
 public:
  explicit FieldWriter(nlohmann::ordered_json* json) : json_(json) {}
  FieldWriter Section(std::string_view key) { return FieldWriter(&(*json_)[std::string(key)]); }
  template <typename T>
  void Value(std::string_view key, const T& field, ConfigRange /*range*/ = kAnyNumber) {
    if constexpr (std::is_same_v<T, float>) {
      (*json_)[std::string(key)] = ShortestDouble(field);
    } else {
      (*json_)[std::string(key)] = field;
    }
  }
  template <typename E, size_t kCount>
  void Enum(std::string_view key, E field,
            const std::array<std::pair<std::string_view, E>, kCount>& names) {
    for (const auto& [name, value] : names) {
      if (value == field) (*json_)[std::string(key)] = std::string(name);
    }
  }

 private:
  nlohmann::ordered_json* json_;
};

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

// The controller's settings, by the names of METHOD.md. Its ranges that depend on one another are
// CheckControlOptions'. `decides`: not only groups, it decides windows and when to.
template <typename Control, typename Fields>
void VisitControl(Control& control, bool decides, Fields fields) {
  constexpr ConfigRange kCosine = {.min = -1, .max = 1};
  constexpr ConfigRange kPast = {.min = 0, .max = 0.999999};
  constexpr ConfigRange kScale = {.min = -1e6, .max = 1e6};
  constexpr ConfigRange kHidden = {.min = 1, .max = 16384};
  auto& hierarchy = control.hierarchy;
  if (decides) {
    fields.Value("windows", control.windows);
    fields.Value("min_window", control.min_window, {.min = 1, .max = 2147483647});
    fields.Value("warmup_steps", control.warmup_steps, kCountOrZero);
    fields.Value("ramp_steps", control.ramp_steps, kCountOrZero);
    fields.Value("window_ema", control.window_ema, kPast);
  }
  fields.Value("control_interval", control.control_interval, kCount);
  fields.Value("feature_ema", control.feature_ema, kPast);
  fields.Value("sim_threshold", hierarchy.sim_threshold, kCosine);
  fields.Value("super_threshold", hierarchy.super_threshold, kCosine);
  fields.Enum("upper_metric", hierarchy.upper_metric, kMetrics);
  fields.Value("upper_l2_threshold", hierarchy.upper_l2_threshold, {.min = -1e30, .max = 0});
  fields.Value("normdiff_scale", hierarchy.norm_difference_scale, {.min = 0, .max = 1e6});
  fields.Value("churn_penalty", hierarchy.churn_penalty, {.min = 0, .max = 2});
  fields.Value("min_group_size", hierarchy.min_group_size, {.min = 1, .max = 4096});
  fields.Value("max_depth", hierarchy.max_depth, {.min = 1, .max = 64});
  fields.Enum("aggregate", hierarchy.aggregate, kAggregates);
  fields.Enum("input", control.input, kInputs);
  fields.Enum("siblings", control.siblings, kSiblings);
  fields.Value("joint_siblings", control.joint_siblings, {.min = 1, .max = 4096});
  fields.Value("deep_scorer", control.deep_scorer);
  fields.Value("hidden", control.hidden, kHidden);
  fields.Value("joint_hidden", control.joint_hidden, kHidden);
  fields.Value("logit_scale", control.logit_scale, kScale);
  fields.Value("joint_output_scale", control.joint_output_scale, kScale);
  fields.Value("sibling_bias_scale", control.sibling_bias_scale, kScale);
  fields.Value("seed", control.seed);
}

// Keys that VisitControl leaves out, with what takes their place in `aah_learned`.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kDecisionKeys = {
    {{"windows", "candidates are attention.learned.candidates"},
     {"min_window", "windows are attention.learned.candidates"},
     {"warmup_steps", "warm-up is attention.learned.warmup"},
     {"ramp_steps", "way from full attention is attention.learned.search"},
     {"window_ema", "steadiness is attention.learned.hysteresis"}}};

// Learned windows, by free logits or by scorers. Ranges that depend on one another are
// LearnedAttention's.
template <typename Learned, typename Fields>
void VisitLearned(Learned& learned, bool scorers, Fields fields) {
  constexpr ConfigRange kPositive = {.min = 1e-9, .max = 1e9};
  constexpr ConfigRange kZeroOrMore = {.min = 0, .max = 1e9};
  fields.Value("candidates", learned.candidates);
  fields.Value("budget", learned.budget);
  fields.Enum("budget_kind", learned.budget_kind, kBudgetKinds);
  fields.Value("budget_length", learned.budget_length, kCountOrZero);
  fields.Enum("cache_element", learned.cache_element, kCacheElements);
  fields.Enum("share", learned.share, kShares);
  fields.Enum("estimator", learned.estimator, kEstimators);
  fields.Value("warmup", learned.warmup, kFraction);
  fields.Value("search", learned.search, kFraction);
  fields.Value("track_every", learned.track_every, kCountOrZero);
  fields.Value("hysteresis", learned.hysteresis, kZeroOrMore);
  fields.Value("temperature", learned.temperature, kPositive);
  fields.Value("final_temperature", learned.final_temperature, kPositive);
  fields.Value("penalty", learned.penalty, kZeroOrMore);
  if (scorers) {
    fields.Value("scorer_learning_rate", learned.scorer_learning_rate, kPositive);
  } else {
    fields.Value("learning_rate", learned.learning_rate, kPositive);
  }
  fields.Value("drop_below", learned.drop_below, {.min = 0, .max = 0.5});
  fields.Value("seed", learned.seed);
}

// Which keys of `attention` there are; a key that is not visited is refused where it is given.
struct AttentionKeys {
  bool window = true;
  bool windows = true;
  bool control = true;
  bool learned = true;
};

AttentionKeys KeysOf(std::string_view variant) {
  const bool scorers = variant == kLearnedScorers;
  const bool controlled = variant == kControlled || scorers;
  const bool learned = variant == kLearned || scorers;
  const bool table = !controlled && !learned;
  return {.window = table, .windows = table, .control = controlled, .learned = learned};
}

template <typename Attention, typename Fields>
void VisitAttention(Attention& attention, const AttentionKeys& keys, Fields fields) {
  if (keys.control) {
    fields.Value("regime", attention.control.regime);
    VisitControl(attention.control, !keys.learned, fields.Section("control"));
  }
  if (keys.learned) VisitLearned(attention.learned, keys.control, fields.Section("learned"));
  if (keys.window) fields.Value("window", attention.window, {.min = 0, .max = 2147483647});
  if (keys.windows) fields.Value("windows", attention.windows, {.min = 1, .max = 2147483647});
  fields.Value("sinks", attention.sinks, {.min = 0, .max = 2147483647});
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

// `word` is the name of a variant or of a regime, which implies its variant.
void NameAttention(const std::string& word, AttentionConfig& attention) {
  std::vector<std::string> names;
  for (const AttentionVariantEntry& entry : AttentionVariants()) names.emplace_back(entry.name);
  for (const Regime& regime : Regimes()) names.emplace_back(regime.name);
  const bool is_variant = std::any_of(AttentionVariants().begin(), AttentionVariants().end(),
                                      [&](const auto& entry) { return entry.name == word; });
  const bool is_regime = word.starts_with("fixed:") || word.starts_with("shuffle_post_select") ||
                         std::find(names.begin(), names.end(), word) != names.end();
  AAH_CHECK(is_variant || is_regime, "attention: expected a variant or a regime, got '", word, "'",
            NearestNameHint(word, names));
  attention.variant = is_variant ? word : kControlled;
  if (!is_variant) attention.control.regime = word;
}

void CheckRegime(const ConfigReader& section, const std::string& regime) {
  try {
    FindRegime(regime);
  } catch (const Error& error) {
    section.Check(false, "regime", error.what());
  }
}

// `attention: {plan: FILE}`, which becomes the windows and sinks that the file holds.
void ReadPlan(ConfigReader& section, const ModelConfig& model, AttentionConfig& attention) {
  for (const std::string& key : section.Keys()) {
    section.Check(key == "plan" || key == "variant", key,
                  "has no use beside attention.plan, which gives the windows and sinks; remove ",
                  "one of the two");
  }
  attention.variant = "windows";
  const auto variant = section.Get<std::string>("variant", attention.variant);
  section.Check(variant == attention.variant, "variant", "expected 'windows', whose windows ",
                "attention.plan gives, got '", variant, "'; remove one of the two");
  const auto file = section.Get<std::string>("plan", "");
  section.Check(!file.empty(), "plan", "expected a window plan's file, got ''");
  try {
    AttentionConfig planned = ReadPlannedAttention(file, model);
    attention.windows = std::move(planned.windows);
    attention.sinks = planned.sinks;
  } catch (const Error& error) {
    ThrowError(error.kind(), section.Where("plan"), ": ", error.what());
  }
}

// Before the section is read: what its variant has no use for, with the way out.
void RefuseUnusedKeys(ConfigReader& section, const std::string& variant) {
  const AttentionKeys keys = KeysOf(variant);
  const auto refuse = [&](std::string_view key, std::string_view owner) {
    section.Check(!section.Has(key), key, "has no use with attention.variant '", variant,
                  "'; remove it or set the variant to ", owner);
  };
  if (!keys.control) {
    refuse("regime", kControlled);
    refuse("control", kControlled);
  }
  if (!keys.learned) refuse("learned", kLearned);
  for (const char* key : {"window", "windows"}) {
    section.Check(keys.window || !section.Has(key), key, "has no use where windows are chosen by '",
                  variant, "'; its candidates are attention.",
                  keys.learned ? "learned.candidates" : "control.windows");
  }
  if (keys.control && keys.learned && section.Has("control")) {
    ConfigReader control = section.Section("control");
    for (const auto& [key, instead] : kDecisionKeys) {
      control.Check(!control.Has(key), key, "has no use with attention.variant '", variant,
                    "', whose ", instead, "; remove it");
    }
  }
}

// Reads `attention`; what it leaves open is taken from `config`, which has been read so far.
AttentionConfig ReadAttention(ConfigReader& reader, const RunConfig& config) {
  AttentionConfig attention;
  attention.control.windows = DefaultWindows(config.model.context);
  attention.control.warmup_steps = config.optimizer.warmup_steps;
  attention.control.seed = config.seed;
  attention.learned.candidates = DefaultCandidates(config.model.context);
  attention.learned.seed = config.seed;
  if (reader.KindOf("attention") == ConfigKind::kScalar) {
    NameAttention(reader.Get<std::string>("attention", attention.variant), attention);
    if (attention.variant == kLearnedScorers) attention.control.windows.clear();
    return attention;
  }
  ConfigReader section = reader.Section("attention");
  if (section.Has("plan")) {
    ReadPlan(section, config.model, attention);
    return attention;
  }
  if (section.Has("window")) {
    section.Check(section.Get<int32_t>("window", 1) >= 1, "window",
                  "expected a window of at least 1 (it counts the keys a token sees, its own ",
                  "included), got ", section.Get<int32_t>("window", 1));
    attention.variant = "window";
  }
  if (section.Has("windows")) attention.variant = "windows";
  if (section.Has("regime") || section.Has("control")) attention.variant = kControlled;
  if (section.Has("learned")) attention.variant = kLearned;
  NameAttention(section.Get<std::string>("variant", attention.variant), attention);
  RefuseUnusedKeys(section, attention.variant);
  VisitAttention(attention, KeysOf(attention.variant), FieldReader(section));
  section.Check(!attention.control.windows.empty(), "control.windows",
                "expected at least one candidate window");
  if (attention.variant == kLearnedScorers) attention.control.windows.clear();
  CheckRegime(section, attention.control.regime);
  return attention;
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
  // `window: 0` and no windows stand for "not used" in the struct; a recipe leaves them out.
  const AttentionKeys keys = {.window = config.attention.window != 0,
                              .windows = !config.attention.windows.empty(),
                              .control = KeysOf(config.attention.variant).control,
                              .learned = KeysOf(config.attention.variant).learned};
  json["attention"]["variant"] = config.attention.variant;
  VisitAttention(config.attention, keys, FieldWriter(&json).Section("attention"));
  ConfigReader reader = ConfigReader::FromText(json.dump(), "config");
  RunConfig copy;
  VisitRunConfig(copy, FieldReader(reader));
  ConfigReader attention = reader.Section("attention");
  attention.Get<std::string>("variant", "");
  VisitAttention(copy.attention, keys, FieldReader(attention));
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

AttentionConfig ReadPlannedAttention(const std::string& plan, const ModelConfig& model) {
  WindowPlan read = ReadWindowPlan(plan, PlanModelOf(model));
  AttentionConfig attention;
  attention.variant = "windows";
  attention.windows = std::move(read.windows);
  attention.sinks = read.sinks;
  return attention;
}

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
  MakeAttentionVariant(config.attention, model);
  const TrainingConfig& training = config.training;
  if (KeysOf(config.attention.variant).learned) {
    const SelectionSchedule schedule(config.attention.learned, training.steps);
    AAH_CHECK(schedule.search_begin > 0 || config.attention.variant != kLearnedScorers,
              "attention.learned.warmup: expected at least one of the ", training.steps,
              " training steps, in which the heads are measured for the scorers, got ",
              config.attention.learned.warmup, "; raise it to ",
              1.0 / static_cast<double>(training.steps), " or more");
  }
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
