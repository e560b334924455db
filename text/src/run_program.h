#ifndef AAH_TEXT_SRC_RUN_PROGRAM_H_
#define AAH_TEXT_SRC_RUN_PROGRAM_H_

#include <string>
#include <vector>

namespace aah {

// Runs a program found on PATH, without a shell, and returns what it printed. Its error output goes
// nowhere. Throws aah::Error(kBadInput) with `remedy` behind what happened, where it cannot be
// started or does not exit with 0.
std::string RunProgram(const std::vector<std::string>& arguments, const std::string& remedy);

}  // namespace aah

#endif  // AAH_TEXT_SRC_RUN_PROGRAM_H_
