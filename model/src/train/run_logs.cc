#include "train/run_logs.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "aah/error.h"
#include "train/control_records.h"
#include "train/tensorboard.h"

namespace aah {
namespace {

namespace fs = std::filesystem;

double WallTime() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

int64_t FileSize(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

void Resize(const std::string& path, int64_t size) {
  if (FileSize(path) == size) return;
  std::error_code error;
  fs::resize_file(path, static_cast<uintmax_t>(size), error);
  AAH_CHECK(!error, path, ": cannot be cut back to ", size, " bytes: ", error.message());
}

// Returns `path`, cut back to `size` bytes.
std::string CutBack(const std::string& path, int64_t size) {
  AAH_CHECK(FileSize(path) >= size, path, ": expected at least the ", size,
            " bytes that the checkpoint counts, got ", FileSize(path),
            "; the log was changed, begin a new run in another folder");
  Resize(path, size);
  return path;
}

}  // namespace

RunLogs::RunLogs(const std::string& run_folder, const LogSizes& sizes)
    : metrics_(CutBack(MetricsPath(run_folder), sizes.metrics)),
      windows_(CutBack(WindowsPath(run_folder), sizes.windows)),
      groups_(CutBack(GroupsPath(run_folder), sizes.groups)),
      selection_(CutBack(SelectionPath(run_folder), sizes.selection)),
      events_path_(EventsPath(run_folder)) {
  for (const WindowRecord& record : ReadWindows(run_folder)) {
    AAH_CHECK(
        record.layer >= 0 && record.layer < 1 << 16 && record.head >= 0 && record.head < 1 << 16,
        WindowsPath(run_folder), ": layer ", record.layer, ", head ", record.head,
        " is out of range; the log was changed, begin a new run in another folder");
    const auto layer = static_cast<size_t>(record.layer);
    const auto head = static_cast<size_t>(record.head);
    if (last_windows_.size() <= layer) last_windows_.resize(layer + 1);
    if (last_windows_[layer].size() <= head) last_windows_[layer].resize(head + 1);
    last_windows_[layer][head] = record.window;
  }
  // Only for viewing, and not flushed to the disk with the others: what is missing after a power
  // failure stays missing.
  const int64_t events = std::min(FileSize(events_path_), sizes.events);
  Resize(events_path_, events);
  events_.open(events_path_, std::ios::binary | std::ios::app);
  if (events == 0) AppendEvent(TensorBoardHeader(WallTime()));
}

void RunLogs::AppendEvent(const std::string& bytes) {
  events_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  events_.flush();
  if (!events_)
    ThrowError(ErrorKind::kMachine, events_path_, ": cannot be written; is the disk full?");
}

void RunLogs::AppendScalar(int64_t step, const char* tag, double value) {
  AppendEvent(TensorBoardScalar(WallTime(), step, tag, static_cast<float>(value)));
}

void RunLogs::Append(const StepRecord& record) {
  metrics_.Append(ToJsonLine(record));
  AppendScalar(record.step, "loss/train", record.loss);
  AppendScalar(record.step, "learning_rate", record.learning_rate);
  AppendScalar(record.step, "allocated_context_ratio", record.allocated_context_ratio);
  AppendScalar(record.step, "visible_pair_ratio", record.visible_pair_ratio);
  if (!record.selection) return;
  AppendScalar(record.step, "selection/expected_cost", record.selection->expected_cost);
  AppendScalar(record.step, "selection/hard_cost", record.selection->hard_cost);
  AppendScalar(record.step, "selection/entropy", record.selection->entropy);
}

void RunLogs::Append(const ValidationRecord& record) {
  metrics_.Append(ToJsonLine(record));
  AppendScalar(record.step, "loss/validation", record.loss);
}

void RunLogs::Append(const SummaryRecord& record) {
  metrics_.Append(ToJsonLine(record));
  metrics_.Sync();
}

void RunLogs::AppendWindows(int64_t step, const std::vector<std::vector<int32_t>>& windows,
                            const ControlView& control) {
  for (size_t layer = 0; layer < windows.size(); ++layer) {
    const std::vector<HeadDecision> decisions = HeadDecisions(control, layer);
    for (size_t head = 0; head < windows[layer].size(); ++head) {
      WindowRecord record = {.step = step,
                             .layer = static_cast<int>(layer),
                             .head = static_cast<int>(head),
                             .window = windows[layer][head],
                             .decision = {}};
      const bool known = layer < last_windows_.size() && head < last_windows_[layer].size();
      if (!decisions.empty()) {
        record.decision = decisions[head];
      } else if (known && last_windows_[layer][head] == record.window) {
        continue;
      }
      windows_.Append(ToJsonLine(record));
    }
    for (const GroupRecord& record : GroupRecords(control, layer, step)) {
      groups_.Append(ToJsonLine(record));
    }
  }
  last_windows_ = windows;
}

void RunLogs::AppendSelection(int64_t step, int64_t layers, const SelectionView& selection) {
  if (!selection.weights.defined()) return;
  const at::Tensor weights = selection.weights.contiguous();
  const double* next = weights.const_data_ptr<double>();
  const int64_t heads = weights.size(0) / layers;
  for (int64_t layer = 0; layer < layers; ++layer) {
    SelectionRecord record = {.step = step,
                              .layer = static_cast<int>(layer),
                              .candidates = selection.candidates,
                              .weights = {}};
    for (int64_t head = 0; head < heads; ++head) {
      std::vector<double>& row = record.weights.emplace_back();
      for (int64_t n = 0; n < weights.size(1); ++n) row.push_back(ForReading(*next++));
    }
    selection_.Append(ToJsonLine(record));
  }
}

LogSizes RunLogs::Sync() {
  metrics_.Sync();
  windows_.Sync();
  groups_.Sync();
  selection_.Sync();
  return {.metrics = metrics_.size(),
          .windows = windows_.size(),
          .groups = groups_.size(),
          .selection = selection_.size(),
          .events = FileSize(events_path_)};
}

}  // namespace aah
