#ifndef AAH_INSTRUCTION_SET_H_
#define AAH_INSTRUCTION_SET_H_

#include <string>
#include <string_view>
#include <vector>

namespace aah {

// Names of the instruction sets that kernels were compiled for and this machine has, best first, as
// Highway calls them ("AVX3_ZEN4", "AVX3", "AVX2", "NEON", ...).
std::vector<std::string> SupportedInstructionSets();

// The one that kernels run on now.
std::string CurrentInstructionSet();

// Restricts kernels to one of SupportedInstructionSets(), for tests and benchmarks; an empty name
// lifts the restriction. Throws aah::Error for another name. Not while kernels run.
void RestrictInstructionSet(std::string_view name);

}  // namespace aah

#endif  // AAH_INSTRUCTION_SET_H_
