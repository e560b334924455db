#include "run_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "aah/error.h"

namespace aah {
namespace {

struct Pipe {
  std::array<int, 2> ends = {-1, -1};

  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
      ThrowError(ErrorKind::kMachine, "cannot make a pipe: ", std::strerror(errno));
    }
  }
  ~Pipe() {
    Close(0);
    Close(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void Close(int end) {
    if (ends[end] >= 0) close(ends[end]);
    ends[end] = -1;
  }
};

std::string ReadAll(int descriptor) {
  std::string text;
  std::array<char, 1 << 16> buffer;
  for (;;) {
    const ssize_t count = read(descriptor, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(count));
  }
}

}  // namespace

std::string RunProgram(const std::vector<std::string>& arguments, const std::string& remedy) {
  Pipe output;
  std::vector<std::string> copies = arguments;
  std::vector<char*> argv;
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output.ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  const int error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  AAH_CHECK(error == 0, "cannot run '", arguments[0], "' (", std::strerror(error), "); ", remedy);

  output.Close(1);
  std::string text = ReadAll(output.ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  AAH_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "'", arguments[0],
            "' failed with status ", WIFEXITED(status) ? WEXITSTATUS(status) : -1, "; ", remedy);
  return text;
}

}  // namespace aah
