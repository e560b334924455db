#include "cli/child_process.h"

#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "aah/error.h"

namespace aah {
namespace {

volatile sig_atomic_t child_process = 0;

void PassOn(int signal) {
  if (child_process != 0) kill(child_process, signal);
}

// While it holds, SIGTERM and SIGHUP wait. They do while there is a handler but no child to pass
// them on to: none is lost.
class SignalHold {
 public:
  SignalHold() {
    sigemptyset(&held_);
    sigaddset(&held_, SIGTERM);
    sigaddset(&held_, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &held_, &before_);
  }
  ~SignalHold() { Release(); }
  SignalHold(const SignalHold&) = delete;
  SignalHold& operator=(const SignalHold&) = delete;

  void Hold() { pthread_sigmask(SIG_BLOCK, &held_, nullptr); }
  void Release() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  const sigset_t& before() const { return before_; }

 private:
  sigset_t held_ = {};
  sigset_t before_ = {};
};

// While it lives, SIGTERM and SIGHUP are passed on to the child and SIGINT is left to the child.
class ChildSignals {
 public:
  ChildSignals() {
    struct sigaction pass_on = {};
    pass_on.sa_handler = PassOn;
    pass_on.sa_flags = SA_RESTART;
    sigemptyset(&pass_on.sa_mask);
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGTERM, &pass_on, &terminate_before_);
    sigaction(SIGHUP, nullptr, &hangup_before_);
    if (hangup_before_.sa_handler != SIG_IGN) sigaction(SIGHUP, &pass_on, nullptr);
    sigaction(SIGINT, &ignore, &interrupt_before_);
  }
  ~ChildSignals() {
    sigaction(SIGTERM, &terminate_before_, nullptr);
    sigaction(SIGHUP, &hangup_before_, nullptr);
    sigaction(SIGINT, &interrupt_before_, nullptr);
  }
  ChildSignals(const ChildSignals&) = delete;
  ChildSignals& operator=(const ChildSignals&) = delete;

 private:
  struct sigaction terminate_before_ = {};
  struct sigaction hangup_before_ = {};
  struct sigaction interrupt_before_ = {};
};

// The wait status of the child. Signals are passed on to it until it has ended and never after it
// is reaped, when its number may be another process's.
int WaitForChild(pid_t child, SignalHold& hold, const std::string& command) {
  siginfo_t info = {};
  int failed = 0;
  do {
    failed = waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  } while (failed != 0 && errno == EINTR);
  hold.Hold();
  child_process = 0;
  int status = 0;
  if (failed == 0 && waitpid(child, &status, 0) == child) return status;
  ThrowError(ErrorKind::kMachine, "lost the process of `aah ", command,
             "`: ", std::strerror(errno));
}

}  // namespace

int RunThisProgram(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"aah"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  SignalHold hold;  // outlives the handlers: a signal that comes late finds those of before
  const ChildSignals signals;
  // The child gets the default handlers: an ignored signal would stay ignored in it, as SIGHUP is
  // to where it was ignored before.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGINT);
  sigaddset(&defaults, SIGTERM);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &hold.before());
  pid_t child = 0;
  const int error =
      posix_spawn(&child, "/proc/self/exe", nullptr, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    ThrowError(ErrorKind::kMachine, "cannot start a process for `aah ", arguments.front(),
               "`: ", std::strerror(error));
  }
  child_process = child;
  hold.Release();
  const int status = WaitForChild(child, hold, arguments.front());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace aah
