#ifndef AAH_CLI_STOP_SIGNAL_H_
#define AAH_CLI_STOP_SIGNAL_H_

#include <atomic>

namespace aah {

// Makes the first SIGINT, SIGTERM or SIGHUP (a terminal that is closed, a connection that is lost)
// set the returned flag, so that work can save and end by itself; a SIGHUP that is ignored stays
// so, as under nohup. Another one ends the process at once, unless it comes within a second or two:
// then it is taken for an echo of the first, as where a signal reaches a process group and a parent
// passes it on as well.
const std::atomic<bool>& CatchStopSignals();

// 128 + the signal that set the flag, as shells report it.
int StopExitCode();

}  // namespace aah

#endif  // AAH_CLI_STOP_SIGNAL_H_
