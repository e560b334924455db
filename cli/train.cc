#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "aah/model/train_config.h"
#include "aah/model/trainer.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/stop_signal.h"

namespace aah {
namespace {

struct TrainArguments {
  std::string recipe;
  std::vector<std::string> overrides;
  bool quiet = false;
};

int Train(const TrainArguments& arguments) {
  InitialiseDeterminism();
  const RunConfig config = ReadRunConfig(arguments.recipe, arguments.overrides);
  const std::atomic<bool>& stop = CatchStopSignals();
  TrainProgress progress;
  const TrainOutcome outcome = TrainRun(config, progress, stop);
  progress.Close();
  if (outcome.end == RunEnd::kStopped) {
    std::fprintf(stderr,
                 "stopped after step %lld, saved in %s; the same command goes on from there\n",
                 static_cast<long long>(outcome.step), outcome.checkpoint.c_str());
    return StopExitCode();
  }
  if (!arguments.quiet) std::printf("%s\n", outcome.checkpoint.c_str());
  return 0;
}

}  // namespace

void AddTrainCommand(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<TrainArguments>();
  CLI::App* command = app.add_subcommand(
      "train",
      "Train the model that a recipe describes; go on where an interrupted run stopped. Ctrl-C, "
      "SIGTERM and SIGHUP save before they end it. Prints the last checkpoint's folder.");
  command->add_option("recipe", arguments->recipe, "YAML file, see recipes/")->required();
  command->add_option("settings", arguments->overrides,
                      "key=value pairs that replace the recipe's, as model.layers=6");
  command->add_flag("--quiet,-q", arguments->quiet, "do not print the last checkpoint's folder");
  command->footer("Example: aah train recipes/kjv.yaml training.steps=500 attention.variant=sdpa");
  command->callback([=, &chosen] { chosen = [=] { return Train(*arguments); }; });
}

}  // namespace aah
