#include "aah/model/run_folder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aah/error.h"

namespace aah {
namespace {

using OrderedJson = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::string_view kStepPrefix = "step-";

// Whether a line may lack a field: one that is optional, or that older runs did not write.
enum class Presence { kRequired, kOptional };
using enum Presence;

// The fields of each record by name, once for writing and for reading:
// `visit(name, field, presence)`.
template <typename Record, typename Visit>
  requires std::is_same_v<std::remove_const_t<Record>, StepRecord>
void VisitFields(Record& record, const Visit& visit) {
  visit("step", record.step, kRequired);
  visit("loss", record.loss, kRequired);
  visit("learning_rate", record.learning_rate, kRequired);
  visit("grad_norm", record.grad_norm, kRequired);
  visit("tokens", record.tokens, kRequired);
  visit("seconds", record.seconds, kRequired);
  visit("tokens_per_second", record.tokens_per_second, kRequired);
  visit("attention_share", record.attention_share, kRequired);
  visit("allocated_context_ratio", record.allocated_context_ratio, kRequired);
  visit("visible_pair_ratio", record.visible_pair_ratio, kRequired);
  visit("flops_per_token", record.flops_per_token, kOptional);
  visit("control", record.control, kOptional);
  visit("selection", record.selection, kOptional);
}

template <typename Record, typename Visit>
  requires std::is_same_v<std::remove_const_t<Record>, SelectionSummary>
void VisitFields(Record& record, const Visit& visit) {
  visit("phase", record.phase, kRequired);
  visit("temperature", record.temperature, kRequired);
  visit("target_cost", record.target_cost, kRequired);
  visit("expected_cost", record.expected_cost, kRequired);
  visit("multiplier", record.multiplier, kRequired);
  visit("hard_cost", record.hard_cost, kRequired);
  visit("entropy", record.entropy, kRequired);
  visit("decided", record.decided, kRequired);
  visit("moved", record.moved, kRequired);
  visit("duality_gap", record.duality_gap, kRequired);
}

template <typename Record, typename Visit>
  requires std::is_same_v<std::remove_const_t<Record>, ControlRecord>
void VisitFields(Record& record, const Visit& visit) {
  visit("path", record.path, kRequired);
  visit("features_seconds", record.features_seconds, kRequired);
  visit("grouping_seconds", record.grouping_seconds, kRequired);
  visit("decision_seconds", record.decision_seconds, kRequired);
  visit("groups_per_level", record.groups_per_level, kRequired);
}

template <typename Record, typename Visit>
  requires std::is_same_v<std::remove_const_t<Record>, ValidationRecord>
void VisitFields(Record& record, const Visit& visit) {
  visit("step", record.step, kRequired);
  visit("loss", record.loss, kRequired);
  visit("bits_per_byte", record.bits_per_byte, kRequired);
  visit("accuracy", record.accuracy, kOptional);
}

template <typename Record, typename Visit>
  requires std::is_same_v<std::remove_const_t<Record>, SummaryRecord>
void VisitFields(Record& record, const Visit& visit) {
  visit("step", record.step, kRequired);
  visit("validation_loss", record.validation_loss, kRequired);
  visit("bits_per_byte", record.bits_per_byte, kRequired);
  visit("allocated_context_ratio", record.allocated_context_ratio, kRequired);
  visit("visible_pair_ratio", record.visible_pair_ratio, kRequired);
  visit("flops_per_token", record.flops_per_token, kOptional);
  visit("tokens_per_second", record.tokens_per_second, kRequired);
  visit("attention_share", record.attention_share, kRequired);
  visit("control_share", record.control_share, kOptional);
  visit("peak_memory_bytes", record.peak_memory_bytes, kRequired);
  visit("parameters", record.parameters, kRequired);
  visit("seconds", record.seconds, kRequired);
}

template <typename Record, typename Visit>
  requires std::is_same_v<std::remove_const_t<Record>, WindowRecord>
void VisitFields(Record& record, const Visit& visit) {
  visit("step", record.step, kRequired);
  visit("layer", record.layer, kRequired);
  visit("head", record.head, kRequired);
  visit("window", record.window, kRequired);
}

template <typename Record, typename Visit>
  requires std::is_same_v<std::remove_const_t<Record>, HeadDecision>
void VisitFields(Record& record, const Visit& visit) {
  visit("groups", record.groups, kRequired);
  visit("raw_index", record.raw_index, kRequired);
  visit("index", record.index, kRequired);
}

template <typename Record, typename Visit>
  requires std::is_same_v<std::remove_const_t<Record>, GroupRecord>
void VisitFields(Record& record, const Visit& visit) {
  visit("step", record.step, kRequired);
  visit("layer", record.layer, kRequired);
  visit("level", record.level, kRequired);
  visit("group", record.group, kRequired);
  visit("parent", record.parent, kOptional);
  visit("heads", record.heads, kRequired);
  visit("raw_index", record.raw_index, kOptional);
  visit("index", record.index, kOptional);
  visit("window", record.window, kOptional);
  visit("features", record.features, kRequired);
}

template <typename Record, typename Visit>
  requires std::is_same_v<std::remove_const_t<Record>, SelectionRecord>
void VisitFields(Record& record, const Visit& visit) {
  visit("step", record.step, kRequired);
  visit("layer", record.layer, kRequired);
  visit("candidates", record.candidates, kRequired);
  visit("weights", record.weights, kRequired);
}

template <typename Field>
void WriteField(OrderedJson& json, const char* name, const Field& field) {
  json[name] = field;
}
void WriteField(OrderedJson& json, const char* name, const std::optional<int>& field) {
  if (field) json[name] = *field;
}

template <typename Part>
void WriteField(OrderedJson& json, const char* name, const std::optional<Part>& field);

template <typename Record>
void WriteFields(OrderedJson& json, const Record& record) {
  VisitFields(record, [&](const char* name, const auto& field, Presence) {
    WriteField(json, name, field);
  });
}
template <typename Part>
void WriteField(OrderedJson& json, const char* name, const std::optional<Part>& field) {
  if (field) WriteFields(json[name] = OrderedJson::object(), *field);
}

template <typename Record>
std::string Line(const Record& record, const char* kind) {
  OrderedJson line = OrderedJson::object();
  if (kind != nullptr) line["kind"] = kind;
  WriteFields(line, record);
  return line.dump();
}

template <typename Record>
Record FromJson(const OrderedJson& line);

template <typename Field>
void ReadField(const OrderedJson& json, Field& field) {
  json.get_to(field);
}
void ReadField(const OrderedJson& json, std::optional<int>& field) { field = json.get<int>(); }
template <typename Part>
void ReadField(const OrderedJson& json, std::optional<Part>& field) {
  field = FromJson<Part>(json);
}

template <typename Record>
Record FromJson(const OrderedJson& line) {
  Record record;
  VisitFields(record, [&](const char* name, auto& field, Presence presence) {
    if (presence == kOptional && !line.contains(name)) return;
    ReadField(line.at(name), field);
  });
  return record;
}

// Calls `take` for each whole line of a .jsonl file; a file that is missing has none.
void ForEachLine(const std::string& path, const std::function<void(const OrderedJson&)>& take) {
  std::ifstream file(path);
  std::string text;
  for (int64_t number = 1; std::getline(file, text); ++number) {
    if (file.eof()) break;  // no line break: the write was cut short
    try {
      take(OrderedJson::parse(text));
    } catch (const OrderedJson::exception&) {
      ThrowError(ErrorKind::kBadInput, path, ", line ", number,
                 ": expected a JSON record with the fields of its kind, got '", text.substr(0, 60),
                 "'; the file was changed by something else than a training run");
    }
  }
}

}  // namespace

double ControlShare(const std::vector<StepRecord>& steps) {
  double control = 0;
  double all = 0;
  for (const StepRecord& step : steps) {
    all += step.seconds;
    if (!step.control) continue;
    control += step.control->features_seconds + step.control->grouping_seconds +
               step.control->decision_seconds;
  }
  return control / all;
}

double TokensPerSecond(const std::vector<StepRecord>& steps) {
  double seconds = 0;
  for (const StepRecord& step : steps) seconds += step.seconds;
  return static_cast<double>(steps.back().tokens) / seconds;
}

std::string ConfigPath(const std::string& run_folder) { return run_folder + "/config.yaml"; }
std::string MetricsPath(const std::string& run_folder) { return run_folder + "/metrics.jsonl"; }
std::string WindowsPath(const std::string& run_folder) { return run_folder + "/windows.jsonl"; }
std::string GroupsPath(const std::string& run_folder) { return run_folder + "/groups.jsonl"; }
std::string SelectionPath(const std::string& run_folder) { return run_folder + "/selection.jsonl"; }
std::string PlanPath(const std::string& run_folder) { return run_folder + "/plan.json"; }
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
              [&](const OrderedJson& line) { finished |= line.at("kind") == "summary"; });
  return finished;
}

