#ifndef AAH_CLI_CHILD_PROCESS_H_
#define AAH_CLI_CHILD_PROCESS_H_

#include <string>
#include <vector>

namespace aah {

// Runs this very program with other arguments, in a process of its own that shares the terminal,
// and waits for it. SIGINT, SIGTERM and SIGHUP that reach this process meanwhile are the child's to
// obey: SIGTERM and SIGHUP are passed on (a terminal's Ctrl-C reaches both anyway), a SIGHUP that
// is ignored stays so in both. Returns the child's exit code, 128 + the signal that ended it;
// throws aah::Error(kMachine) where no process can be started. One at a time.
int RunThisProgram(const std::vector<std::string>& arguments);

}  // namespace aah

#endif  // AAH_CLI_CHILD_PROCESS_H_
