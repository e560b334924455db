#include "cli/child_process.h"

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
    child_process = 0;
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

}  // namespace

int RunThisProgram(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"aah"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);

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
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  const int error =
      posix_spawn(&child, "/proc/self/exe", nullptr, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    ThrowError(ErrorKind::kMachine, "cannot start a process for `aah ", arguments.front(),
               "`: ", std::strerror(error));
  }
  child_process = child;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      ThrowError(ErrorKind::kMachine, "lost the process of `aah ", arguments.front(),
                 "`: ", std::strerror(errno));
    }
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace aah