RunMetrics ReadMetrics(const std::string& run_folder) {
  RunMetrics metrics;
  ForEachLine(MetricsPath(run_folder), [&](const OrderedJson& line) {
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
  ForEachLine(WindowsPath(run_folder), [&](const OrderedJson& line) {
    records.push_back(FromJson<WindowRecord>(line));
    if (line.contains("groups")) records.back().decision = FromJson<HeadDecision>(line);
  });
  return records;
}

std::vector<GroupRecord> ReadGroups(const std::string& run_folder) {
  std::vector<GroupRecord> records;
  ForEachLine(GroupsPath(run_folder),
              [&](const OrderedJson& line) { records.push_back(FromJson<GroupRecord>(line)); });
  return records;
}

std::vector<SelectionRecord> ReadSelection(const std::string& run_folder) {
  std::vector<SelectionRecord> records;
  ForEachLine(SelectionPath(run_folder),
              [&](const OrderedJson& line) { records.push_back(FromJson<SelectionRecord>(line)); });
  return records;
}

std::string ToJsonLine(const StepRecord& record) { return Line(record, "train"); }
std::string ToJsonLine(const ValidationRecord& record) { return Line(record, "validation"); }
std::string ToJsonLine(const SummaryRecord& record) { return Line(record, "summary"); }
std::string ToJsonLine(const WindowRecord& record) {
  OrderedJson line = OrderedJson::object();
  WriteFields(line, record);
  if (record.decision) WriteFields(line, *record.decision);
  return line.dump();
}
std::string ToJsonLine(const GroupRecord& record) { return Line(record, nullptr); }
std::string ToJsonLine(const SelectionRecord& record) { return Line(record, nullptr); }

}  // namespace aah
