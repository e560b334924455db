#include "cli/stop_signal.h"

#include <atomic>
#include <csignal>

namespace aah {
namespace {

std::atomic<bool> stop_requested = false;
std::atomic<int> stop_signal = 0;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void RequestStop(int signal) {
  stop_signal = signal;
  stop_requested = true;
}

}  // namespace

const std::atomic<bool>& CatchStopSignals() {
  struct sigaction action = {};
  action.sa_handler = RequestStop;
  // The default handler comes back with the first signal; system calls go on.
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return stop_requested;
}

int StopExitCode() { return 128 + stop_signal; }

}  // namespace aah
