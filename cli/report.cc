#include "aah/lab/report.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "aah/lab/run_log.h"
#include "cli/command.h"

namespace aah {
namespace {

struct ReportArguments {
  std::vector<std::string> runs;
  std::string output = "report.html";
  std::string title;
};

int Report(const ReportArguments& arguments) {
  std::vector<RunLog> logs;
  for (const std::string& run : arguments.runs) logs.push_back(ReadRunLog(run));
  std::string title = arguments.title;
  if (title.empty()) {
    for (const RunLog& log : logs) title += (title.empty() ? "" : ", ") + log.name;
  }
  std::printf("%s", ComparisonTable(Compare(logs)).ToText().c_str());
  WriteReport(logs, title, arguments.output);
  std::printf("\n%s\n", arguments.output.c_str());
  return 0;
}

}  // namespace

void AddReportCommand(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<ReportArguments>();
  CLI::App* command = app.add_subcommand(
      "report", "Compare runs, finished or not: a table here and an HTML page that opens offline.");
  command->add_option("runs", arguments->runs, "run folders, the one to compare with first")
      ->required();
  command
      ->add_option("--output,-o", arguments->output, "the page to write (an old one is replaced)")
      ->capture_default_str();
  command->add_option("--title", arguments->title, "of the page; the runs' names where absent");
  command->footer("Example: aah report runs/demo/full runs/demo/window -o comparison.html");
  command->callback([=, &chosen] { chosen = [=] { return Report(*arguments); }; });
}

}  // namespace aah
