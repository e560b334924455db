#include "aah/text/prepare.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>

#include "aah/error.h"
#include "aah/io/file.h"
#include "aah/io/json.h"
#include "aah/random.h"
#include "aah/text/tokenizer.h"
#include "data_set.h"

namespace aah {
namespace {

constexpr int64_t kManyDocuments = 20;
// How far behind its exact place a cut by position looks for a line end.
constexpr size_t kLineEndReach = 4096;

std::unique_ptr<Corpus> MakeCorpus(const PrepareOptions& options) {
  for (const std::string& source : options.sources) {
    const bool built_in = source == "kjv" || source == "pystdlib";
    AAH_CHECK(!built_in || options.sources.size() == 1, "the corpus '", source,
              "' stands alone, got ", options.sources.size(), " sources");
    if (built_in) return source == "kjv" ? MakeKjvCorpus() : MakePythonLibraryCorpus();
  }
  return MakeFileCorpus({options.sources, options.extensions, options.field});
}

int64_t TotalBytes(const Corpus& corpus) {
  int64_t total = 0;
  for (int64_t i = 0; i < corpus.document_count(); ++i) total += corpus.document_bytes(i);
  return total;
}

// Where a text may be cut at or behind `position`: after the next line end if one is near, else
// before the next character.
size_t CutNear(std::string_view text, size_t position) {
  const size_t line_end = text.substr(position, kLineEndReach).find('\n');
  if (line_end != std::string_view::npos) return position + line_end + 1;
  while (position < text.size() && (static_cast<unsigned char>(text[position]) & 0xc0U) == 0x80U) {
    ++position;
  }
  return position;
}

// Encodes documents and writes them, with progress and the checks each document needs.
class Preparation {
 public:
  Preparation(const PrepareOptions& options, const Tokenizer& tokenizer, const Corpus& corpus,
              const std::string& token_path,
              const std::function<void(const PrepareProgress&)>& progress)
      : options_(options),
        tokenizer_(tokenizer),
        corpus_(corpus),
        progress_(progress),
        end_of_document_(corpus.document_count() > 1 ? tokenizer.end_of_document() : std::nullopt),
        writer_({token_path, tokenizer.vocabulary_size(), end_of_document_, tokenizer.name(),
                 tokenizer.hash()}) {
    state_.documents = corpus.document_count();
    state_.bytes = TotalBytes(corpus);
  }

  TokenFileInfo Run(SplitRule rule) {
    if (rule == SplitRule::kDocument) {
      SplitByDocument();
    } else {
      SplitByPosition();
    }
    AAH_CHECK(training_documents_ > 0, "nothing is left to train on in ", state_.bytes,
              " bytes of text; lower the fractions of validation and test");
    return writer_.Finish();
  }

 private:
  int64_t BytesOf(double fraction) const {
    return static_cast<int64_t>(fraction * static_cast<double>(state_.bytes));
  }

  void Add(Split split, std::string_view text, int64_t document) {
    if (text.empty()) return;
    const std::vector<int32_t> ids = tokenizer_.Encode(text);
    if (ids.empty()) return;  // a pre-tokenizer may drop all of a short text
    if (end_of_document_) {
      AAH_CHECK(std::ranges::find(ids, *end_of_document_) == ids.end(), corpus_.Origin(document),
                ": the text contains the end-of-document token ", *end_of_document_,
                ", which separates documents; remove it from the text");
    }
    if (split == Split::kTrain) ++training_documents_;
    writer_.AddDocument(split, ids, static_cast<int64_t>(text.size()));
  }

  void Report(int64_t document) {
    ++state_.documents_done;
    state_.bytes_done += corpus_.document_bytes(document);
    if (progress_) progress_(state_);
  }

  // Takes documents from the back of `order` while that brings their bytes nearer to `target`.
  std::vector<int64_t> Draw(std::vector<int64_t>& order, int64_t target, Split split) const {
    std::vector<int64_t> drawn;
    int64_t bytes = 0;
    for (size_t i = order.size(); i > 0; --i) {
      const int64_t document = order[i - 1];
      const int64_t size = corpus_.document_bytes(document);
      if (bytes + size / 2 > target || bytes >= target) continue;
      bytes += size;
      drawn.push_back(document);
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(i) - 1);
    }
    AAH_CHECK(target == 0 || !drawn.empty(), "no document is short enough for the ",
              SplitName(split), " split of ", target,
              " bytes; raise its fraction or split by position");
    std::ranges::sort(drawn);
    return drawn;
  }

