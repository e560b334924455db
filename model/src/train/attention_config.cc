#include "train/attention_config.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aah/control_options.h"
#include "aah/error.h"
#include "aah/io/window_plan_file.h"
#include "aah/model/attention_variant.h"
#include "aah/model/learned_attention.h"
#include "aah/nearest_name.h"
#include "aah/regime.h"
#include "aah/window_budget.h"

namespace aah {
namespace {

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

constexpr std::array<std::pair<std::string_view, SelectionEstimator>, 2> kEstimators = {
    {{"softmax", SelectionEstimator::kSoftmax}, {"gumbel", SelectionEstimator::kGumbel}}};

// The variant whose windows a controller decides, and those that learn them.
constexpr std::string_view kControlled = "aah";
constexpr std::string_view kLearned = "learned";
constexpr std::string_view kLearnedScorers = "aah_learned";

// The controller's settings, by the names of METHOD.md. Its ranges that depend on one another are
// CheckControlOptions'. `decides`: not only groups, it decides windows and when to.
template <typename Control, typename Fields>
void VisitControl(Control& control, bool decides, Fields fields) {
  constexpr ConfigRange kCosine = {.min = -1, .max = 1};
  constexpr ConfigRange kPast = {.min = 0, .max = 0.999999};
  constexpr ConfigRange kScale = {.min = -1e6, .max = 1e6};
  constexpr ConfigRange kHidden = {.min = 1, .max = 1024};
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
void VisitLearned(Learned& learned, Fields fields) {
  constexpr ConfigRange kPositive = {.min = 1e-9, .max = 1e9};
  constexpr ConfigRange kZeroOrMore = {.min = 0, .max = 1e9};
  fields.Value("candidates", learned.candidates);
  fields.Value("budget", learned.budget);
  fields.Enum("budget_kind", learned.budget_kind, kBudgetKinds);
  fields.Value("budget_length", learned.budget_length, kCountOrZero);
  fields.Enum("cache_element", learned.cache_element, kCacheElements);
  fields.Enum("share", learned.share, kWindowShares);
  fields.Enum("estimator", learned.estimator, kEstimators);
  fields.Value("warmup", learned.warmup, kFraction);
  fields.Value("search", learned.search, kFraction);
  fields.Value("track_every", learned.track_every, kCountOrZero);
  fields.Value("hysteresis", learned.hysteresis, kZeroOrMore);
  fields.Value("temperature", learned.temperature, kPositive);
  fields.Value("final_temperature", learned.final_temperature, kPositive);
  fields.Value("learning_rate", learned.learning_rate, kPositive);
  fields.Value("scorer_learning_rate", learned.scorer_learning_rate, kPositive);
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
  if (keys.learned) VisitLearned(attention.learned, fields.Section("learned"));
  if (keys.window) fields.Value("window", attention.window, {.min = 0, .max = 2147483647});
  if (keys.windows) fields.Value("windows", attention.windows, {.min = 1, .max = 2147483647});
  fields.Value("sinks", attention.sinks, {.min = 0, .max = 2147483647});
}

// Those that a resolved recipe has: `window: 0` and no windows stand for "not used" in the struct.
AttentionKeys KeysToWrite(const AttentionConfig& attention) {
  AttentionKeys keys = KeysOf(attention.variant);
  keys.window = attention.window != 0;
  keys.windows = !attention.windows.empty();
  return keys;
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
    const std::string_view owner = keys.learned ? kLearnedScorers : kControlled;
    refuse("regime", owner);
    refuse("control", owner);
  }
  if (!keys.learned) refuse("learned", keys.control ? kLearnedScorers : kLearned);
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

}  // namespace

AttentionConfig ReadAttention(ConfigReader& recipe, const RunConfig& config) {
  AttentionConfig attention;
  attention.control.windows = DefaultWindows(config.model.context);
  attention.control.warmup_steps = config.optimizer.warmup_steps;
  attention.control.seed = config.seed;
  attention.learned.candidates = DefaultCandidates(config.model.context);
  attention.learned.seed = config.seed;
  if (recipe.KindOf("attention") == ConfigKind::kScalar) {
    NameAttention(recipe.Get<std::string>("attention", attention.variant), attention);
    if (attention.variant == kLearnedScorers) attention.control.windows.clear();
    return attention;
  }
  ConfigReader section = recipe.Section("attention");
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

void WriteAttention(const AttentionConfig& attention, FieldWriter section) {
  section.Value("variant", attention.variant);
  VisitAttention(attention, KeysToWrite(attention), section);
}

void MarkAttentionRead(const AttentionConfig& attention, ConfigReader& recipe) {
  ConfigReader section = recipe.Section("attention");
  AttentionConfig copy;
  copy.variant = section.Get<std::string>("variant", "");
  VisitAttention(copy, KeysToWrite(attention), FieldReader(section));
}

void CheckAttentionSteps(const AttentionConfig& attention, int64_t steps) {
  if (!KeysOf(attention.variant).learned) return;
  const SelectionSchedule schedule(attention.learned, steps);
  AAH_CHECK(schedule.search_begin > 0 || attention.variant != kLearnedScorers,
            "attention.learned.warmup: expected at least one of the ", steps,
            " training steps, in which the heads are measured for the scorers, got ",
            attention.learned.warmup, "; raise it to ", 1.0 / static_cast<double>(steps),
            " or more");
}

AttentionConfig ReadPlannedAttention(const std::string& plan, const ModelConfig& model) {
  WindowPlan read = ReadWindowPlan(plan, PlanModelOf(model));
  AttentionConfig attention;
  attention.variant = "windows";
  attention.windows = std::move(read.windows);
  attention.sinks = read.sinks;
  return attention;
}

}  // namespace aah
