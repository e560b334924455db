#ifndef AAH_MODEL_RUN_FOLDER_H_
#define AAH_MODEL_RUN_FOLDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aah/model/selection_summary.h"

namespace aah {

// A run folder:
//   config.yaml       the resolved config (RunConfigYaml)
//   metrics.jsonl     one record a line: {"kind": "train" | "validation" | "summary", ...} with the
//                     fields below under their own names
//   windows.jsonl     WindowRecord: a line for every head of a layer whenever its controller
//                     decides, and a line for a head whenever its window changes otherwise
//   groups.jsonl      GroupRecord: a line for every group of every level whenever a controller
//                     groups heads; empty where no controller does
//   selection.jsonl   SelectionRecord: a line for every layer, some 64 times in a search for
//                     windows and whenever a plan is chosen after it; empty where none are learned
//   plan.json         the windows that were learned, of the newest checkpoint: a window plan file
//   events.out.tfevents.aah    loss, learning rate and validation loss for TensorBoard
//   checkpoints/step-N/        model.safetensors, optimizer.safetensors, state.json (checkpoint.h)
// "step" counts finished optimiser steps: a record of step N describes the model after N of them
// (loss, windows and speed of a train record: the step that led there).

// What the controllers of all layers did in a step; in JSON the object "control" of a train record.
struct ControlRecord {
  std::string path;             // full, shadow, update or cached; layers go together
  double features_seconds = 0;  // q, k and v summed, by-products gathered; all layers
  double grouping_seconds = 0;  // features, groups, hierarchy; all layers
  double decision_seconds = 0;  // scoring; all layers
  std::vector<std::vector<int32_t>> groups_per_level;  // [layers][levels], finest level first;
                                                       // empty in steps that group nothing
};

struct StepRecord {
  int64_t step = 0;
  double loss = 0;  // nats per token, mean over the step's batch
  double learning_rate = 0;
  double grad_norm = 0;  // before clipping
  int64_t tokens = 0;    // trained on so far
  double seconds = 0;    // of this step
  double tokens_per_second = 0;
  double attention_share = 0;  // of the step's time, in [0, 1]
  double allocated_context_ratio = 0;
  double visible_pair_ratio = 0;
  double flops_per_token = 0;                 // estimate, of a forward pass (ForwardFlopsPerToken)
  std::optional<ControlRecord> control = {};  // of runs whose windows controllers decide
  std::optional<SelectionSummary> selection = {};  // of runs that learn their windows
};

struct ValidationRecord {
  int64_t step = 0;
  double loss = 0;  // nats per token
  double bits_per_byte = 0;
  double accuracy = 0;  // share of the predictions that count whose greatest logit is the target's
};

struct SummaryRecord {
  int64_t step = 0;
  double validation_loss = 0;
  double bits_per_byte = 0;
  double allocated_context_ratio = 0;  // mean over steps
  double visible_pair_ratio = 0;       // mean over steps
  double flops_per_token = 0;          // mean over steps
  double tokens_per_second = 0;        // all tokens over the time of all steps
  double attention_share = 0;          // median over steps
  double control_share = 0;            // time of the controllers over that of all steps
  int64_t peak_memory_bytes = 0;       // most the process held resident (VmHWM)
  int64_t parameters = 0;
  double seconds = 0;  // of all steps
};

// A head's part in a decision: its groups and the indices into the candidate windows. The window
// that is executed may be another one, by the average over steps, a ramp or a shuffle.
struct HeadDecision {
  std::vector<int32_t> groups;  // group path: the head's group at each level, finest first
  int32_t raw_index = 0;        // of the largest logit of its finest group
  int32_t index = 0;            // never above the parent group's

  bool operator==(const HeadDecision&) const = default;
};

// In JSON {"step", "layer", "head", "window"}, of a decision also "groups", "raw_index", "index".
struct WindowRecord {
  int64_t step = 0;
  int layer = 0;
  int head = 0;
  int window = 0;                             // executed, in tokens
  std::optional<HeadDecision> decision = {};  // absent: the window changed without one
};

// One group of a controller's hierarchy, as it was when heads were grouped; the rows of a layer's
// tree, or its sibling table: siblings have the same parent. In JSON the fields under their own
// names, those that are absent left out.
struct GroupRecord {
  int64_t step = 0;
  int layer = 0;
  int level = 0;                      // 0: groups of heads
  int group = 0;                      // its number in the level
  std::optional<int> parent = {};     // number in the level above; absent at the top
  std::vector<int32_t> heads;         // all heads below it, ascending
  std::vector<double> features;       // the nine of FeatureNames() in aah/head_features.h
  std::optional<int> raw_index = {};  // of the largest logit; absent where nothing was decided
  std::optional<int> index = {};      // never above the parent's
  std::optional<int> window = {};     // candidate of that index, in tokens
};

// The selection weights of one layer. In JSON the fields under their own names.
struct SelectionRecord {
  int64_t step = 0;
  int layer = 0;
  std::vector<int32_t> candidates;           // windows, ascending
  std::vector<std::vector<double>> weights;  // [heads][candidates], rows sum to 1
};

struct RunMetrics {
  std::vector<StepRecord> steps;
  std::vector<ValidationRecord> validations;
  std::optional<SummaryRecord> summary;  // present once the run has finished
};

// Time of the controllers over that of all `steps`, at least one; 0 where nothing controls.
double ControlShare(const std::vector<StepRecord>& steps);

// Tokens over seconds of all steps together, not a typical step's: runs have phases that cost more.
// REQUIRES: at least one step, and all from the first.
double TokensPerSecond(const std::vector<StepRecord>& steps);

std::string ConfigPath(const std::string& run_folder);
std::string MetricsPath(const std::string& run_folder);
std::string WindowsPath(const std::string& run_folder);
std::string GroupsPath(const std::string& run_folder);
std::string SelectionPath(const std::string& run_folder);
std::string PlanPath(const std::string& run_folder);
std::string EventsPath(const std::string& run_folder);
std::string CheckpointPath(const std::string& run_folder, int64_t step);

// Steps of the whole checkpoints, ascending; empty where there are none.
std::vector<int64_t> CheckpointSteps(const std::string& run_folder);

// Whether the folder holds a run (a config.yaml).
bool IsRunFolder(const std::string& folder);

// Whether the run has written its summary.
bool IsFinished(const std::string& run_folder);

// A last line that was cut short (a run that was killed) is left out; any other malformed line
// throws aah::Error with file and line.
RunMetrics ReadMetrics(const std::string& run_folder);
std::vector<WindowRecord> ReadWindows(const std::string& run_folder);
std::vector<GroupRecord> ReadGroups(const std::string& run_folder);
std::vector<SelectionRecord> ReadSelection(const std::string& run_folder);

// One line of metrics.jsonl, windows.jsonl, groups.jsonl or selection.jsonl, without the line
// break.
std::string ToJsonLine(const StepRecord& record);
std::string ToJsonLine(const ValidationRecord& record);
std::string ToJsonLine(const SummaryRecord& record);
std::string ToJsonLine(const WindowRecord& record);
std::string ToJsonLine(const GroupRecord& record);
std::string ToJsonLine(const SelectionRecord& record);

}  // namespace aah

#endif  // AAH_MODEL_RUN_FOLDER_H_