  void SplitByDocument() {
    std::vector<int64_t> order(static_cast<size_t>(state_.documents));
    std::iota(order.begin(), order.end(), int64_t{0});
    Random(options_.seed).Shuffle(std::span(order));
    const auto test = Draw(order, BytesOf(options_.test_fraction), Split::kTest);
    const auto validation = Draw(order, BytesOf(options_.validation_fraction), Split::kValidation);
    std::ranges::sort(order);
    const auto add_all = [&](Split split, const std::vector<int64_t>& documents) {
      for (const int64_t document : documents) {
        Add(split, corpus_.Document(document), document);
        Report(document);
      }
    };
    add_all(Split::kTrain, order);
    add_all(Split::kValidation, validation);
    add_all(Split::kTest, test);
  }

  void SplitByPosition() {
    const int64_t test_begin = state_.bytes - BytesOf(options_.test_fraction);
    const int64_t validation_begin = test_begin - BytesOf(options_.validation_fraction);
    int64_t document_begin = 0;
    for (int64_t i = 0; i < state_.documents; ++i) {
      const std::string text = corpus_.Document(i);
      const auto cut_at = [&](int64_t position) -> size_t {
        if (position <= document_begin) return 0;
        const auto offset = static_cast<size_t>(position - document_begin);
        return offset >= text.size() ? text.size() : CutNear(text, offset);
      };
      const size_t first = cut_at(validation_begin);
      const size_t second = cut_at(test_begin);
      const std::string_view view = text;
      Add(Split::kTrain, view.substr(0, first), i);
      Add(Split::kValidation, view.substr(first, second - first), i);
      Add(Split::kTest, view.substr(second), i);
      document_begin += static_cast<int64_t>(text.size());
      Report(i);
    }
  }

  const PrepareOptions& options_;
  const Tokenizer& tokenizer_;
  const Corpus& corpus_;
  const std::function<void(const PrepareProgress&)>& progress_;
  std::optional<int32_t> end_of_document_;
  TokenFileWriter writer_;
  PrepareProgress state_;
  int64_t training_documents_ = 0;
};

void CheckOptions(const PrepareOptions& options) {
  const auto valid = [](double fraction) { return fraction >= 0 && fraction < 1; };
  AAH_CHECK(valid(options.validation_fraction) && valid(options.test_fraction) &&
                options.validation_fraction + options.test_fraction < 1,
            "the fractions of validation and test are at least 0 and below 1 together, got ",
            options.validation_fraction, " and ", options.test_fraction);
  CheckOutputFree(options.output, options.overwrite);
}

std::string Describe(const PrepareOptions& options, const Tokenizer& tokenizer,
                     const PrepareResult& result) {
  const TokenFileInfo& info = result.info;
  nlohmann::ordered_json root = {
      {"format", "aah token data"},
      {"version", 1},
      {"sources", options.sources},
      {"tokenizer",
       {{"name", tokenizer.name()},
        {"given", options.tokenizer},
        {"vocabulary_size", tokenizer.vocabulary_size()},
        {"hash", tokenizer.hash()}}},
      {"split_rule", result.split == SplitRule::kDocument ? "document" : "position"},
      {"seed", options.seed},
      {"validation_fraction", options.validation_fraction},
      {"test_fraction", options.test_fraction},
      {"documents", info.document_count},
      {"duplicates_dropped", result.duplicates_dropped},
      {"empty_dropped", result.empty_dropped},
      {"tokens", info.token_count},
      {"bytes_per_token", info.bytes_per_token},
      {"end_of_document", nullptr},
      {"splits", DescribeSplits(info)},
      {"content_hash", info.content_hash}};
  if (info.end_of_document) root["end_of_document"] = *info.end_of_document;
  // Paths need not be UTF-8.
  return root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

PrepareResult PrepareData(const PrepareOptions& options,
                          const std::function<void(const PrepareProgress&)>& progress) {
  CheckOptions(options);
  const std::unique_ptr<Tokenizer> tokenizer = LoadTokenizer(options.tokenizer);
  const std::unique_ptr<Corpus> corpus = MakeCorpus(options);

  PrepareResult result;
  result.split = options.split;
  if (result.split == SplitRule::kAuto) {
    result.split =
        corpus->document_count() >= kManyDocuments ? SplitRule::kDocument : SplitRule::kPosition;
  }
  result.duplicates_dropped = corpus->duplicates_dropped();
  result.empty_dropped = corpus->empty_dropped();

  DataSetFolder folder(options.output);
  const std::filesystem::path& unfinished = folder.unfinished();
  Preparation preparation(options, *tokenizer, *corpus, (unfinished / "tokens.bin").string(),
                          progress);
  tokenizer->Save(unfinished.string());
  result.info = preparation.Run(result.split);
  WriteFileAtomically(unfinished / "data.json", Describe(options, *tokenizer, result));
  folder.Commit();
  result.token_path = (std::filesystem::path(options.output) / "tokens.bin").string();
  return result;
}

}  // namespace aah
