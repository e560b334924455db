#include "aah/instruction_set.h"

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "aah/error.h"
#include "attention/cpu/targets.h"  // before Highway's headers
#include "hwy/highway.h"

namespace aah {
namespace {

// What this machine could run if nothing were restricted: asked once, before any restriction.
int64_t MachineTargets() {
  static const int64_t targets = [] {
    hwy::SetSupportedTargetsForTest(0);
    return hwy::SupportedTargets() & HWY_TARGETS;
  }();
  return targets;
}

int64_t LowestBit(int64_t mask) { return mask & -mask; }

}  // namespace

std::vector<std::string> SupportedInstructionSets() {
  std::vector<std::string> names;
  // Highway numbers better targets lower.
  for (int64_t rest = MachineTargets(); rest != 0; rest &= rest - 1) {
    names.emplace_back(hwy::TargetName(LowestBit(rest)));
  }
  return names;
}

std::string CurrentInstructionSet() {
  MachineTargets();
  return hwy::TargetName(LowestBit(hwy::SupportedTargets() & HWY_TARGETS));
}

void RestrictInstructionSet(std::string_view name) {
  int64_t chosen = 0;
  std::ostringstream known;
  for (int64_t rest = MachineTargets(); rest != 0; rest &= rest - 1) {
    const std::string_view target = hwy::TargetName(LowestBit(rest));
    known << (known.tellp() > 0 ? ", " : "") << target;
    if (target == name) chosen = LowestBit(rest);
  }
  AAH_CHECK(name.empty() || chosen != 0, "unknown instruction set '", name, "': expected one of ",
            known.str(), ", or an empty name for the best");
  hwy::SetSupportedTargetsForTest(chosen);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace aah
