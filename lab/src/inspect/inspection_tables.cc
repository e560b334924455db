#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "aah/head_features.h"
#include "aah/io/file.h"
#include "aah/lab/inspect.h"
#include "aah/lab/run_log.h"
#include "aah/lab/window_history.h"
#include "aah/model/run_folder.h"

namespace aah {
namespace {

// A list inside one cell.
std::string Joined(std::span<const int32_t> numbers) {
  std::string text;
  for (const int32_t number : numbers) text += (text.empty() ? "" : " ") + std::to_string(number);
  return text;
}

std::string OrEmpty(const std::optional<int>& number) {
  return number ? std::to_string(*number) : "";
}

std::string WindowRow(const WindowRecord& record) {
  std::string row = std::to_string(record.step) + "," + std::to_string(record.layer) + "," +
                    std::to_string(record.head) + "," + std::to_string(record.window);
  if (!record.decision) return row + ",,,\n";
  return row + "," + Joined(record.decision->groups) + "," +
         std::to_string(record.decision->raw_index) + "," + std::to_string(record.decision->index) +
         "\n";
}

std::string GroupRow(const GroupRecord& group) {
  std::string row = std::to_string(group.step) + "," + std::to_string(group.layer) + "," +
                    std::to_string(group.level) + "," + std::to_string(group.group) + "," +
                    OrEmpty(group.parent) + "," + Joined(group.heads) + "," +
                    OrEmpty(group.raw_index) + "," + OrEmpty(group.index) + "," +
                    OrEmpty(group.window);
  for (const double feature : group.features) {
    std::array<char, 32> number;
    std::snprintf(number.data(), number.size(), ",%.9g", feature);
    row += number.data();
  }
  return row + "\n";
}

// What was in force at `step`: the newest record of every head up to then.
std::vector<WindowRecord> WindowsInForce(const RunLog& log, int64_t step) {
  std::map<std::pair<int, int>, WindowRecord> newest;
  for (const WindowRecord& record : log.windows) {
    if (record.step <= step) newest[{record.layer, record.head}] = record;
  }
  std::vector<WindowRecord> records;
  for (auto& [unused, record] : newest) records.push_back(std::move(record));
  return records;
}

}  // namespace

std::vector<std::string> WriteInspectionTables(const RunLog& log, std::optional<int64_t> step,
                                               const std::string& folder) {
  const Inspection inspection = Inspect(log, step);  // checks the step and the log
  std::string windows = "step,layer,head,window,groups,raw_index,index\n";
  for (const WindowRecord& record : step ? WindowsInForce(log, inspection.step) : log.windows) {
    windows += WindowRow(record);
  }
  std::string siblings = "step,layer,level,group,parent,heads,raw_index,index,window";
  for (const char* name : FeatureNames()) siblings += std::string(",") + name;
  siblings += "\n";
  if (step) {
    for (const std::vector<GroupRecord>& layer : inspection.groups) {
      for (const GroupRecord& group : layer) siblings += GroupRow(group);
    }
  } else {
    for (const GroupRecord& group : log.groups) siblings += GroupRow(group);
  }
  CreateFolder(folder);
  std::vector<std::string> paths = {folder + "/windows.csv", folder + "/siblings.csv"};
  WriteFileAtomically(paths[0], windows);
  WriteFileAtomically(paths[1], siblings);
  return paths;
}

}  // namespace aah
