#include "aah/lab/suite.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "aah/lab/report.h"
#include "aah/lab/run_log.h"
#include "cli/child_process.h"
#include "cli/command.h"
#include "cli/terminal.h"

namespace aah {
namespace {

struct SuiteArguments {
  std::string suite;
  std::vector<std::string> overrides;
  std::string out;
};

void Announce(const Suite& suite, size_t arm, bool finished) {
  const std::string head = "[" + std::to_string(arm + 1) + "/" + std::to_string(suite.arms.size()) +
                           "] " + suite.arms[arm].name;
  std::fprintf(stderr, "%s%s\n", Bold(stderr, head).c_str(),
               finished ? ": has finished before, not run again" : "");
}

void PrintComparison(const Suite& suite) {
  std::vector<RunLog> logs;
  for (const std::string& folder : RunFolders(suite)) logs.push_back(ReadRunLog(folder));
  const std::string report = suite.out + "/report.html";
  WriteReport(logs, suite.name, report);
  std::printf("\n%s\n%s\n", ComparisonTable(Compare(logs)).ToText().c_str(), report.c_str());
}

int RunSuiteCommand(const SuiteArguments& arguments) {
  const Suite suite = ReadSuite(arguments.suite, arguments.overrides, arguments.out);
  const int exit_code = RunSuite(
      suite, [](const std::string& recipe) { return RunThisProgram({"train", "--quiet", recipe}); },
      [&](size_t arm, bool finished) { Announce(suite, arm, finished); });
  if (exit_code != 0) {
    std::fprintf(stderr, "the suite ends here; the same command goes on from there\n");
    return exit_code;
  }
  PrintComparison(suite);
  return 0;
}

}  // namespace

void AddSuiteCommand(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<SuiteArguments>();
  CLI::App* command = app.add_subcommand(
      "suite",
      "Train several runs that differ in a few settings, one after another, and compare them in "
      "one "
      "table and an HTML page. Runs that have finished are not run again, interrupted ones go on.");
  command->add_option("suite", arguments->suite, "YAML file, see recipes/demo.yaml")->required();
  command->add_option("settings", arguments->overrides,
                      "key=value pairs for every run, as training.steps=50");
  command->add_option("--out", arguments->out, "folder of the runs; the suite's own where absent");
  command->footer("Example: aah suite recipes/demo.yaml training.steps=50 --out runs/short");
  command->callback([=, &chosen] { chosen = [=] { return RunSuiteCommand(*arguments); }; });
}

}  // namespace aah
