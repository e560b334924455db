#ifndef AAH_CLI_COMMAND_H_
#define AAH_CLI_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>

namespace aah {

// What the arguments ask for, ready to run; returns the exit code.
using Command = std::function<int()>;

// Each declares one subcommand, in the file of its name. If the arguments choose it, parsing sets
// `chosen`; nothing runs while arguments are parsed.
void AddDataCommand(CLI::App& app, Command& chosen);
void AddTrainCommand(CLI::App& app, Command& chosen);
void AddEvalCommand(CLI::App& app, Command& chosen);
void AddSuiteCommand(CLI::App& app, Command& chosen);
void AddReportCommand(CLI::App& app, Command& chosen);
void AddInspectCommand(CLI::App& app, Command& chosen);
void AddPlanCommand(CLI::App& app, Command& chosen);
void AddInfoCommand(CLI::App& app, Command& chosen);
void AddBenchCommand(CLI::App& app, Command& chosen);

}  // namespace aah

#endif  // AAH_CLI_COMMAND_H_
