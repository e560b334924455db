#ifndef AAH_CLI_STOP_SIGNAL_H_
#define AAH_CLI_STOP_SIGNAL_H_

#include <atomic>

namespace aah {

// Makes the first SIGINT or SIGTERM set the returned flag, so that work can save and end by itself;
// a second one ends the process at once.
const std::atomic<bool>& CatchStopSignals();

// 128 + the signal that set the flag, as shells report it.
int StopExitCode();

}  // namespace aah

#endif  // AAH_CLI_STOP_SIGNAL_H_
