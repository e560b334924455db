#include "train/control_records.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "aah/controller.h"

namespace aah {
namespace {

// The heads below each group of each level, ascending.
std::vector<Groups> HeadsBelow(const Hierarchy& hierarchy) {
  std::vector<Groups> heads;
  for (const HierarchyLevel& level : hierarchy.levels) {
    Groups below = level.groups;
    if (!heads.empty()) {
      for (std::vector<int32_t>& members : below) {
        std::vector<int32_t> all;
        for (const int32_t member : members) {
          const std::vector<int32_t>& group = heads.back()[static_cast<size_t>(member)];
          all.insert(all.end(), group.begin(), group.end());
        }
        members = std::move(all);
      }
    }
    for (std::vector<int32_t>& members : below) std::sort(members.begin(), members.end());
    heads.push_back(std::move(below));
  }
  return heads;
}

}  // namespace

double ForReading(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", number);
  return std::strtod(text, nullptr);
}

std::optional<ControlRecord> MakeControlRecord(const ControlView& control) {
  if (control.layers.empty()) return std::nullopt;
  ControlRecord record;
  record.path = ControlPathName(control.layers.front()->report().path);
  record.features_seconds = control.features_seconds;
  for (const Controller* layer : control.layers) {
    const ControlReport& report = layer->report();
    record.grouping_seconds += report.organise_seconds;
    record.decision_seconds += report.decide_seconds;
    if (control.grouped) record.groups_per_level.push_back(report.hierarchy.GroupsPerLevel());
  }
  return record;
}

std::vector<HeadDecision> HeadDecisions(const ControlView& control, size_t layer) {
  std::vector<HeadDecision> heads;
  if (control.layers.empty()) return heads;
  const Controller& controller = *control.layers[layer];
  const ControlReport& report = controller.report();
  // A fixed window is none of the candidates, it has no index.
  if (report.path != ControlPath::kUpdate) return heads;
  if (controller.regime().windows == WindowSource::kFixed) return heads;
  for (size_t head = 0; head < controller.state().decided_index.size(); ++head) {
    HeadDecision& decision = heads.emplace_back();
    decision.raw_index = decision.index = controller.state().decided_index[head];
    if (!control.grouped) continue;  // drawn, not scored
    decision.groups = report.hierarchy.Path(static_cast<int32_t>(head));
    decision.raw_index = report.decision.front().raw[static_cast<size_t>(decision.groups.front())];
  }
  return heads;
}

std::vector<GroupRecord> GroupRecords(const ControlView& control, size_t layer, int64_t step) {
  std::vector<GroupRecord> records;
  if (!control.grouped) return records;
  const Controller& controller = *control.layers[layer];
  const ControlReport& report = controller.report();
  const bool decided = report.path == ControlPath::kUpdate;
  const std::vector<Groups> heads = HeadsBelow(report.hierarchy);
  for (size_t level = 0; level < heads.size(); ++level) {
    const HierarchyLevel& groups = report.hierarchy.levels[level];
    for (size_t group = 0; group < heads[level].size(); ++group) {
      GroupRecord& record = records.emplace_back();
      record.step = step;
      record.layer = static_cast<int>(layer);
      record.level = static_cast<int>(level);
      record.group = static_cast<int>(group);
      if (!groups.parent.empty()) record.parent = groups.parent[group];
      record.heads = heads[level][group];
      for (const float feature : groups.features[group]) {
        record.features.push_back(ForReading(static_cast<double>(feature)));
      }
      if (!decided) continue;
      record.raw_index = report.decision[level].raw[group];
      record.index = report.decision[level].index[group];
      record.window = controller.CandidateWindow(*record.index);
    }
  }
  return records;
}

}  // namespace aah
