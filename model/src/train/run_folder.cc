#include "aah/model/run_folder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "aah/error.h"

namespace aah {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::string_view kStepPrefix = "step-";

// The fields of each record by name, once for writing and for reading: `visit(name, field)`.
template <typename Record, typename Visit>
  requires std::is_same_v<std::remove_const_t<Record>, StepRecord>
void VisitFields(Record& record, const Visit& visit) {
  visit("step", record.step);
  visit("loss", record.loss);
  visit("learning_rate", record.learning_rate);
  visit("grad_norm", record.grad_norm);
  visit("tokens", record.tokens);
  visit("seconds", record.seconds);
  visit("tokens_per_second", record.tokens_per_second);
  visit("attention_share", record.attention_share);
  visit("allocated_context_ratio", record.allocated_context_ratio);
  visit("visible_pair_ratio", record.visible_pair_ratio);
}

template <typename Record, typename Visit>
  requires std::is_same_v<std::remove_const_t<Record>, ValidationRecord>
void VisitFields(Record& record, const Visit& visit) {
  visit("step", record.step);
  visit("loss", record.loss);
  visit("bits_per_byte", record.bits_per_byte);
}

template <typename Record, typename Visit>
  requires std::is_same_v<std::remove_const_t<Record>, SummaryRecord>
void VisitFields(Record& record, const Visit& visit) {
  visit("step", record.step);
  visit("validation_loss", record.validation_loss);
  visit("bits_per_byte", record.bits_per_byte);
  visit("allocated_context_ratio", record.allocated_context_ratio);
  visit("visible_pair_ratio", record.visible_pair_ratio);
  visit("tokens_per_second", record.tokens_per_second);
  visit("attention_share", record.attention_share);
  visit("peak_memory_bytes", record.peak_memory_bytes);
  visit("parameters", record.parameters);
  visit("seconds", record.seconds);
}

template <typename Record, typename Visit>
  requires std::is_same_v<std::remove_const_t<Record>, WindowRecord>
void VisitFields(Record& record, const Visit& visit) {
  visit("step", record.step);
  visit("layer", record.layer);
  visit("head", record.head);
  visit("window", record.window);
}

template <typename Record>
std::string Line(const Record& record, const char* kind) {
  Json line = Json::object();
  if (kind != nullptr) line["kind"] = kind;
  VisitFields(record, [&](const char* name, const auto& field) { line[name] = field; });
  return line.dump();
}

template <typename Record>
Record FromJson(const Json& line) {
  Record record;
  VisitFields(record, [&](const char* name, auto& field) { line.at(name).get_to(field); });
  return record;
}

// Calls `take` for each whole line of a .jsonl file; a file that is missing has none.
void ForEachLine(const std::string& path, const std::function<void(const Json&)>& take) {
  std::ifstream file(path);
  std::string text;
  for (int64_t number = 1; std::getline(file, text); ++number) {
    if (file.eof()) break;  // no line break: the write was cut short
    try {
      take(Json::parse(text));
    } catch (const Json::exception&) {
      ThrowError(ErrorKind::kBadInput, path, ", line ", number,
                 ": expected a JSON record with the fields of its kind, got '", text.substr(0, 60),
                 "'; the file was changed by something else than a training run");
    }
  }
}

}  // namespace

std::string ConfigPath(const std::string& run_folder) { return run_folder + "/config.yaml"; }
std::string MetricsPath(const std::string& run_folder) { return run_folder + "/metrics.jsonl"; }
std::string WindowsPath(const std::string& run_folder) { return run_folder + "/windows.jsonl"; }
std::string EventsPath(const std::string& run_folder) {
  return run_folder + "/events.out.tfevents.aah";
}
std::string CheckpointPath(const std::string& run_folder, int64_t step) {
  return run_folder + "/checkpoints/" + std::string(kStepPrefix) + std::to_string(step);
}

std::vector<int64_t> CheckpointSteps(const std::string& run_folder) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run_folder + "/checkpoints", error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kStepPrefix)) continue;
    const char* begin = name.data() + kStepPrefix.size();
    const char* end = name.data() + name.size();
    int64_t step = 0;
    const auto [stop, code] = std::from_chars(begin, end, step);
    if (code == std::errc() && stop == end && step >= 0) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

bool IsRunFolder(const std::string& folder) {
  std::error_code error;
  return fs::is_regular_file(ConfigPath(folder), error);
}

bool IsFinished(const std::string& run_folder) {
  bool finished = false;
  ForEachLine(MetricsPath(run_folder),
              [&](const Json& line) { finished |= line.at("kind") == "summary"; });
  return finished;
}

RunMetrics ReadMetrics(const std::string& run_folder) {
  RunMetrics metrics;
  ForEachLine(MetricsPath(run_folder), [&](const Json& line) {
    const std::string kind = line.at("kind");
    if (kind == "train") {
      metrics.steps.push_back(FromJson<StepRecord>(line));
    } else if (kind == "validation") {
      metrics.validations.push_back(FromJson<ValidationRecord>(line));
    } else if (kind == "summary") {
      metrics.summary = FromJson<SummaryRecord>(line);
    }
  });
  return metrics;
}

std::vector<WindowRecord> ReadWindows(const std::string& run_folder) {
  std::vector<WindowRecord> records;
  ForEachLine(WindowsPath(run_folder),
              [&](const Json& line) { records.push_back(FromJson<WindowRecord>(line)); });
  return records;
}

std::string ToJsonLine(const StepRecord& record) { return Line(record, "train"); }
std::string ToJsonLine(const ValidationRecord& record) { return Line(record, "validation"); }
std::string ToJsonLine(const SummaryRecord& record) { return Line(record, "summary"); }
std::string ToJsonLine(const WindowRecord& record) { return Line(record, nullptr); }

}  // namespace aah
