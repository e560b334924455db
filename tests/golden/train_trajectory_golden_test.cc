// Whole training runs of a tiny model against the golden numbers: losses within tolerance, the
// controller's windows exactly, through the trainer's own step.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "aah/control_options.h"
#include "aah/grouping.h"
#include "aah/model/aah_policy.h"
#include "aah/model/attention_variant.h"
#include "aah/model/gpt.h"
#include "aah/model/optimizer.h"
#include "aah/model/train_step.h"
#include "tests/golden/golden_files.h"

namespace aah {
namespace {

using nlohmann::json;

constexpr double kLossTolerance = 2e-3;

std::vector<float> Floats(const json& nested) {
  const std::vector<double> numbers = golden::Numbers(nested);
  return {numbers.begin(), numbers.end()};
}

ModelConfig ModelOf(const json& config) {
  ModelConfig model;
  model.layers = config.at("n_layer");
  model.heads = config.at("n_head");
  model.width = config.at("n_embd");
  model.mlp_width = config.at("n_ff");
  model.context = config.at("seq_len");
  model.vocabulary = config.at("vocab_size");
  return model;
}

ControlOptions OptionsOf(const std::string& regime, const json& config) {
  ControlOptions options;
  options.regime = regime;
  options.windows = config.at("aah_v3_windows").get<std::vector<int32_t>>();
  options.min_window = config.at("W_min");
  options.warmup_steps = config.at("warmup_steps");
  options.control_interval = config.at("control_interval");
  options.feature_ema = config.at("ema_alpha");
  options.window_ema = config.at("window_ema_alpha");
  options.hierarchy.sim_threshold = config.at("sim_threshold");
  options.hierarchy.super_threshold = config.at("super_threshold");
  options.hierarchy.upper_metric =
      ParseSimilarityMetric(config.at("upper_metric").get<std::string>());
  options.hierarchy.norm_difference_scale = config.at("normdiff_scale");
  options.hierarchy.churn_penalty = config.at("churn_penalty");
  options.hierarchy.min_group_size = config.at("aah_v3_min_group_size");
  options.hierarchy.max_depth = config.at("max_depth");
  options.hidden = config.at("control_dim");
  options.joint_hidden = config.at("joint_hidden_dim");
  return options;
}

// "PREFIX.mlp.0.weight", "PREFIX.mlp.0.bias", "PREFIX.mlp.2.weight", ...; empty where there is
// none.
OwnedMlp MlpOf(const json& tensors, const std::string& prefix) {
  OwnedMlp mlp;
  for (int index = 0;; index += 2) {
    const std::string name = prefix + ".mlp." + std::to_string(index);
    if (!tensors.contains(name + ".weight")) return mlp;
    mlp.layers().push_back(
        {Floats(tensors.at(name + ".weight")), Floats(tensors.at(name + ".bias"))});
  }
}

std::unique_ptr<AttentionVariant> AttentionOf(const json& file, const json& c,
                                              const ModelConfig& model) {
  std::vector<OwnedScorers> scorers;
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    const std::string prefix = "blocks." + std::to_string(layer) + ".attn.";
    scorers.push_back({MlpOf(c.at("controller"), prefix + "controller"),
                       MlpOf(c.at("controller"), prefix + "joint_sibling_scorer")});
  }
  return MakeWindowedAttention(
      std::make_unique<AahPolicy>(OptionsOf(c.at("regime"), file.at("config")), model.layers,
                                  model.heads, model.heads, model.context, std::move(scorers)),
      /*sinks=*/0);
}

void LoadWeights(const json& init, Gpt& model) {
  const torch::NoGradGuard no_grad;
  for (auto& item : model->named_parameters()) {
    const std::vector<double> numbers = golden::Numbers(init.at(item.key()));
    item.value().copy_(torch::tensor(numbers, torch::kDouble).view(item.value().sizes()));
  }
}

at::Tensor TokensOf(const json& tokens) {
  std::vector<int64_t> ids;
  for (const json& row : tokens) {
    for (const json& id : row) ids.push_back(id);
  }
  return torch::tensor(ids, torch::kLong).view({static_cast<int64_t>(tokens.size()), -1});
}

std::string CheckTrajectory(const json& file, const json& c) {
  const ModelConfig config = ModelOf(file.at("config"));
  Gpt model(config, AttentionOf(file, c, config), /*seed=*/0);
  // A head size of 6 is none of the kernels', but the reference in double takes any.
  model->to(torch::kDouble);
  LoadWeights(file.at("init"), model);
  AdamW optimizer(*model, {.weight_decay = 0.1,
                           .decay_everything = true,
                           .beta1 = 0.9,
                           .beta2 = 0.999,
                           .epsilon = 1e-8});
  for (const json& step : c.at("steps")) {
    const auto index = step.at("step").get<size_t>();
    const StepOutcome outcome =
        TrainStep(model, optimizer, TokensOf(file.at("tokens")[index]),
                  {.step = static_cast<int64_t>(index), .learning_rate = step.at("lr")});
    const std::string where = " of step " + std::to_string(index);
    const auto windows = model->attention().windows();
    for (size_t layer = 0; layer < windows.size(); ++layer) {
      const json& given = step.at("windows")[layer];
      const std::vector<int32_t> full(windows[layer].size(), static_cast<int32_t>(config.context));
      const json expected = given.is_null() ? json(full) : given;
      if (json(windows[layer]) == expected) continue;
      return "windows of layer " + std::to_string(layer) + where + " are " +
             json(windows[layer]).dump() + ", expected " + expected.dump();
    }
    const double expected = step.at("loss");
    if (!(std::abs(outcome.loss - expected) <= kLossTolerance)) {
      return "loss" + where + " is " + std::to_string(outcome.loss) + ", expected " +
             std::to_string(expected);
    }
  }
  return {};
}

TEST(TrainTrajectoryGolden, LossesAndWindows) {
  golden::RunKind("train_trajectory", CheckTrajectory);
}

}  // namespace
}  // namespace aah
