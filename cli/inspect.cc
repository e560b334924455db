#include "aah/lab/inspect.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "aah/lab/run_log.h"
#include "cli/command.h"
#include "cli/terminal.h"

namespace aah {
namespace {

struct InspectArguments {
  std::string run;
  std::optional<int64_t> step;
  std::optional<int> layer;
  bool json = false;
  std::string tables;
};

int InspectRun(const InspectArguments& arguments) {
  const RunLog log = ReadRunLog(arguments.run);
  if (!arguments.tables.empty()) {
    for (const std::string& path : WriteInspectionTables(log, arguments.step, arguments.tables)) {
      std::printf("%s\n", path.c_str());
    }
    return 0;
  }
  const Inspection inspection = Inspect(log, arguments.step);
  const std::string text = arguments.json
                               ? InspectionJson(inspection) + "\n"
                               : InspectionText(inspection, {UsesColour(stdout), arguments.layer});
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

void AddInspectCommand(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<InspectArguments>();
  CLI::App* command = app.add_subcommand(
      "inspect",
      "Show a run's windows, how controllers or a search chose them, and what that took.");
  command->add_option("run", arguments->run, "run folder")->required();
  command->add_option("--step", arguments->step, "the step to look at; the last one where absent");
  CLI::Option* layer =
      command->add_option("--layer", arguments->layer, "draw this layer's groups or weights only");
  CLI::Option* json =
      command->add_flag("--json", arguments->json, "one JSON object")->excludes(layer);
  command
      ->add_option("--csv", arguments->tables,
                   "write windows.csv and siblings.csv into this folder instead: all steps, or "
                   "what was in force in --step")
      ->excludes(json)
      ->excludes(layer);
  command->footer("Example: aah inspect runs/demo/full_adaptive --step 100");
  command->callback([=, &chosen] { chosen = [=] { return InspectRun(*arguments); }; });
}

}  // namespace aah
