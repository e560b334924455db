#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "aah/lab/table.h"
#include "aah/text/prepare.h"
#include "cli/command.h"
#include "cli/terminal.h"

namespace aah {
namespace {

// data/kjv for `kjv`, data/book for books/book.txt.
std::string DefaultOutput(const std::string& source) {
  std::filesystem::path path = std::filesystem::path(source).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return "data/" + path.stem().string();
}

void PrintResult(const PrepareResult& result) {
  const TokenFileInfo& info = result.info;
  const bool by_document = result.split == SplitRule::kDocument;
  std::printf("%s: tokenizer %s, vocabulary %s, split by %s\n\n", result.token_path.c_str(),
              info.tokenizer_name.c_str(), FormatThousands(info.vocabulary_size).c_str(),
              by_document ? "document" : "position");
  Table table({"split", "documents", "tokens", "text MB"});
  for (int split = 0; split < kSplitCount; ++split) {
    const SplitInfo& part = info.splits[static_cast<size_t>(split)];
    table.AddRow({std::string(SplitName(static_cast<Split>(split))),
                  FormatThousands(static_cast<double>(part.documents.size())),
                  FormatThousands(static_cast<double>(part.tokens.size())),
                  FormatFixed(static_cast<double>(part.text_bytes) / 1e6, 2)});
  }
  std::printf("%s", table.ToText().c_str());
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

}  // namespace

void AddDataCommand(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<PrepareOptions>();
  PrepareOptions& options = *arguments;
  CLI::App* data = app.add_subcommand("data", "Text into token files that training reads.");
  data->require_subcommand(1);
  data->footer("Example: aah data prepare kjv");
  CLI::App* prepare = data->add_subcommand(
      "prepare", "Tokenise text, split it into training, validation and test, write a token file.");
  prepare
      ->add_option("sources", options.sources,
                   "kjv (the King James Bible), pystdlib (Python's standard library), or text "
                   "files, JSONL files and folders")
      ->required();
  prepare->add_option("--output,-o", options.output,
                      "folder to write; data/ and the first source's name where absent");
  prepare
      ->add_option("--tokenizer", options.tokenizer,
                   "bytes, a tokenizer.json, or a folder with vocab.json and merges.txt")
      ->capture_default_str();
  prepare->add_option("--extension", options.extensions, "further file endings to take in folders");
  prepare->add_option("--field", options.field, "the text's field in JSONL files")
      ->capture_default_str();
  const std::map<std::string, SplitRule> rules = {{"auto", SplitRule::kAuto},
                                                  {"document", SplitRule::kDocument},
                                                  {"position", SplitRule::kPosition}};
  prepare
      ->add_option("--split", options.split,
                   "by document, by position, or auto: by document from 20 documents on")
      ->transform(CLI::Transformer(rules));
  prepare->add_option("--validation", options.validation_fraction, "share of the text")
      ->capture_default_str();
  prepare->add_option("--test", options.test_fraction, "share of the text")->capture_default_str();
  prepare->add_option("--seed", options.seed, "of which documents go where")->capture_default_str();
  prepare->add_flag("--overwrite", options.overwrite, "replace a token file that is there");
  prepare->footer("Example: aah data prepare books/ --tokenizer gpt2/tokenizer.json -o data/books");
  prepare->callback([=, &chosen] { chosen = [=] { return Prepare(*arguments); }; });
}

}  // namespace aah
