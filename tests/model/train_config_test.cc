#include "aah/model/train_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "aah/io/window_plan_file.h"
#include "aah/model/attention_variant.h"
#include "tests/model/train_support.h"

namespace aah {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kLeast = "out: runs/x\ndata: data/x\n";

RunConfig Parse(const std::string& more, const std::vector<std::string>& overrides = {}) {
  return ParseRunConfig(kLeast + more, "recipe.yaml", overrides);
}

std::string Refusal(const std::string& more, const std::vector<std::string>& overrides = {}) {
  const auto [message, kind] = ErrorOf([&] { Parse(more, overrides); });
  EXPECT_EQ(kind, ErrorKind::kBadInput);
  return message;
}

TEST(TrainConfigTest, ReadsWhatIsGivenAndLeavesTheDefaults) {
  const RunConfig config = Parse(
      "seed: 5\nmodel: {layers: 3, heads: 8, width: 128, positions: rope}\n"
      "optimizer:\n  learning_rate: 2e-3\n");
  EXPECT_EQ(config.out, "runs/x");
  EXPECT_EQ(config.seed, 5u);
  EXPECT_EQ(config.model.layers, 3);
  EXPECT_EQ(config.model.heads, 8);
  EXPECT_EQ(config.model.width, 128);
  EXPECT_EQ(config.model.positions, Positions::kRope);
  EXPECT_EQ(config.model.initialisation, Initialisation::kGpt2);
  EXPECT_EQ(config.model.vocabulary, 0);
  EXPECT_DOUBLE_EQ(config.optimizer.learning_rate, 2e-3);
  EXPECT_DOUBLE_EQ(config.optimizer.weight_decay, 0.1);
  EXPECT_EQ(config.training.steps, 1000);
  EXPECT_EQ(config.attention.variant, "full");
}

TEST(TrainConfigTest, OverridesWin) {
  const RunConfig config = Parse("training: {steps: 300}\n",
                                 {"training.steps=200", "attention.window=64", "out=runs/y"});
  EXPECT_EQ(config.training.steps, 200);
  EXPECT_EQ(config.out, "runs/y");
  EXPECT_EQ(config.attention.variant, "window");
  EXPECT_EQ(config.attention.window, 64);
}

TEST(TrainConfigTest, AttentionIsAWordOrASection) {
  EXPECT_EQ(Parse("attention: sdpa\n").attention.variant, "sdpa");
  EXPECT_EQ(Parse("attention: {variant: sdpa}\n").attention.variant, "sdpa");
  const AttentionConfig windows =
      Parse("attention: {windows: [[8, 16, 32, 64]], sinks: 2}\n").attention;
  EXPECT_EQ(windows.variant, "windows");
  EXPECT_THAT(windows.windows, ElementsAre(ElementsAre(8, 16, 32, 64)));
  EXPECT_EQ(windows.sinks, 2);
}

TEST(TrainConfigTest, ARegimeIsAWordOrASection) {
  const AttentionConfig word = Parse("seed: 4\nattention: full_adaptive\n").attention;
  EXPECT_EQ(word.variant, "aah");
  EXPECT_EQ(word.control.regime, "full_adaptive");
  // Of the default context of 1,024, the default warm-up, the run's seed.
  EXPECT_THAT(word.control.windows, ElementsAre(128, 256, 512, 1024));
  EXPECT_EQ(word.control.warmup_steps, 100);
  EXPECT_EQ(word.control.seed, 4u);
  EXPECT_EQ(Parse("", {"attention.variant=shallow_freeze"}).attention.control.regime,
            "shallow_freeze");
  EXPECT_EQ(Parse("attention: fixed:64\n").attention.control.regime, "fixed:64");

  const AttentionConfig section =
      Parse(
          "optimizer: {warmup_steps: 7}\n"
          "attention: {regime: shallow_freeze, sinks: 2, control: {windows: [8, 64], "
          "control_interval: 9, upper_metric: l2, siblings: sibling_bias, logit_scale: 0.1}}\n")
          .attention;
  EXPECT_EQ(section.variant, "aah");
  EXPECT_EQ(section.sinks, 2);
  EXPECT_EQ(section.control.regime, "shallow_freeze");
  EXPECT_THAT(section.control.windows, ElementsAre(8, 64));
  EXPECT_EQ(section.control.control_interval, 9);
  EXPECT_EQ(section.control.warmup_steps, 7);
  EXPECT_EQ(section.control.hierarchy.upper_metric, SimilarityMetric::kL2);
  EXPECT_EQ(section.control.siblings, SiblingScoring::kBias);
  EXPECT_EQ(section.control.logit_scale, 0.1F);
}

TEST(TrainConfigTest, RefusesControllersThatCannotBe) {
  const auto refusal = [](const std::string& control) {
    return Refusal("attention: {regime: full_adaptive, control: {" + control + "}}\n");
  };
  EXPECT_THAT(Refusal("attention: full_adaptve\n"), HasSubstr("did you mean 'full_adaptive'"));
  EXPECT_THAT(Refusal("attention: {regime: shalow_freeze}\n"),
              AllOf(HasSubstr("recipe.yaml:3"), HasSubstr("attention.regime"),
                    HasSubstr("did you mean 'shallow_freeze'")));
  EXPECT_THAT(Refusal("attention: fixed:0\n"), HasSubstr("at least 1"));
  EXPECT_THAT(refusal("control_interval: 0"),
              AllOf(HasSubstr("attention.control.control_interval"), HasSubstr("got '0'")));
  EXPECT_THAT(refusal("sim_threshold: 1.5"), HasSubstr("attention.control.sim_threshold"));
  EXPECT_THAT(refusal("super_threshold: -2"), HasSubstr("attention.control.super_threshold"));
  EXPECT_THAT(refusal("windows: [64, 32]"),
              AllOf(HasSubstr("attention.control"), HasSubstr("ascending")));
  EXPECT_THAT(refusal("windows: [32, 32]"), HasSubstr("repeats 32"));
  EXPECT_THAT(refusal("windows: [0, 32]"), HasSubstr("at least 1"));
  EXPECT_THAT(refusal("windows: []"), HasSubstr("at least one candidate"));
  EXPECT_THAT(refusal("joint_siblings: 9"),
              AllOf(HasSubstr("joint_siblings is 9"), HasSubstr("4 heads")));
  EXPECT_THAT(refusal("feature_ema: 1"), HasSubstr("feature_ema"));
  EXPECT_THAT(refusal("hidden: 1025"), HasSubstr("an integer in 1..1024"));
  EXPECT_THAT(refusal("upper_metric: cosin"), HasSubstr("'cosine'"));
  EXPECT_THAT(refusal("control_intervl: 5"), HasSubstr("control_interval"));
  EXPECT_THAT(Refusal("attention: {variant: full, regime: full_adaptive}\n"),
              HasSubstr("attention.regime"));
  EXPECT_THAT(Refusal("attention: {regime: full_adaptive, window: 8}\n"),
              HasSubstr("attention.control.windows"));
}

// The names that recipes use are those of core.
TEST(TrainConfigTest, ControllersHaveOneSetOfNames) {
  const auto control = [](const std::string& key, const std::string& word) {
    return Parse("attention: {control: {" + key + ": " + word + "}}\n").attention.control;
  };
  for (const char* name : {"cosine", "centered_cosine", "l2", "cosine_normdiff"}) {
    EXPECT_EQ(control("upper_metric", name).hierarchy.upper_metric, ParseSimilarityMetric(name));
  }
  for (const char* name : {"mean", "mean_std", "mean_var", "mean_global_offset"}) {
    EXPECT_EQ(control("aggregate", name).hierarchy.aggregate, ParseGroupAggregate(name));
  }
  for (const char* name :
       {"base", "enriched", "contrastive", "position_aware", "relative_sibling_mean"}) {
    EXPECT_EQ(control("input", name).input, ParseControllerInput(name));
  }
  for (const char* name : {"none", "joint_sibling", "sibling_bias"}) {
    EXPECT_EQ(control("siblings", name).siblings, ParseSiblingScoring(name));
  }
}

// Of two layers, four heads, two key/value heads of 16.
WindowPlan SmallPlan() {
  WindowPlan plan;
  plan.model = {.architecture = "gpt2", .shape = {2, 4, 2, 16}, .fingerprint = "of other weights"};
  plan.sinks = 3;
  plan.windows = {{8, 16, kUnlimitedWindow, 1}, {5, 6, 7, 300}};
  return plan;
}

constexpr const char* kPlannedModel =
    "model: {layers: 2, heads: 4, kv_heads: 2, width: 64, context: 32}\n";

TEST(TrainConfigTest, APlanBecomesItsWindows) {
  const TemporaryFolder folder;
  const std::string path = folder / "plan.json";
  WriteWindowPlan(path, SmallPlan());
  const RunConfig config = Parse(kPlannedModel + ("attention: {plan: " + path + "}\n"));
  EXPECT_EQ(config.attention.variant, "windows");
  EXPECT_EQ(config.attention.sinks, 3);
  EXPECT_EQ(config.attention.windows, SmallPlan().windows);
  EXPECT_THAT(MakeAttentionVariant(config.attention, config.model)->windows(),
              ElementsAre(ElementsAre(8, 16, 32, 1), ElementsAre(5, 6, 7, 32)));

  // What is written holds the windows, and is the same as if they had been given.
  const std::string yaml = RunConfigYaml(config);
  EXPECT_THAT(yaml, Not(HasSubstr("plan")));
  const RunConfig given = Parse(
      kPlannedModel +
      std::string("attention: {windows: [[8, 16, 2147483647, 1], [5, 6, 7, 300]], sinks: 3}\n"));
  EXPECT_EQ(RunConfigYaml(given), yaml);
  EXPECT_EQ(RunConfigYaml(Parse(kPlannedModel, {"attention.plan=" + path})), yaml);

  WindowPlan changed = SmallPlan();
  changed.windows[1][0] = 9;
  WriteWindowPlan(path, changed);
  const auto differences = CompareRunConfigs(
      config, Parse(kPlannedModel + ("attention: {plan: " + path + ", variant: windows}\n")));
  ASSERT_FALSE(differences.empty());
  for (const ConfigDifference& difference : differences) {
    EXPECT_THAT(difference.key, StartsWith("attention.windows"));
  }
}

TEST(TrainConfigTest, RefusesPlansThatDoNotFit) {
  const TemporaryFolder folder;
  const std::string path = folder / "plan.json";
  WriteWindowPlan(path, SmallPlan());
  const auto refusal = [&](const std::string& model, const std::string& more = "") {
    return Refusal("model: {context: 32, " + model + "}\nattention: {plan: " + path + more + "}\n");
  };
  const std::string fits = "layers: 2, heads: 4, kv_heads: 2, width: 64";
  const std::string place = "recipe.yaml:4: attention.plan: " + path + ": the plan is for another ";
  EXPECT_EQ(refusal("layers: 3, heads: 4, kv_heads: 2, width: 64"),
            place + "model: expected 3 layers, got 2; choose a plan made for this model");
  EXPECT_THAT(refusal("layers: 2, heads: 2, kv_heads: 2, width: 64"),
              HasSubstr("expected 2 heads, got 4"));
  EXPECT_THAT(refusal("layers: 2, heads: 4, width: 64"),
              HasSubstr("expected 4 key/value heads, got 2"));
  EXPECT_THAT(refusal("layers: 2, heads: 4, kv_heads: 2, width: 128"),
              HasSubstr("expected 32 dimensions per head, got 16"));
  for (const char* other : {"window: 8", "windows: [[8, 8, 8, 8]]", "sinks: 0",
                            "regime: full_adaptive", "control: {seed: 1}", "pan: x"}) {
    EXPECT_THAT(refusal(fits, ", " + std::string(other)),
                HasSubstr("has no use beside attention.plan"))
        << other;
  }
  for (const char* variant : {"full", "window", "aah", "full_adaptive"}) {
    EXPECT_THAT(refusal(fits, ", variant: " + std::string(variant)),
                AllOf(HasSubstr("attention.variant"), HasSubstr("expected 'windows'")));
  }
  WindowPlan other = SmallPlan();
  other.model.architecture = "llama";
  WriteWindowPlan(path, other);
  EXPECT_THAT(refusal(fits), HasSubstr("expected the architecture 'gpt2', got 'llama'"));
  EXPECT_THAT(Refusal("attention: {plan: " + (folder / "none.json") + "}\n"),
              AllOf(HasSubstr("recipe.yaml:3: attention.plan: "), HasSubstr("none.json")));
  EXPECT_THAT(Refusal("attention: {plan: ''}\n"), HasSubstr("expected a window plan's file"));
}

TEST(TrainConfigTest, WrittenConfigReadsBackEqual) {
  std::vector<RunConfig> configs = {
      Parse(""),
      Parse("attention: sdpa\n"),
      Parse("attention: {window: 16, sinks: 1}\n"),
      Parse("attention: {windows: [[1, 2, 3, 4], [5, 6, 7, 8]]}\n"),
      Parse("attention: full_adaptive\n"),
      Parse("attention: {regime: shuffle_post_select, control: {windows: [3, 5], seed: 9, "
            "feature_ema: 0.8, joint_output_scale: 0.3, max_depth: 2, deep_scorer: true}}\n"),
      Parse("model: {positions: rope, tied_head: false, dropout: 0.1, norm_epsilon: 1.0e-6}\n"
            "seed: 18446744073709551615\ninit_from: 'a: b'\n")};
  for (const RunConfig& config : configs) {
    const std::string yaml = RunConfigYaml(config);
    const RunConfig again = ParseRunConfig(yaml, "again.yaml", {});
    EXPECT_THAT(CompareRunConfigs(config, again), IsEmpty()) << yaml;
    EXPECT_EQ(RunConfigYaml(again), yaml);
    EXPECT_EQ(again.seed, config.seed);
    EXPECT_EQ(again.init_from, config.init_from);
    EXPECT_EQ(again.attention.windows, config.attention.windows);
    EXPECT_EQ(again.model.norm_epsilon, config.model.norm_epsilon);
  }
}

TEST(TrainConfigTest, DifferencesNameKeyAndBothValues) {
  const auto differences =
      CompareRunConfigs(Parse("training: {steps: 5}\noptimizer: {warmup_steps: 0}\n"),
                        Parse("training: {steps: 6}\noptimizer: {warmup_steps: 0}\n"
                              "attention: {window: 8}\n"));
  ASSERT_EQ(differences.size(), 3u);
  EXPECT_EQ(differences[0].key, "training.steps");
  EXPECT_EQ(differences[0].was, "5");
  EXPECT_EQ(differences[0].is, "6");
  EXPECT_EQ(differences[1].key, "attention.variant");
  EXPECT_EQ(differences[2].key, "attention.window");
  EXPECT_EQ(differences[2].was, "(absent)");
  EXPECT_EQ(differences[2].is, "8");
}

TEST(TrainConfigTest, TheRecipesRead) {
  for (const char* name : {"kjv.yaml", "own_text.yaml"}) {
    const std::string path = std::string(AAH_RECIPE_DIR "/") + name;
    const RunConfig config = ReadRunConfig(path, std::vector<std::string>{"seed=3"});
    EXPECT_EQ(config.seed, 3u);
    EXPECT_EQ(config.attention.variant, "windows");
  }
}

TEST(TrainConfigTest, TheAdaptiveRecipesRead) {
  for (const char* name : {"paper_1b.yaml", "aah_small.yaml", "aah_tiny.yaml"}) {
    const RunConfig config = ReadRunConfig(std::string(AAH_RECIPE_DIR "/") + name, {});
    EXPECT_EQ(config.attention.variant, "aah") << name;
  }
  // The paper's recipe spells out every key; its controller's are the defaults.
  RunConfig paper = ReadRunConfig(AAH_RECIPE_DIR "/paper_1b.yaml", {});
  RunConfig defaults = paper;
  defaults.attention.control = ControlOptions{};
  EXPECT_THAT(CompareRunConfigs(paper, defaults), IsEmpty());
  for (const auto& line : {"sim_threshold:", "deep_scorer:", "control_interval:", "seed:"}) {
    EXPECT_THAT(FileText(AAH_RECIPE_DIR "/paper_1b.yaml"), HasSubstr(line));
  }
}

TEST(TrainConfigTest, RefusesUnknownKeysWithTheNearest) {
  EXPECT_THAT(Refusal("trainig: {steps: 5}\n"), AllOf(HasSubstr("trainig"), HasSubstr("training")));
  EXPECT_THAT(Refusal("model: {head: 5}\n"), AllOf(HasSubstr("recipe.yaml:3"), HasSubstr("heads")));
  EXPECT_THAT(Refusal("", {"optimizer.learning_rat=1"}), HasSubstr("learning_rate"));
  EXPECT_THAT(Refusal("attention: windo\n"), HasSubstr("window"));
}

TEST(TrainConfigTest, RefusesWrongTypesAndRanges) {
  EXPECT_THAT(Refusal("training: {steps: many}\n"),
              AllOf(HasSubstr("training.steps"), HasSubstr("many")));
  EXPECT_THAT(Refusal("training: {steps: 0}\n"), HasSubstr("training.steps"));
  EXPECT_THAT(Refusal("training: {steps: 1.5}\n"), HasSubstr("1.5"));
  EXPECT_THAT(Refusal("model: {dropout: 1}\n"), HasSubstr("model.dropout"));
  EXPECT_THAT(Refusal("model: {positions: learnt}\n"), HasSubstr("learned"));
  EXPECT_THAT(Refusal("model: 5\n"), HasSubstr("model"));
  EXPECT_THAT(Refusal("checkpoint: {keep: 0}\n"), HasSubstr("checkpoint.keep"));
  EXPECT_THAT(Refusal("optimizer: {beta1: 1.0}\n"), HasSubstr("optimizer.beta1"));
}

TEST(TrainConfigTest, RefusesSettingsThatContradictEachOther) {
  EXPECT_THAT(Refusal("model: {heads: 3, width: 64}\n"), AllOf(HasSubstr("3"), HasSubstr("64")));
  EXPECT_THAT(Refusal("model: {heads: 4, width: 48}\n"), HasSubstr("multiple of 8"));
  EXPECT_THAT(Refusal("model: {heads: 4, width: 64, kv_heads: 3}\n"), HasSubstr("kv_heads"));
  EXPECT_THAT(Refusal("attention: {window: 0}\n"), HasSubstr("at least 1"));
  EXPECT_THAT(Refusal("attention: {window: -4}\n"), HasSubstr("-4"));
  EXPECT_THAT(Refusal("attention: {windows: [[1, 0, 1, 1]]}\n"), HasSubstr("windows"));
  EXPECT_THAT(Refusal("attention: {windows: [[1, 2, 3]]}\n"), HasSubstr("windows"));
  EXPECT_THAT(Refusal("attention: {variant: full, window: 8}\n"), HasSubstr("window"));
  EXPECT_THAT(Refusal("training: {batch_size: 4, micro_batch_size: 3}\n"),
              HasSubstr("micro_batch_size"));
  EXPECT_THAT(Refusal("optimizer: {learning_rate: 1e-4, min_learning_rate: 1e-3}\n"),
              HasSubstr("min_learning_rate"));
  EXPECT_THAT(Refusal("training: {steps: 10}\n"), HasSubstr("warmup_steps"));
}

TEST(TrainConfigTest, RefusesToTrainWhatNoMachineHolds) {
  // Reading it is no fault: another machine may have trained it.
  const auto refusal = [](const std::string& more) {
    const RunConfig config = Parse(more);
    return ErrorOf([&] { CheckTrainingMemory(config); }).first;
  };
  EXPECT_THAT(refusal("model: {layers: 4096, width: 1048576, heads: 4096}\n"),
              AllOf(HasSubstr("GiB"), HasSubstr("model.width")));
  EXPECT_THAT(refusal("model: {context: 1048576, positions: rope}\n"
                      "training: {batch_size: 10000000}\n"),
              HasSubstr("training.batch_size"));
  EXPECT_THAT(refusal("model: {layers: 4, heads: 16, width: 1024, context: 1048576}\n"
                      "training: {batch_size: 16}\n"),
              HasSubstr("training.micro_batch_size"));
  EXPECT_THAT(Refusal("model: {width: 100000000}\n"), HasSubstr("model.width"));
}

TEST(TrainConfigTest, RefusesARunWithoutFolderOrData) {
  EXPECT_THAT(ErrorOf([] { ParseRunConfig("data: x\n", "r", {}); }).first, HasSubstr("out"));
  EXPECT_THAT(ErrorOf([] { ParseRunConfig("out: x\n", "r", {}); }).first, HasSubstr("data"));
}

}  // namespace
}  // namespace aah
