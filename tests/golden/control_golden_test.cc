// The controller against the golden numbers: decisions exactly, numbers within tolerance.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "aah/attention.h"
#include "aah/controller.h"
#include "aah/grouping.h"
#include "aah/head_features.h"
#include "aah/hierarchy.h"
#include "aah/parallel.h"
#include "aah/window_decision.h"
#include "tests/golden/golden_files.h"

namespace aah {
namespace {

using golden::Compare;
using golden::Numbers;
using nlohmann::json;

std::vector<FeatureRow> Rows(const json& nested) { return nested.get<std::vector<FeatureRow>>(); }

template <typename Row>
std::vector<double> Flat(const std::vector<Row>& rows) {
  std::vector<double> flat;
  for (const Row& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  return flat;
}

std::vector<double> Doubles(std::span<const float> values) {
  return {values.begin(), values.end()};
}

// Empty where equal; what is decided is compared as JSON, to the letter.
std::string Same(const std::string& name, const json& actual, const json& expected) {
  if (actual == expected) return {};
  return name + " is " + actual.dump() + ", expected " + expected.dump();
}

std::string FirstOf(std::initializer_list<std::string> lines) {
  for (const std::string& line : lines) {
    if (!line.empty()) return line;
  }
  return {};
}

std::string OriginName(GroupingOrigin origin) {
  switch (origin) {
    case GroupingOrigin::kSingleItem:
      return "single_item";
    case GroupingOrigin::kNatural:
      return "natural";
    case GroupingOrigin::kCollapsed:
      return "collapsed";
    case GroupingOrigin::kForcedBipartition:
      return "forced_bipartition";
  }
  return {};
}

// The anchors of a forced split are one pair whose similarity is the same both ways. The files were
// made with float matrix products, whose roundings at [a][b] and [b][a] may differ in the last bit,
// so that the least entry is sometimes the one below the diagonal and the two groups are numbered
// the other way round. True where `expected` is just that: the same two groups, exchanged.
bool IsMirrored(const Groups& actual, const json& expected) {
  return actual.size() == 2 && actual[0].front() < actual[1].front() &&
         expected == json({actual[1], actual[0]});
}

// What the float error of |a|^2 + |b|^2 - 2ab, by which the files' distances of more than 25 items
// were computed, may come to in the smallest distance.
double DistanceError(const std::vector<FeatureRow>& rows, double distance) {
  double squares = 0;
  for (const FeatureRow& row : rows) {
    double sum = 0;
    for (const float x : row) sum += double{x} * double{x};
    squares = std::max(squares, sum);
  }
  return 2 * double{std::numeric_limits<float>::epsilon()} * squares / std::fabs(distance);
}

std::string CheckCluster(const json&, const json& c) {
  ClusteringOptions options;
  options.metric = ParseSimilarityMetric(c.at("metric").get<std::string>());
  options.threshold = c.at("threshold");
  options.min_group_size = c.at("min_group_size");
  options.split_single_group = c.at("allow_forced_bipartition");
  options.norm_difference_scale = c.at("normdiff_scale");
  options.churn_bonus = c.at("churn_penalty");
  std::vector<int32_t> previous;
  if (!c.at("prev_groups").is_null()) c.at("prev_groups").get_to(previous);
  options.previous = previous;
  const std::vector<FeatureRow> rows = Rows(c.at("features"));
  Grouping grouping = Cluster(rows, options);
  if (grouping.anchor_similarity && IsMirrored(grouping.groups, c.at("groups"))) {
    std::swap(grouping.groups[0], grouping.groups[1]);
  }
  if (options.metric == SimilarityMetric::kL2 && rows.size() > 25) {
    const double expected = c.at("sim_max");
    if (std::fabs(grouping.similarity_max - expected) <= DistanceError(rows, expected)) {
      grouping.similarity_max = expected;
    }
  }
  const auto near = [&](const char* field, double actual) {
    return Compare(field, std::array{actual}, std::array{c.at(field).get<double>()});
  };
  const json& anchor = c.at("anchor_similarity");
  return FirstOf({
      Same("groups", grouping.groups, c.at("groups")),
      Same("origin", OriginName(grouping.origin), c.at("origin")),
      Same("groups_before_merge", grouping.groups_before_merge, c.at("groups_before_merge")),
      near("sim_mean", grouping.similarity_mean),
      near("sim_std", grouping.similarity_std),
      near("sim_min", grouping.similarity_min),
      near("sim_max", grouping.similarity_max),
      Same("has anchor_similarity", grouping.anchor_similarity.has_value(), !anchor.is_null()),
      anchor.is_null() ? "" : near("anchor_similarity", *grouping.anchor_similarity),
  });
}

// The first six features; the statistics are the attention tests' own.
std::string CheckProjectionFeatures(const json&, const json& c) {
  const std::array<int64_t, 4> shape = {c.at("B"), c.at("H"), c.at("T"), c.at("D")};
  std::array<std::vector<float>, 3> numbers;
  std::array<ConstView4<float>, 3> views;
  for (size_t i = 0; i < 3; ++i) {
    const std::vector<double> wide = Numbers(c.at(std::array{"q", "k", "v"}[i]));
    numbers[i].assign(wide.begin(), wide.end());
    views[i] = ConstView4<float>::Contiguous(numbers[i].data(), shape);
  }
  const auto heads = static_cast<int32_t>(shape[1]);
  ProjectionSums sums(heads, heads);
  SerialParallel serial;
  sums.AddBatch(views[0], views[1], views[2], serial);
  std::vector<double> features;
  for (const FeatureRow& row : HeadFeatures(sums, {})) {
    features.insert(features.end(), row.begin(), row.begin() + 6);
  }
  return Compare("qkv_features", features, Numbers(c.at("qkv_features")));
}

TEST(ControlGolden, ProjectionFeatures) { golden::RunKind("attention", CheckProjectionFeatures); }

TEST(ControlGolden, Clusters) { golden::RunKind("cluster", CheckCluster); }

std::string CheckHierarchy(const json&, const json& c) {
  HierarchyOptions options;
  options.sim_threshold = c.at("sim_threshold");
  options.super_threshold = c.at("super_threshold");
  options.upper_metric = ParseSimilarityMetric(c.at("upper_metric").get<std::string>());
  options.norm_difference_scale = c.at("normdiff_scale");
  options.min_group_size = c.at("min_group_size");
  options.max_depth = c.at("max_depth");
  options.aggregate = ParseGroupAggregate(c.at("group_feature_mode").get<std::string>());
  Hierarchy hierarchy = BuildHierarchy(Rows(c.at("features")), options, {});
  HierarchyLevel& bottom = hierarchy.levels.front();
  if (IsMirrored(bottom.groups, c.at("levels")[0].at("groups"))) {
    std::swap(bottom.groups[0], bottom.groups[1]);
    for (HierarchyLevel& level : hierarchy.levels) std::swap(level.features[0], level.features[1]);
  }

  json groups = json::array();
  json expected_groups = json::array();
  json parents = json::array();
  json stops = json::array();
  std::string difference;
  for (const json& level : c.at("levels")) expected_groups.push_back(level.at("groups"));
  for (const HierarchyLevel& level : hierarchy.levels) {
    groups.push_back(level.groups);
    stops.push_back("");
    if (!level.parent.empty()) parents.push_back(level.parent);
  }
  if (hierarchy.levels.front().groups.size() == 1) {
    stops = {"level0_collapsed"};
  } else if (hierarchy.collapsed) {
    stops.push_back("upper_level_collapsed");
  }
  difference = FirstOf({Same("groups", groups, expected_groups),
                        Same("parent_maps", parents, c.at("parent_maps")),
                        Same("stop_reasons", stops, c.at("stop_reasons"))});
  for (size_t level = 0; difference.empty() && level < hierarchy.levels.size(); ++level) {
    difference = Compare("features of level " + std::to_string(level),
                         Flat(hierarchy.levels[level].features),
                         Numbers(c.at("levels")[level].at("features")));
  }
  return difference;
}

TEST(ControlGolden, Hierarchies) { golden::RunKind("hierarchy", CheckHierarchy); }

// A scorer as the files hold it: "mlp.0.weight" [out][in], "mlp.0.bias", "mlp.2.weight", ...
class FileMlp {
 public:
  explicit FileMlp(const json& tensors, const std::string& prefix = "mlp.") {
    if (tensors.is_null()) return;
    for (int index = 0; tensors.contains(prefix + std::to_string(index) + ".weight"); index += 2) {
      const std::string layer = prefix + std::to_string(index);
      OwnedMlp::Layer& owned = mlp_.layers().emplace_back();
      for (const double x : Numbers(tensors.at(layer + ".weight"))) {
        owned.weight.push_back(static_cast<float>(x));
      }
      for (const double x : Numbers(tensors.at(layer + ".bias"))) {
        owned.bias.push_back(static_cast<float>(x));
      }
    }
  }
  MlpWeights weights() const { return mlp_.weights(); }

 private:
  OwnedMlp mlp_;
};

Hierarchy HierarchyOf(const json& levels) {
  Hierarchy hierarchy;
  for (const json& level : levels) {
    const auto groups = level.at("groups").get<Groups>();
    if (!hierarchy.levels.empty()) {
      HierarchyLevel& below = hierarchy.levels.back();
      below.parent = GroupOfItems(groups, static_cast<int32_t>(below.groups.size()));
    }
    hierarchy.levels.push_back({groups, Rows(level.at("features")), {}});
  }
  return hierarchy;
}

std::string CheckSelectWindows(const json&, const json& c) {
  DecisionOptions options;
  options.input = ParseControllerInput(c.at("controller_input_mode").get<std::string>());
  options.siblings = ParseSiblingScoring(c.at("pairwise_mode").get<std::string>());
  options.parent_constraint = c.at("parent_constraint");
  options.logit_scale = c.at("logit_scale");
  options.joint_output_scale = c.at("joint_output_scale");
  options.sibling_bias_scale = c.at("pairwise_bias_scale");
  const FileMlp base(c.at("controller"));
  const FileMlp joint(c.at("joint"));
  const FileMlp pairwise(c.at("pairwise"));
  const ScorerWeights scorers = {base.weights(), options.siblings == SiblingScoring::kJoint
                                                     ? joint.weights()
                                                     : pairwise.weights()};
  const Hierarchy hierarchy = HierarchyOf(c.at("levels"));
  const std::vector<LevelDecision> decisions =
      DecideWindows(hierarchy, scorers, options, c.at("n_windows"));

  json raw = json::array();
  json index = json::array();
  json parent = json::array();
  for (size_t level = 0; level < decisions.size(); ++level) {
    const std::string where = " of level " + std::to_string(level);
    const std::string difference = FirstOf({
        Compare("inputs" + where,
                Flat(ControllerInputs(hierarchy, static_cast<int32_t>(level), options.input)),
                Numbers(c.at("controller_inputs")[level])),
        Compare("logits" + where, Flat(decisions[level].logits), Numbers(c.at("logits")[level])),
    });
    if (!difference.empty()) return difference;
    raw.push_back(decisions[level].raw);
    index.push_back(decisions[level].index);
    json above = json::array();
    for (const int32_t group : hierarchy.levels[level].parent) {
      above.push_back(decisions[level + 1].index[static_cast<size_t>(group)]);
    }
    parent.push_back(above.empty() ? json() : above);
  }
  return FirstOf({Same("raw", raw, c.at("raw")), Same("parent", parent, c.at("parent")),
                  Same("final", index, c.at("final")),
                  Same("group_windows", index[0], c.at("group_windows"))});
}

TEST(ControlGolden, Decisions) { golden::RunKind("select_windows", CheckSelectWindows); }

ControlOptions OptionsOf(const std::string& regime, const json& config) {
  ControlOptions options;
  // The ramp is a setting of ours, not a regime.
  options.regime = regime == "post_warmup_ramp" ? "full_adaptive" : regime;
  options.windows = config.at("windows").get<std::vector<int32_t>>();
  options.min_window = config.at("W_min_gpu");
  options.warmup_steps = config.at("warmup_steps");
  options.control_interval = config.at("control_interval");
  options.ramp_steps = config.at("post_warmup_ramp_steps");
  // A regime without feature averaging ignores this, whatever the file says.
  options.feature_ema = 0.9;
  if (regime != "no_feature_ema") options.feature_ema = config.at("ema_alpha");
  options.window_ema = config.at("resolution_ema_alpha");
  options.hierarchy.sim_threshold = config.at("sim_threshold");
  options.hierarchy.super_threshold = config.at("super_threshold");
  options.hierarchy.upper_l2_threshold = config.at("upper_l2_threshold");
  options.hierarchy.upper_metric =
      ParseSimilarityMetric(config.at("upper_cluster_metric").get<std::string>());
  options.hierarchy.norm_difference_scale = config.at("cosine_normdiff_scale");
  options.hierarchy.churn_penalty = config.at("churn_penalty");
  options.hierarchy.min_group_size = config.at("min_group_size");
  // The regimes' own depths must do: full_adaptive's for all but those that say otherwise.
  options.hierarchy.max_depth = 4;
  options.hierarchy.aggregate =
      ParseGroupAggregate(config.at("group_feature_mode").get<std::string>());
  options.input = ParseControllerInput(config.at("controller_input_mode").get<std::string>());
  options.hidden = config.at("control_dim");
  options.joint_hidden = config.at("joint_hidden_dim");
  options.logit_scale = config.at("controller_logit_scale");
  options.joint_output_scale = config.at("joint_output_scale");
  options.sibling_bias_scale = config.at("pairwise_bias_scale");
  return options;
}

// rows [n][inputs] times a torch Linear's weight [outputs][inputs], transposed.
std::vector<float> Linear(const std::vector<double>& rows, const std::vector<double>& weight,
                          size_t inputs) {
  const size_t outputs = weight.size() / inputs;
  std::vector<float> result;
  for (size_t row = 0; row < rows.size() / inputs; ++row) {
    for (size_t out = 0; out < outputs; ++out) {
      double sum = 0;
      for (size_t in = 0; in < inputs; ++in) {
        sum += rows[row * inputs + in] * weight[out * inputs + in];
      }
      result.push_back(static_cast<float>(sum));
    }
  }
  return result;
}

// One attention layer under a controller, in float where the reference is.
class Layer {
 public:
  Layer(const json& file, const json& c)
      : heads_(c.at("n_head")),
        channels_(c.at("n_embd")),
        tokens_(c.at("seq_len")),
        qkv_weight_(Numbers(file.at("qkv_weight"))),
        projection_weight_(Numbers(file.at("proj_weight"))),
        base_(c.at("controller")),
        joint_(c.at("joint")),
        controller_(OptionsOf(c.at("regime"), c.at("config")), /*layer=*/0, heads_,
                    {base_.weights(), joint_.weights()}),
        sums_(heads_, heads_) {}

  // Empty where the step comes out as the file has it.
  std::string Step(const json& x, const json& step) {
    const int64_t number = step.at("step");
    const int64_t head_dim = channels_ / heads_;
    const std::vector<float> qkv = Linear(Numbers(x), qkv_weight_, static_cast<size_t>(channels_));
    const auto view = [&](int64_t part) {
      return ConstView4<float>{qkv.data() + part * channels_,
                               {1, heads_, tokens_, head_dim},
                               {0, head_dim, 3 * channels_, 1}};
    };
    SerialParallel parallel;
    sums_.Clear();
    if (controller_.NeedsFeatures(number)) {
      sums_.AddBatch(view(0), view(1), view(2), parallel);
    }
    const std::span<const int32_t> windows = controller_.Advance(number, tokens_, &sums_);
    Attend(qkv, windows);
    controller_.RecordStatistics(statistics_);
    return Difference(step, windows);
  }

 private:
  void Attend(const std::vector<float>& qkv, std::span<const int32_t> windows) {
    const std::vector<double> wide(qkv.begin(), qkv.end());
    const int64_t head_dim = channels_ / heads_;
    const auto view = [&](int64_t part) {
      return ConstView4<double>{wide.data() + part * channels_,
                                {1, heads_, tokens_, head_dim},
                                {0, head_dim, 3 * channels_, 1}};
    };
    const auto heads = static_cast<size_t>(heads_);
    out_.assign(static_cast<size_t>(tokens_ * channels_), 0);
    std::vector<double> log_sum_exp(static_cast<size_t>(tokens_ * heads_));
    std::vector<double> statistics(3 * heads);
    const std::span<double> all(statistics);
    Visibility visibility;
    visibility.windows = windows;
    ReferenceAttentionForward(
        view(0), view(1), view(2), visibility, {},
        {out_.data(), {1, heads_, tokens_, head_dim}, {0, head_dim, channels_, 1}},
        View3<double>::Contiguous(log_sum_exp.data(), {1, heads_, tokens_}), all.first(heads),
        all.subspan(heads, heads), all.last(heads));
    statistics_.assign(statistics.begin(), statistics.end());
  }

  std::string Difference(const json& step, std::span<const int32_t> windows) const {
    const auto heads = static_cast<size_t>(heads_);
    const std::span<const float> all(statistics_);
    double mean = 0;
    double absolute = 0;
    for (const float y : Linear(out_, projection_weight_, static_cast<size_t>(channels_))) {
      mean += y / static_cast<double>(out_.size());
      absolute += std::fabs(y) / static_cast<double>(out_.size());
    }
    double elements = 0;
    for (const int32_t window : windows) elements += static_cast<double>(window * tokens_);
    const auto near = [&](const char* field, double actual) {
      return Compare(field, std::array{actual}, std::array{step.at(field).get<double>()});
    };
    return FirstOf({
        Same("windows", std::vector<int32_t>(windows.begin(), windows.end()), step.at("windows")),
        Same("group_of_head", controller_.state().group_of_head, step.at("group_of_head")),
        Same("groups_per_level", controller_.report().hierarchy.GroupsPerLevel(),
             step.at("groups_per_level")),
        Same("path", ControlPathName(controller_.report().path), PathOf(step.at("path"))),
        Compare("head_entropy", Doubles(all.first(heads)), Numbers(step.at("head_entropy"))),
        Compare("head_norms", Doubles(all.subspan(heads, heads)), Numbers(step.at("head_norms"))),
        Compare("head_usage", Doubles(all.last(heads)), Numbers(step.at("head_usage"))),
        near("y_mean", mean),
        near("y_abs_mean", absolute),
        near("total_elements", elements),
    });
  }

  std::string PathOf(const std::string& name) const {
    if (name.ends_with("_update")) return "update";
    if (name.ends_with("_cached")) return "cached";
    return controller_.regime().groups == GroupSource::kSingletons ? "full" : "shadow";
  }

  int32_t heads_;
  int64_t channels_;
  int64_t tokens_;
  std::vector<double> qkv_weight_;
  std::vector<double> projection_weight_;
  FileMlp base_;
  FileMlp joint_;
  Controller controller_;
  ProjectionSums sums_;
  std::vector<double> out_;
  std::vector<float> statistics_;
};

TEST(ControlGolden, LayerSequences) {
  golden::RunKind("layer_sequence", [](const json& file, const json& c) -> std::string {
    Layer layer(file, c);
    for (const json& step : c.at("steps")) {
      const std::string difference =
          layer.Step(file.at("x").at(step.at("step").get<size_t>()), step);
      if (!difference.empty()) {
        return c.at("regime").get<std::string>() + ", step " + step.at("step").dump() + ": " +
               difference;
      }
    }
    return {};
  });
}

}  // namespace
}  // namespace aah
