#include "tests/cli/run_support.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aah/lab/run_log.h"
#include "aah/model/run_folder.h"
#include "aah/model/train_config.h"

namespace aah {

ScratchFolder::ScratchFolder() {
  path_ = (std::filesystem::temp_directory_path() / "aah_test_XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) ThrowError(ErrorKind::kMachine, "no folder ", path_);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

RunConfig SmallConfig(const std::string& out) {
  RunConfig config;
  config.out = out;
  config.data = "data/none";
  config.model.layers = 2;
  config.model.heads = 2;
  config.model.width = 16;
  config.model.context = 64;
  config.training.steps = 4;
  config.training.batch_size = 1;
  config.optimizer.warmup_steps = 0;
  return config;
}

void AppendText(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app) << text;
}

void WriteRun(const RunConfig& config, int steps, bool finished) {
  std::filesystem::create_directories(config.out);
  AppendText(ConfigPath(config.out), RunConfigYaml(config));
  for (int step = 1; step <= steps; ++step) {
    StepRecord record;
    record.step = step;
    record.loss = 3.5 - 0.5 * step;
    record.tokens = 1000 * step;
    record.seconds = 1;
    record.tokens_per_second = 1000;
    record.attention_share = 0.25;
    record.allocated_context_ratio = 0.5;
    record.visible_pair_ratio = 0.75;
    record.flops_per_token = 2e6;
    if (step % 2 == 0) {
      record.control.emplace();
      record.control->path = "full";
      record.control->features_seconds = 0.5;
    }
    AppendText(MetricsPath(config.out), ToJsonLine(record) + "\n");
  }
  AppendText(MetricsPath(config.out), ToJsonLine(ValidationRecord{steps, 1.5, 2.25}) + "\n");
  if (!finished) return;
  SummaryRecord summary;
  summary.step = steps;
  summary.validation_loss = 1.25;
  summary.bits_per_byte = 1.8;
  summary.allocated_context_ratio = 0.5;
  summary.visible_pair_ratio = 0.75;
  summary.tokens_per_second = 2000;
  summary.attention_share = 0.125;
  summary.flops_per_token = 3e6;
  summary.control_share = 0.0625;
  summary.peak_memory_bytes = int64_t{300} << 20;
  summary.parameters = 12345;
  summary.seconds = 4;
  AppendText(MetricsPath(config.out), ToJsonLine(summary) + "\n");
}

WindowRecord Window(int64_t step, int layer, int head, int window) {
  return {.step = step, .layer = layer, .head = head, .window = window, .decision = {}};
}

WindowRecord DecidedWindow(int64_t step, int layer, int head, int window) {
  WindowRecord record = Window(step, layer, head, window);
  record.decision = HeadDecision{.groups = {0}, .raw_index = 0, .index = 0};
  return record;
}

GroupRecord Group(int64_t step, int layer, int level, int group, std::optional<int> parent,
                  std::vector<int32_t> heads) {
  GroupRecord record;
  record.step = step;
  record.layer = layer;
  record.level = level;
  record.group = group;
  record.parent = parent;
  record.heads = std::move(heads);
  for (int i = 0; i < 9; ++i) record.features.push_back(0.5 + i);
  record.raw_index = 1;
  record.index = 1;
  record.window = 16;
  return record;
}

RunLog LearnedLog() {
  RunLog log;
  log.name = "learned";
  log.folder = "runs/learned";
  log.config = SmallConfig(log.folder);
  log.config.training.steps = 8;
  log.config.attention.variant = "learned";
  log.config.attention.learned.budget = 0.25;
  for (int step = 1; step <= 8; ++step) {
    StepRecord record;
    record.step = step;
    record.seconds = 0.1;
    record.attention_share = 0.25;
    record.selection = SelectionSummary{.phase = step <= 2   ? "warmup"
                                                 : step <= 4 ? "search"
                                                             : "plan",
                                        .temperature = 1 - 0.1 * step,
                                        .target_cost = step <= 2 ? 1 : 0.25,
                                        .expected_cost = 0.5 - 0.01 * step,
                                        .hard_cost = 0.125,
                                        .entropy = 1 - 0.125 * step,
                                        .decided = step == 5 || step == 7,
                                        .moved = step == 7 ? 1 : 0,
                                        .duality_gap = step >= 5 ? 0.0625 : 0};
    log.metrics.steps.push_back(record);
  }
  for (const int step : {3, 4, 5, 7}) {
    const double most = 0.1 * step;
    for (int layer = 0; layer < 2; ++layer) {
      log.selection.push_back({.step = step,
                               .layer = layer,
                               .candidates = {16, 32, 64},
                               .weights = {{most, 0.9 - most, 0.1}, {0.25, 0.125, 0.625}}});
    }
  }
  log.windows = {Window(1, 0, 0, 64), Window(1, 0, 1, 64), Window(1, 1, 0, 64),
                 Window(1, 1, 1, 64), Window(5, 0, 0, 16), Window(5, 0, 1, 32),
                 Window(5, 1, 0, 16), Window(5, 1, 1, 32), Window(7, 0, 1, 16)};
  return log;
}

}  // namespace aah
