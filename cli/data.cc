#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "aah/error.h"
#include "aah/lab/table.h"
#include "aah/text/prepare.h"
#include "aah/text/recall_task.h"
#include "cli/command.h"
#include "cli/number_check.h"
#include "cli/terminal.h"

namespace aah {
namespace {

// data/kjv for `kjv`, data/book for books/book.txt, data/ and the folder's name for `.`.
std::string DefaultOutput(const std::string& source) {
  std::filesystem::path path = std::filesystem::absolute(source).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return "data/" + path.stem().string();
}

void PrintSplits(const TokenFileInfo& info) {
  Table table({"split", "documents", "tokens", "text MB"});
  for (int split = 0; split < kSplitCount; ++split) {
    const SplitInfo& part = info.splits[static_cast<size_t>(split)];
    table.AddRow({std::string(SplitName(static_cast<Split>(split))),
                  FormatThousands(static_cast<double>(part.documents.size())),
                  FormatThousands(static_cast<double>(part.tokens.size())),
                  FormatFixed(static_cast<double>(part.text_bytes) / 1e6, 2)});
  }
  std::printf("%s", table.ToText().c_str());
}

void PrintResult(const PrepareResult& result) {
  const TokenFileInfo& info = result.info;
  const bool by_document = result.split == SplitRule::kDocument;
  std::printf("%s: tokenizer %s, vocabulary %s, split by %s\n\n", result.token_path.c_str(),
              info.tokenizer_name.c_str(), FormatThousands(info.vocabulary_size).c_str(),
              by_document ? "document" : "position");
  PrintSplits(info);
  if (result.duplicates_dropped + result.empty_dropped > 0) {
    std::printf("left out: %lld duplicates, %lld empty documents\n",
                static_cast<long long>(result.duplicates_dropped),
                static_cast<long long>(result.empty_dropped));
  }
}

int Prepare(PrepareOptions options) {
  if (options.output.empty()) options.output = DefaultOutput(options.sources.front());
  LiveLine line;
  const PrepareResult result = PrepareData(options, [&](const PrepareProgress& progress) {
    line.Show(FormatThousands(static_cast<double>(progress.documents_done)) + " of " +
              FormatThousands(static_cast<double>(progress.documents)) + " documents, " +
              FormatFixed(static_cast<double>(progress.bytes_done) / 1e6, 1) + " of " +
              FormatFixed(static_cast<double>(progress.bytes) / 1e6, 1) + " MB");
  });
  line.Clear();
  PrintResult(result);
  return 0;
}

int PrepareTask(RecallOptions options) {
  if (options.output.empty()) options.output = "data/recall";
  LiveLine line;
  const TokenFileInfo info = PrepareRecall(options, [&](int64_t done, int64_t all) {
    line.Show(FormatThousands(static_cast<double>(done)) + " of " +
              FormatThousands(static_cast<double>(all)) + " sequences");
  });
  line.Clear();
  const RecallTask task(options);
  std::printf("%s: recall of %lld pairs by %lld queries, vocabulary %s\n", options.output.c_str(),
              static_cast<long long>(options.pairs), static_cast<long long>(options.queries),
              FormatThousands(info.vocabulary_size).c_str());
  std::printf("train with model.context %lld; a window up to %lld shows no value to any query\n\n",
              static_cast<long long>(options.context), static_cast<long long>(task.gap()));
  PrintSplits(info);
  return 0;
}

// The options of --task; they need it, and it excludes those that concern text.
void AddTaskOptions(CLI::App& prepare, std::string& task, RecallOptions& options,
                    const std::vector<CLI::Option*>& of_text) {
  CLI::Option* chosen = prepare.add_option(
      "--task", task, "generate a task instead: recall (keys and values far back, asked for)");
  chosen->check(CLI::IsMember({"recall"}));
  for (CLI::Option* option : of_text) chosen->excludes(option);
  const auto add = [&](const char* name, auto& value, const char* help) {
    prepare.add_option(name, value, help)->needs(chosen)->capture_default_str()->group("Task");
  };
  add("--context", options.context, "tokens predicted per sequence");
  add("--pairs", options.pairs, "keys with values, in the first quarter of the context");
  add("--queries", options.queries, "keys asked for, in the last quarter");
  add("--keys", options.keys, "ids of keys");
  add("--values", options.values, "ids of values");
  add("--fillers", options.fillers, "ids of what lies between");
  add("--sequences", options.sequences[0], "to train on");
  add("--validation-sequences", options.sequences[1], "to validate on");
  add("--test-sequences", options.sequences[2], "to test on");
}

const std::map<std::string, SplitRule>& SplitRules() {
  static const std::map<std::string, SplitRule> rules = {{"auto", SplitRule::kAuto},
                                                         {"document", SplitRule::kDocument},
                                                         {"position", SplitRule::kPosition}};
  return rules;
}

std::vector<std::string> RuleNames() {
  std::vector<std::string> names;
  for (const auto& [name, rule] : SplitRules()) names.push_back(name);
  return names;
}

struct DataArguments {
  PrepareOptions text;
  std::string split = "auto";
  std::string task;
  RecallOptions recall;
};

int Run(DataArguments arguments) {
  if (arguments.task.empty()) {
    AAH_CHECK(!arguments.text.sources.empty(), "name a source: kjv, pystdlib, or text files; or a ",
              "task to generate (--task recall)");
    arguments.text.split = SplitRules().at(arguments.split);
    return Prepare(std::move(arguments.text));
  }
  arguments.recall.seed = arguments.text.seed;
  arguments.recall.output = arguments.text.output;
  arguments.recall.overwrite = arguments.text.overwrite;
  return PrepareTask(std::move(arguments.recall));
}

}  // namespace

void AddDataCommand(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<DataArguments>();
  PrepareOptions& options = arguments->text;
  CLI::App* data = app.add_subcommand("data", "Text into token files that training reads.");
  data->require_subcommand(1);
  data->footer("Example: aah data prepare kjv");
  CLI::App* prepare = data->add_subcommand(
      "prepare",
      "Tokenise text or generate a task, split it into training, validation and test, write "
      "a token file.");
  CLI::Option* sources = prepare->add_option(
      "sources", options.sources,
      "kjv (the King James Bible), pystdlib (Python's standard library), or text "
      "files, JSONL files and folders");
  prepare->add_option("--output,-o", options.output,
                      "folder to write; data/ and the name of the first source or the task where "
                      "absent");
  CLI::Option* tokenizer =
      prepare
          ->add_option("--tokenizer", options.tokenizer,
                       "bytes, a tokenizer.json, or a folder with vocab.json and merges.txt")
          ->capture_default_str();
  CLI::Option* extension = prepare->add_option("--extension", options.extensions,
                                               "further file endings to take in folders");
  CLI::Option* field =
      prepare->add_option("--field", options.field, "the text's field in JSONL files")
          ->capture_default_str();
  CLI::Option* split =
      prepare
          ->add_option("--split", arguments->split,
                       "by document, by position, or auto: by document from 20 documents on")
          ->check(CLI::IsMember(RuleNames()))
          ->capture_default_str();
  CLI::Option* validation =
      prepare->add_option("--validation", options.validation_fraction, "share of the text")
          ->capture_default_str();
  CLI::Option* test = prepare->add_option("--test", options.test_fraction, "share of the text")
                          ->capture_default_str();
  prepare->add_option("--seed", options.seed, "of which documents go where, and of the task")
      ->check(CLI::Validator(RefuseNegative, "UINT"))
      ->capture_default_str();
  prepare->add_flag("--overwrite", options.overwrite, "replace a token file that is there");
  AddTaskOptions(*prepare, arguments->task, arguments->recall,
                 {sources, tokenizer, extension, field, split, validation, test});
  prepare->footer("Example: aah data prepare books/ --tokenizer gpt2/tokenizer.json -o data/books");
  prepare->callback([=, &chosen] { chosen = [=] { return Run(*arguments); }; });
}

}  // namespace aah
