#ifndef AAH_MODEL_RUN_FOLDER_H_
#define AAH_MODEL_RUN_FOLDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace aah {

// A run folder:
//   config.yaml       the resolved config (RunConfigYaml)
//   metrics.jsonl     one record a line: {"kind": "train" | "validation" | "summary", ...} with the
//                     fields below under their own names
//   windows.jsonl     {"step", "layer", "head", "window"}, written whenever a window changes
//   events.out.tfevents.aah    loss, learning rate and validation loss for TensorBoard
//   checkpoints/step-N/        model.safetensors, optimizer.safetensors, state.json (checkpoint.h)
// "step" counts finished optimiser steps: a record of step N describes the model after N of them
// (loss, windows and speed of a train record: the step that led there).

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
};

struct ValidationRecord {
  int64_t step = 0;
  double loss = 0;  // nats per token
  double bits_per_byte = 0;
};

struct SummaryRecord {
  int64_t step = 0;
  double validation_loss = 0;
  double bits_per_byte = 0;
  double allocated_context_ratio = 0;  // mean over steps
  double visible_pair_ratio = 0;       // mean over steps
  double tokens_per_second = 0;        // median over steps
  double attention_share = 0;          // median over steps
  int64_t peak_memory_bytes = 0;       // most the process held resident (VmHWM)
  int64_t parameters = 0;
  double seconds = 0;  // of all steps
};

struct WindowRecord {
  int64_t step = 0;
  int layer = 0;
  int head = 0;
  int window = 0;
};

struct RunMetrics {
  std::vector<StepRecord> steps;
  std::vector<ValidationRecord> validations;
  std::optional<SummaryRecord> summary;  // present once the run has finished
};

std::string ConfigPath(const std::string& run_folder);
std::string MetricsPath(const std::string& run_folder);
std::string WindowsPath(const std::string& run_folder);
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

// One line of metrics.jsonl or windows.jsonl, without the line break.
std::string ToJsonLine(const StepRecord& record);
std::string ToJsonLine(const ValidationRecord& record);
std::string ToJsonLine(const SummaryRecord& record);
std::string ToJsonLine(const WindowRecord& record);

}  // namespace aah

#endif  // AAH_MODEL_RUN_FOLDER_H_
