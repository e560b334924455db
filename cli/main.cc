#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "aah/error.h"
#include "cli/command.h"

namespace aah {
namespace {

constexpr int kMachineFailed = static_cast<int>(ErrorKind::kMachine);
constexpr int kBadInput = static_cast<int>(ErrorKind::kBadInput);

// One line, whatever the message holds; what it quotes from files and arguments cannot steer the
// terminal.
int Fail(int exit_code, std::string_view message) {
  std::string line(message);
  for (char& c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = ' ';
  }
  std::fprintf(stderr, "aah: %s\n", line.c_str());
  return exit_code;
}

// What was printed must have arrived: a reader of a file must not take half an output for a whole.
int Finish(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  return Fail(kMachineFailed, "standard output cannot be written; is the disk full?");
}

int Run(int argc, char** argv) {
  CLI::App app(
      "Trains Transformers whose attention heads have windows of their own, beside full attention.",
      "aah");
  app.set_version_flag("--version", "aah " AAH_VERSION);
  app.require_subcommand(1);
  app.footer("Example: aah data prepare kjv && aah suite recipes/demo.yaml");
  Command chosen;
  AddDataCommand(app, chosen);
  AddTrainCommand(app, chosen);
  AddEvalCommand(app, chosen);
  AddSuiteCommand(app, chosen);
  AddReportCommand(app, chosen);
  AddInspectCommand(app, chosen);
  AddPlanCommand(app, chosen);
  AddInfoCommand(app, chosen);
  AddBenchCommand(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return Fail(kBadInput, std::string(error.what()) +
                               " (aah --help lists the commands, aah "
                               "COMMAND --help their options)");
  }
  return chosen();
}

}  // namespace
}  // namespace aah

int main(int argc, char** argv) {
  try {
    return aah::Finish(aah::Run(argc, argv));
  } catch (const aah::Error& error) {
    return aah::Fail(static_cast<int>(error.kind()), error.what());
  } catch (const std::bad_alloc&) {
    return aah::Fail(aah::kMachineFailed,
                     "out of memory: a smaller micro_batch_size, context or model needs less");
  } catch (const std::exception& error) {
    // torch appends a backtrace to its own message.
    const std::string_view message = error.what();
    return aah::Fail(aah::kMachineFailed, message.substr(0, message.find('\n')));
  }
}
