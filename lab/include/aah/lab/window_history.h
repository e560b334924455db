#ifndef AAH_LAB_WINDOW_HISTORY_H_
#define AAH_LAB_WINDOW_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "aah/lab/run_log.h"
#include "aah/model/run_folder.h"

namespace aah {

using HeadMap = std::vector<std::vector<int>>;  // [layers][heads]

// The windows of a run through its steps, kept as changes. Windows are in tokens, clamped to the
// context; before its first record a head sees the whole context.
class WindowHistory {
 public:
  // Throws aah::Error where the log speaks of a layer or head that the model does not have, of a
  // window below 1, or of steps that go back.
  explicit WindowHistory(const RunLog& log);

  // The windows in force at `step`.
  HeadMap At(int64_t step) const;
  HeadMap AtTheEnd() const;

  // Steps in which windows changed; those of a head's first record count. Ascending.
  std::vector<int64_t> ChangeSteps() const;

  // What changed in a step, heads counted over all layers: layer * heads + head.
  struct Change {
    size_t head;
    int window;
  };
  const std::map<int64_t, std::vector<Change>>& changes() const { return changes_; }

  // How often a head's window became another one; its first record is no change.
  const HeadMap& change_counts() const { return change_counts_; }
  // [layers]: in how many steps a controller decided; all 0 where nothing ever decided.
  const std::vector<int64_t>& decision_counts() const { return decision_counts_; }
  bool decided() const;

 private:
  size_t layers_;
  size_t heads_;
  int context_;
  std::map<int64_t, std::vector<Change>> changes_;
  HeadMap change_counts_;
  std::vector<int64_t> decision_counts_;
};

// The groups of a run's heads, whenever they were grouped. Borrows the log's records.
class GroupHistory {
 public:
  using Groups = std::vector<const GroupRecord*>;  // finest level first, in order within a level

  // Throws aah::Error where the log speaks of layers or heads that the model does not have, of a
  // parent that no group of the level above is, or not of nine features.
  explicit GroupHistory(const RunLog& log);

  // The newest grouping of a layer that is not after `step`; empty where there is none.
  Groups At(size_t layer, int64_t step) const;
  // Steps in which any layer was grouped. Ascending.
  std::vector<int64_t> Steps() const;

 private:
  std::vector<std::map<int64_t, Groups>> layers_;
};

}  // namespace aah

#endif  // AAH_LAB_WINDOW_HISTORY_H_
