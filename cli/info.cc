#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "aah/instruction_set.h"
#include "aah/io/json.h"
#include "aah/lab/machine.h"
#include "aah/model/attention_variant.h"
#include "aah/model/torch_parallel.h"
#include "aah/regime.h"
#include "cli/command.h"

namespace aah {
namespace {

int Info(bool json) {
  const MachineFacts facts = ThisMachine();
  const int threads = TorchParallel().worker_count();
  if (json) {
    Json object;
    for (const auto& [name, value] : Describe(facts)) object[name] = value;
    object["threads"] = threads;
    object["instruction_sets"] = SupportedInstructionSets();
    for (const AttentionVariantEntry& entry : AttentionVariants()) {
      object["attention_variants"].push_back(entry.name);
    }
    for (const Regime& regime : Regimes()) object["regimes"].push_back(regime.name);
    std::printf("%s\n", object.dump().c_str());
    return 0;
  }
  std::string all;
  for (const std::string& name : SupportedInstructionSets())
    all += (all.empty() ? "" : ", ") + name;
  for (const auto& [name, value] : Describe(facts))
    std::printf("%-18s %s\n", name.c_str(), value.c_str());
  std::printf("%-18s %d\n", "threads", threads);
  std::printf("%-18s %s\n", "can run on", all.c_str());
  std::printf("\nattention variants (attention.variant in a recipe):\n");
  for (const AttentionVariantEntry& entry : AttentionVariants()) {
    std::printf("  %-16s %s\n", std::string(entry.name).c_str(),
                std::string(entry.summary).c_str());
  }
  std::printf("\nregimes of the AAH controller (attention.regime):\n ");
  for (const Regime& regime : Regimes()) std::printf(" %s", std::string(regime.name).c_str());
  std::printf(" fixed:<w> shuffle_post_select\n");
  return 0;
}

}  // namespace

void AddInfoCommand(CLI::App& app, Command& chosen) {
  const auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "info", "Versions, instruction set, threads and the attention variants there are.");
  command->add_flag("--json", *json, "one JSON object");
  command->footer("Example: aah info");
  command->callback([=, &chosen] { chosen = [=] { return Info(*json); }; });
}

}  // namespace aah
