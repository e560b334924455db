#include "aah/lab/window_history.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "aah/error.h"
#include "aah/head_features.h"
#include "aah/lab/run_log.h"
#include "aah/model/run_folder.h"

namespace aah {
namespace {

void CheckGroup(const GroupRecord& group, size_t layers, size_t heads, const std::string& path) {
  AAH_CHECK(group.layer >= 0 && static_cast<size_t>(group.layer) < layers, path, ": layer ",
            group.layer, " where the model has ", layers, " layers");
  AAH_CHECK(group.level >= 0 && group.group >= 0, path, ": group ", group.group, " of level ",
            group.level, ": expected numbers of at least 0");
  AAH_CHECK(!group.heads.empty(), path, ": a group without heads, in step ", group.step);
  for (const int32_t head : group.heads) {
    AAH_CHECK(head >= 0 && static_cast<size_t>(head) < heads, path, ": head ", head,
              " where the model has ", heads, " heads");
  }
  AAH_CHECK(group.features.size() == kFeatureCount, path, ": a group of ", group.features.size(),
            " features where ", kFeatureCount, " were expected");
}

void CheckParents(const GroupHistory::Groups& groups, const std::string& path) {
  std::set<std::tuple<int, int>> known;
  for (const GroupRecord* group : groups) {
    AAH_CHECK(known.emplace(group->level, group->group).second, path, ": group ", group->group,
              " of level ", group->level, " is there twice in step ", group->step);
  }
  for (const GroupRecord* group : groups) {
    AAH_CHECK(!group->parent || known.contains({group->level + 1, *group->parent}), path,
              ": the parent of group ", group->group, " of level ", group->level, " in step ",
              group->step, " is not there");
  }
}

}  // namespace

WindowHistory::WindowHistory(const RunLog& log)
    : layers_(static_cast<size_t>(log.config.model.layers)),
      heads_(static_cast<size_t>(log.config.model.heads)),
      context_(static_cast<int>(log.config.model.context)),
      change_counts_(layers_, std::vector<int>(heads_, 0)),
      decision_counts_(layers_, 0) {
  const std::string path = WindowsPath(log.folder);
  HeadMap window(layers_, std::vector<int>(heads_, 0));  // 0: not known yet
  std::vector<int64_t> last_decision(layers_, std::numeric_limits<int64_t>::min());
  int64_t step = std::numeric_limits<int64_t>::min();
  for (const WindowRecord& record : log.windows) {
    const auto layer = static_cast<size_t>(record.layer);
    const auto head = static_cast<size_t>(record.head);
    AAH_CHECK(record.layer >= 0 && layer < layers_ && record.head >= 0 && head < heads_, path,
              ": layer ", record.layer, ", head ", record.head, " where the model has ", layers_,
              " layers of ", heads_, " heads");
    AAH_CHECK(record.window >= 1, path, ": a window of ", record.window, " in step ", record.step,
              ": expected at least 1");
    AAH_CHECK(record.step >= step, path, ": step ", record.step, " after step ", step,
              ": expected steps in order");
    step = record.step;
    if (record.decision && last_decision[layer] != step) {
      last_decision[layer] = step;
      ++decision_counts_[layer];
    }
    const int now = std::min(record.window, context_);
    int& before = window[layer][head];
    if (now == before) continue;
    if (before != 0) ++change_counts_[layer][head];
    before = now;
    changes_[step].push_back({layer * heads_ + head, now});
  }
}

HeadMap WindowHistory::At(int64_t step) const {
  HeadMap windows(layers_, std::vector<int>(heads_, context_));
  for (auto it = changes_.begin(); it != changes_.upper_bound(step); ++it) {
    for (const Change& change : it->second) {
      windows[change.head / heads_][change.head % heads_] = change.window;
    }
  }
  return windows;
}

HeadMap WindowHistory::AtTheEnd() const { return At(std::numeric_limits<int64_t>::max()); }

std::vector<int64_t> WindowHistory::ChangeSteps() const {
  std::vector<int64_t> steps;
  for (const auto& [step, unused] : changes_) steps.push_back(step);
  return steps;
}

bool WindowHistory::decided() const {
  return std::any_of(decision_counts_.begin(), decision_counts_.end(),
                     [](int64_t count) { return count > 0; });
}

GroupHistory::GroupHistory(const RunLog& log)
    : layers_(static_cast<size_t>(log.config.model.layers)) {
  const std::string path = GroupsPath(log.folder);
  const auto heads = static_cast<size_t>(log.config.model.heads);
  for (const GroupRecord& group : log.groups) {
    CheckGroup(group, layers_.size(), heads, path);
    layers_[static_cast<size_t>(group.layer)][group.step].push_back(&group);
  }
  for (auto& layer : layers_) {
    for (auto& [step, groups] : layer) {
      CheckParents(groups, path);
      std::sort(groups.begin(), groups.end(), [](const GroupRecord* a, const GroupRecord* b) {
        return std::tie(a->level, a->group) < std::tie(b->level, b->group);
      });
    }
  }
}

GroupHistory::Groups GroupHistory::At(size_t layer, int64_t step) const {
  const auto after = layers_.at(layer).upper_bound(step);
  if (after == layers_[layer].begin()) return {};
  return std::prev(after)->second;
}

std::vector<int64_t> GroupHistory::Steps() const {
  std::set<int64_t> steps;
  for (const auto& layer : layers_) {
    for (const auto& [step, unused] : layer) steps.insert(step);
  }
  return {steps.begin(), steps.end()};
}

}  // namespace aah
