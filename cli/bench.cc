#include "aah/lab/bench.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aah/error.h"
#include "aah/instruction_set.h"
#include "aah/lab/table.h"
#include "aah/model/train_config.h"
#include "cli/command.h"
#include "cli/terminal.h"

namespace aah {
namespace {

struct BenchArguments {
  BenchOptions options;
  std::string instruction_set;
  bool json = false;
  bool check = false;
};

constexpr char kNative[] = "native";
constexpr char kAvx2[] = "AVX2";

using Bench = std::function<void(const BenchOptions&, const BenchSink&)>;

// torch and its libraries read these once, when they start.
constexpr std::array<std::pair<const char*, const char*>, 3> kTorchOnAvx2 = {{
    {"ATEN_CPU_CAPABILITY", "avx2"},
    {"MKL_ENABLE_INSTRUCTIONS", "AVX2"},
    {"ONEDNN_MAX_CPU_ISA", "AVX2"},
}};

bool HasAvx2() {
  const std::vector<std::string> sets = SupportedInstructionSets();
  return std::find(sets.begin(), sets.end(), kAvx2) != sets.end();
}

bool TorchIsOnAvx2() {
  for (const auto& [name, value] : kTorchOnAvx2) {
    const char* set = std::getenv(name);
    if (set == nullptr || std::string_view(set) != value) return false;
  }
  return true;
}

// Holds torch and ours to the same instruction set. For torch the program has to start again, with
// the variables set: this returns in the new process.
void Restrict(const std::string& instruction_set) {
  if (instruction_set == kNative) return;
  AAH_CHECK(instruction_set == kAvx2, "--isa ", instruction_set,
            ": expected native or AVX2, the sets that torch can be held to as well");
  RestrictInstructionSet(instruction_set);
  if (TorchIsOnAvx2()) return;
  for (const auto& [name, value] : kTorchOnAvx2) setenv(name, value, /*replace=*/1);
  std::vector<std::string> words;
  FILE* command_line = std::fopen("/proc/self/cmdline", "r");
  if (command_line != nullptr) {
    std::string word;
    for (int c = std::fgetc(command_line); c != EOF; c = std::fgetc(command_line)) {
      if (c != '\0') {
        word += static_cast<char>(c);
      } else {
        words.push_back(std::exchange(word, ""));
      }
    }
    std::fclose(command_line);
  }
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv("/proc/self/exe", pointers.data());
  ThrowError(ErrorKind::kMachine, "cannot start again on AVX2: ", std::strerror(errno));
}

int RunBench(const BenchArguments& arguments, const Bench& bench) {
  AAH_CHECK(arguments.options.threads >= 1 && arguments.options.threads <= kMaxThreads,
            "--threads ", arguments.options.threads, ": expected 1 to ", kMaxThreads);
  Restrict(arguments.instruction_set);
  bool all_hold = true;
  Table table = MakeBenchTable();
  LiveLine line;
  if (!arguments.json) line.Show("measuring ...");
  bench(arguments.options, [&](const BenchResult& result) {
    all_hold = all_hold && result.holds();
    if (arguments.json) {
      std::printf("%s\n", ToJsonLine(result).c_str());
      std::fflush(stdout);
    } else {
      AddResult(table, result);
      line.Show("measured " + result.name);
    }
  });
  line.Clear();
  if (!arguments.json) std::printf("%s", table.ToText().c_str());
  return arguments.check && !all_hold ? 1 : 0;
}

void AddBench(CLI::App& parent, const std::string& name, const std::string& description,
              const std::string& instruction_set, const Bench& bench, Command& chosen) {
  const auto arguments = std::make_shared<BenchArguments>();
  arguments->instruction_set = instruction_set;
  CLI::App* command = parent.add_subcommand(name, description);
  command->add_flag("--json", arguments->json, "one JSON object a line");
  command->add_flag("--check", arguments->check, "exit with 1 where a bar does not hold");
  command->add_option("--threads", arguments->options.threads, "that both sides use")
      ->capture_default_str();
  command
      ->add_option("--isa", arguments->instruction_set,
                   "instruction set of both sides: native or AVX2")
      ->capture_default_str();
  command->footer("Example: aah bench " + name + " --json --check");
  command->callback([=, &chosen] { chosen = [=] { return RunBench(*arguments, bench); }; });
}

}  // namespace

void AddBenchCommand(CLI::App& app, Command& chosen) {
  CLI::App* command = app.add_subcommand(
      "bench", "Measure speed as ratios inside one process, each with the bar it has to hold.");
  command->require_subcommand(1);
  command->footer("Example: aah bench attention");
  AddBench(*command, "attention",
           "The attention kernels over torch's, and windowed over full attention, on AVX2 where "
           "nothing else is said: its bars are set there. Under a minute.",
           HasAvx2() ? kAvx2 : kNative, BenchAttention, chosen);
  AddBench(*command, "nested",
           "Attention mixed over nested candidate windows over attention within one; under half a "
           "minute.",
           kNative, BenchNested, chosen);
  AddBench(*command, "train",
           "Whole training steps with head-wise windows over torch's full attention; under a "
           "minute.",
           kNative, BenchTrain, chosen);
  AddBench(*command, "controller",
           "What deciding windows adds to a training step, over the same step with the same "
           "windows given; about a minute.",
           kNative, BenchController, chosen);
}

}  // namespace aah
