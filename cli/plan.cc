#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "aah/error.h"
#include "aah/io/window_plan_file.h"
#include "aah/lab/plan_text.h"
#include "aah/model/run_folder.h"
#include "aah/plan_baselines.h"
#include "aah/window_budget.h"
#include "aah/window_plan.h"
#include "cli/command.h"
#include "cli/number_check.h"
#include "cli/terminal.h"

namespace aah {
namespace {

struct PlanArguments {
  std::string file;
  std::optional<int64_t> length;
  uint64_t seed = 0;
  std::vector<int32_t> candidates;
  std::string output;
  bool overwrite = false;
};

// A run folder stands for the plan that the run has learned.
std::string PlanFile(const std::string& path) {
  if (!IsRunFolder(path)) return path;
  std::error_code error;
  AAH_CHECK(std::filesystem::exists(PlanPath(path), error), path,
            ": expected a run that has learned windows, got one without a ", PlanPath(path),
            "; train it past its search, or give a plan file");
  return PlanPath(path);
}

int Show(const PlanArguments& arguments) {
  const std::string file = PlanFile(arguments.file);
  const WindowPlan plan = ReadWindowPlan(file);
  const std::string text =
      WindowPlanReport(plan, file, {.colour = UsesColour(stdout), .length = arguments.length});
  std::fputs(text.c_str(), stdout);
  return 0;
}

void CheckOutput(const PlanArguments& arguments) {
  std::error_code error;  // a path that cannot be looked at is for the writer to refuse
  AAH_CHECK(arguments.overwrite || !std::filesystem::exists(arguments.output, error),
            arguments.output,
            ": there is a file already; choose another --output or give --overwrite");
}

// Writes the baseline of `plan` and tells what both cost, by `measure`.
int Write(const PlanArguments& arguments, const WindowPlan& plan, WindowPlan baseline,
          const WindowBudget& measure) {
  baseline.provenance.versions["aah"] = AAH_VERSION;
  WriteWindowPlan(arguments.output, baseline);
  const auto cost = [&](const WindowPlan& of) {
    return CostText(CostRatio(of.windows, of.model.shape, of.sinks, measure), measure);
  };
  std::printf("%s: %s\n", arguments.file.c_str(), cost(plan).c_str());
  std::printf("%s: %s\n", arguments.output.c_str(), cost(baseline).c_str());
  return 0;
}

int Shuffle(const PlanArguments& arguments) {
  CheckOutput(arguments);
  const WindowPlan plan = ReadWindowPlan(PlanFile(arguments.file));
  const WindowBudget measure = PlanMeasure(plan, arguments.length, arguments.file);
  return Write(arguments, plan, ShuffledPlan(plan, arguments.seed), measure);
}

int Draw(const PlanArguments& arguments) {
  CheckOutput(arguments);
  const WindowPlan plan = ReadWindowPlan(PlanFile(arguments.file));
  const WindowBudget measure = PlanMeasure(plan, arguments.length, arguments.file);
  return Write(arguments, plan, RandomPlan(plan, arguments.candidates, measure, arguments.seed),
               measure);
}

CLI::App* AddAction(CLI::App& plan, const char* name, const char* help, PlanArguments& arguments) {
  CLI::App* action = plan.add_subcommand(name, help);
  action->add_option("plan", arguments.file, "window plan (*.json), or a run that has learned one")
      ->required();
  action->add_option("--length", arguments.length,
                     "tokens to measure the cost at; those of the plan's budget where absent");
  return action;
}

void AddOutput(CLI::App& action, PlanArguments& arguments) {
  action.add_option("--seed", arguments.seed, "of what is drawn")
      ->check(CLI::Validator(RefuseNegative, "UINT"))
      ->capture_default_str();
  action.add_option("--output,-o", arguments.output, "window plan to write")->required();
  action.add_flag("--overwrite", arguments.overwrite, "replace a file that is there");
}

}  // namespace

void AddPlanCommand(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<PlanArguments>();
  CLI::App* plan = app.add_subcommand(
      "plan", "Window plans: a window for every head. Show one, make what it is compared with.");
  plan->require_subcommand(1);
  plan->footer("Example: aah plan show plan.json");

  CLI::App* show =
      AddAction(*plan, "show", "Model, origin, cost and windows of a plan.", *arguments);
  show->footer("Example: aah plan show plan.json --length 4096");
  show->callback([=, &chosen] { chosen = [=] { return Show(*arguments); }; });

  CLI::App* shuffle = AddAction(
      *plan, "shuffle",
      "The same windows in other heads of any layer; those that key/value heads share stay so.",
      *arguments);
  AddOutput(*shuffle, *arguments);
  shuffle->footer("Example: aah plan shuffle plan.json --seed 1 -o shuffled.json");
  shuffle->callback([=, &chosen] { chosen = [=] { return Shuffle(*arguments); }; });

  CLI::App* random =
      AddAction(*plan, "random", "Random windows that cost as much as a plan's, or a little less.",
                *arguments);
  random
      ->add_option("--candidates", arguments->candidates,
                   "windows to draw from, ascending: 16,64,256")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->required();
  AddOutput(*random, *arguments);
  random->footer(
      "Example: aah plan random plan.json --candidates 16,64,256,1024 --seed 1 -o random.json");
  random->callback([=, &chosen] { chosen = [=] { return Draw(*arguments); }; });
}

}  // namespace aah
