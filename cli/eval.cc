#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "aah/io/json.h"
#include "aah/lab/table.h"
#include "aah/model/evaluate.h"
#include "aah/model/trainer.h"
#include "cli/command.h"

namespace aah {
namespace {

struct EvalArguments {
  EvaluateOptions options;
  bool json = false;
};

Json ToJson(const EvaluationResult& result) {
  Json by_position = Json::array();
  for (const PositionLoss& bucket : result.by_position) {
    by_position.push_back({{"begin", bucket.begin}, {"end", bucket.end}, {"loss", bucket.loss}});
  }
  return {
      {"checkpoint", result.checkpoint},
      {"step", result.step},
      {"attention", result.attention},
      {"split", result.split},
      {"tokens", result.tokens},
      {"loss", result.loss},
      {"accuracy", result.accuracy},
      {"perplexity", result.perplexity},
      {"bits_per_byte", result.bits_per_byte},
      {"allocated_context_ratio", result.allocated_context_ratio},
      {"visible_pair_ratio", result.visible_pair_ratio},
      {"by_position", by_position},
  };
}

void Print(const EvaluationResult& result) {
  std::printf("%s (step %lld, %s)\n", result.checkpoint.c_str(),
              static_cast<long long>(result.step), result.attention.c_str());
  Table figures({"split", "tokens", "loss", "accuracy", "perplexity", "bits per\nbyte",
                 "allocated\ncontext", "visible\npairs"});
  figures.AddRow({result.split, FormatThousands(static_cast<double>(result.tokens)),
                  FormatFixed(result.loss, 4), FormatFixed(result.accuracy, 4),
                  FormatFixed(result.perplexity, 3), FormatFixed(result.bits_per_byte, 4),
                  FormatFixed(result.allocated_context_ratio, 3),
                  FormatFixed(result.visible_pair_ratio, 3)});
  Table positions({"position in the context", "loss"});
  for (const PositionLoss& bucket : result.by_position) {
    positions.AddRow({std::to_string(bucket.begin) + " to " + std::to_string(bucket.end - 1),
                      FormatFixed(bucket.loss, 4)});
  }
  std::printf("\n%s\n%s", figures.ToText().c_str(), positions.ToText().c_str());
}

int Evaluate(const EvalArguments& arguments) {
  InitialiseDeterminism();
  const EvaluationResult result = EvaluateRun(arguments.options);
  if (arguments.json) {
    std::printf("%s\n",
                ToJson(result).dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    Print(result);
  }
  return 0;
}

}  // namespace

void AddEvalCommand(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<EvalArguments>();
  EvaluateOptions& options = arguments->options;
  CLI::App* command = app.add_subcommand(
      "eval", "Loss, perplexity, bits per byte and loss by position of a trained model.");
  command->add_option("run", options.run, "run folder (its newest checkpoint) or a checkpoint")
      ->required();
  command->add_option("--split", options.split, "train, validation or test")->capture_default_str();
  command->add_option("--data", options.data, "prepared data; the run's own where absent");
  command
      ->add_option("--plan", options.plan,
                   "window plan (*.json) to evaluate the weights with; the run's own attention "
                   "where absent")
      ->check(CLI::Validator(
          [](std::string& path) {
            return path.empty() ? std::string(
                                      "expected a window plan, got ''; leave the option out "
                                      "to evaluate with the run's own attention")
                                : std::string();
          },
          "FILE"));
  command->add_option("--stretches", options.stretches, "contexts to read; 0: the whole split")
      ->capture_default_str();
  command->add_option("--batch-size", options.batch_size, "contexts per forward pass")
      ->capture_default_str();
  command->add_option("--buckets", options.buckets, "parts of the context to tell loss by")
      ->capture_default_str();
  command->add_option("--threads", options.threads, "0: as many as torch finds")
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "one JSON object");
  command->footer("Example: aah eval runs/demo/full --split test");
  command->callback([=, &chosen] { chosen = [=] { return Evaluate(*arguments); }; });
}

}  // namespace aah
