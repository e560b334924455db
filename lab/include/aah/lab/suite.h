#ifndef AAH_LAB_SUITE_H_
#define AAH_LAB_SUITE_H_

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "aah/model/train_config.h"

namespace aah {

// Several runs that differ in a few settings, same seed and data, to be compared.
//
//   out: runs/demo            # each arm runs in runs/demo/NAME
//   base:                     # what all share: a recipe as `aah train` takes it
//     data: data/kjv
//     ...
//   arms:                     # the first one is what the others are compared with
//     - name: full
//       attention: {variant: full}
//     - ...
struct SuiteArm {
  std::string name;
  RunConfig config;
};

struct Suite {
  std::string name;  // the last component of `out`
  std::string out;
  std::vector<SuiteArm> arms;
};

// Reads a suite; `overrides` ("key.sub=value") apply to every arm, `out` replaces the suite's own
// unless empty. Throws aah::Error for whatever is wrong with the suite or any of its arms, before
// anything runs.
Suite ReadSuite(const std::string& path, std::span<const std::string> overrides,
                const std::string& out);

// Trains the run that a recipe file describes, in a process of its own, so that its peak memory is
// its own; returns that process's exit code.
using ArmRunner = std::function<int(const std::string& recipe)>;

// Called before an arm: its index, and whether it has already finished, so that it is not run.
using ArmAnnouncer = std::function<void(size_t arm, bool finished)>;

// Runs the arms in order. An arm that has finished with the same config is not run again; one that
// was interrupted goes on. Ends at the first arm whose process fails or is stopped, with its exit
// code; 0 where all have finished. Throws aah::Error where an arm's folder holds a run of another
// config.
int RunSuite(const Suite& suite, const ArmRunner& run, const ArmAnnouncer& announce);

// The arms' run folders, in order.
std::vector<std::string> RunFolders(const Suite& suite);

}  // namespace aah

#endif  // AAH_LAB_SUITE_H_
