#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "aah/error.h"
#include "aah/lab/plain_text.h"
#include "cli/command.h"

namespace aah {
namespace {

constexpr int kMachineFailed = static_cast<int>(ErrorKind::kMachine);
constexpr int kBadInput = static_cast<int>(ErrorKind::kBadInput);

// One line, whatever the message quotes from files and arguments.
int Fail(int exit_code, std::string_view message) {
  std::fprintf(stderr, "aah: %s\n", PlainText(message).c_str());
  return exit_code;
}

// What was printed must have arrived: a reader of a file must not take half an output for a whole.
int Finish(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  return Fail(kMachineFailed, "standard output cannot be written; is the disk full?");
}

// The option `name` of the subcommand that the arguments chose, or of one below it.
const CLI::Option* FindOption(const CLI::App& app, const std::string& name) {
  for (const CLI::App* chosen : app.get_subcommands()) {
    if (const CLI::Option* option = FindOption(*chosen, name)) return option;
  }
  return app.get_option_no_throw(name);
}

// What CLI11 calls an option's type, in words.
std::string KindOf(std::string_view type) {
  if (type.starts_with("INT")) return "a whole number";
  if (type.starts_with("UINT")) return "a whole number from 0 on";
  return type.starts_with("FLOAT") ? "a number" : "another kind of value";
}

bool IsWholeNumber(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// In the form of our own messages, where CLI11 says no more than "Could not convert: NAME = VALUE".
std::string WithoutConversion(const CLI::App& app, const std::string& message) {
  constexpr std::string_view kBegin = "Could not convert: ";
  constexpr std::string_view kEquals = " = ";
  const size_t equals = message.find(kEquals);
  if (!message.starts_with(kBegin) || equals == std::string::npos) return message;
  const std::string name = message.substr(kBegin.size(), equals - kBegin.size());
  const std::string value = message.substr(equals + kEquals.size());
  const CLI::Option* option = FindOption(app, name);
  const std::string type = option == nullptr ? "" : option->get_type_name();
  return name + ": expected " + KindOf(type) + (IsWholeNumber(value) ? " in its range" : "") +
         ", got '" + value + "'";
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
    return Fail(kBadInput, WithoutConversion(app, error.what()) +
                               " (aah --help lists the commands, aah "
                               "COMMAND --help their options)");
  }
  return chosen();
}

}  // namespace
}  // namespace aah

int main(int argc, char** argv) {
  // A write beyond the limit of file sizes then fails as one on a full disk does.
  std::signal(SIGXFSZ, SIG_IGN);
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
