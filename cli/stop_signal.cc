#include "cli/stop_signal.h"

#include <atomic>
#include <csignal>
#include <ctime>

namespace aah {
namespace {

std::atomic<bool> stop_requested = false;
std::atomic<int> stop_signal = 0;
std::atomic<time_t> stop_second = 0;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
              std::atomic<time_t>::is_always_lock_free);

time_t Now() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

void RequestStop(int signal) {
  if (!stop_requested) {
    stop_signal = signal;
    stop_second = Now();
    stop_requested = true;
  } else if (Now() - stop_second >= 2) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

const std::atomic<bool>& CatchStopSignals() {
  struct sigaction action = {};
  action.sa_handler = RequestStop;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
  return stop_requested;
}

int StopExitCode() { return 128 + stop_signal; }

}  // namespace aah
