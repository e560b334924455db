#include "aah/text/recall_task.h"

#include <cmath>
#include <filesystem>
#include <numeric>
#include <span>

#include "aah/error.h"
#include "aah/io/file.h"
#include "aah/io/json.h"
#include "aah/random.h"
#include "aah/text/sha256.h"
#include "data_set.h"

namespace aah {
namespace {

constexpr int64_t kLeastContext = 16;
constexpr int64_t kMostContext = int64_t{1} << 20;
constexpr int32_t kMostIds = 1 << 20;
constexpr int64_t kMostSequences = 100'000'000;
constexpr int64_t kSequencesPerReport = 1000;
// Expected number of equal pairs among all sequences that is still taken for none.
constexpr double kMostExpectedRepeats = 0.01;

void CheckRange(const char* what, int64_t value, int64_t least, int64_t most) {
  AAH_CHECK(value >= least && value <= most, "recall task: expected ", what, " from ", least,
            " to ", most, ", got ", value);
}

// log2(n (n - 1) ... (n - count + 1)): the ordered choices of `count` out of n.
double ChoiceBits(int64_t n, int64_t count) {
  double bits = 0;
  for (int64_t i = 0; i < count; ++i) bits += std::log2(static_cast<double>(n - i));
  return bits;
}

void CheckDistinct(const RecallOptions& options) {
  double total = 0;
  for (const int64_t count : options.sequences) total += static_cast<double>(count);
  // Fillers left out: sequences that differ in them alone are the same exercise.
  const double bits = ChoiceBits(options.keys, options.pairs) +
                      static_cast<double>(options.pairs) * std::log2(options.values) +
                      ChoiceBits(options.pairs, options.queries);
  const double repeats = total * total / 2 * std::exp2(-bits);
  AAH_CHECK(repeats <= kMostExpectedRepeats, "recall task: ", options.pairs, " pairs of ",
            options.keys, " keys and ", options.values, " values make too few exercises for ",
            static_cast<int64_t>(total),
            " sequences without repeats; ask for more keys, values or pairs, or fewer sequences");
}

uint64_t SequenceSeed(uint64_t seed, Split split, int64_t index) {
  uint64_t state = seed;
  state = SplitMix64(state) + static_cast<uint64_t>(split);
  state = SplitMix64(state) + static_cast<uint64_t>(index);
  return state;
}

// The first `count` of a random order of the ids [0, bound).
std::vector<int32_t> DrawDistinct(Random& random, int32_t bound, int64_t count) {
  std::vector<int32_t> ids(static_cast<size_t>(bound));
  std::iota(ids.begin(), ids.end(), 0);
  for (int64_t i = 0; i < count; ++i) {
    std::swap(ids[i],
              ids[i + static_cast<int64_t>(random.Below(static_cast<uint64_t>(bound - i)))]);
  }
  ids.resize(static_cast<size_t>(count));
  return ids;
}

int32_t DrawId(Random& random, int32_t first, int32_t count) {
  return first + static_cast<int32_t>(random.Below(static_cast<uint64_t>(count)));
}

// Of the vocabulary alone: data of other contexts or pairs can be read by the same model.
std::string VocabularyHash(const RecallOptions& options) {
  Sha256 hash;
  hash.AddSized("aah recall vocabulary");
  for (const int32_t size : {options.keys, options.values, options.fillers}) {
    hash.Add(static_cast<uint64_t>(size));
  }
  return ToHex(hash.Finish());
}

std::string Describe(const RecallTask& task, const TokenFileInfo& info) {
  const RecallOptions& options = task.options();
  const ScoredPredictions scored = task.scored();
  const nlohmann::ordered_json root = {{"format", "aah token data"},
                                       {"version", 1},
                                       {"task",
                                        {{"name", "recall"},
                                         {"context", options.context},
                                         {"pairs", options.pairs},
                                         {"queries", options.queries},
                                         {"keys", options.keys},
                                         {"values", options.values},
                                         {"fillers", options.fillers},
                                         {"gap", task.gap()}}},
                                       {"scored",
                                        {{"context", scored.context},
                                         {"first", scored.first},
                                         {"step", scored.step},
                                         {"count", scored.count}}},
                                       {"tokenizer",
                                        {{"name", info.tokenizer_name},
                                         {"vocabulary_size", info.vocabulary_size},
                                         {"hash", info.tokenizer_hash}}},
                                       {"seed", options.seed},
                                       {"documents", info.document_count},
                                       {"tokens", info.token_count},
                                       {"bytes_per_token", info.bytes_per_token},
                                       {"end_of_document", nullptr},
                                       {"splits", DescribeSplits(info)},
                                       {"content_hash", info.content_hash}};
  return root.dump(2) + "\n";
}

}  // namespace

RecallTask::RecallTask(const RecallOptions& options) : options_(options) {
  CheckRange("a context", options.context, kLeastContext, kMostContext);
  CheckRange("key-value pairs (two tokens each, in the first quarter of the context)",
             options.pairs, 1, options.context / 8);
  CheckRange("queries (each pair at most once)", options.queries, 1, options.pairs);
  CheckRange("keys (as many as pairs or more)", options.keys, options.pairs, kMostIds);
  CheckRange("values", options.values, 2, kMostIds);
  CheckRange("fillers", options.fillers, 1, kMostIds);
  for (int split = 0; split < kSplitCount; ++split) {
    CheckRange("sequences of each split", options.sequences[static_cast<size_t>(split)], 1,
               kMostSequences);
  }
  CheckDistinct(options);
}

ScoredPredictions RecallTask::scored() const {
  // The last token is the last answer; each is predicted from the key before it.
  return {.context = options_.context,
          .first = options_.context + 1 - 2 * options_.queries,
          .step = 2,
          .count = options_.queries};
}

std::vector<int32_t> RecallTask::Sequence(Split split, int64_t index) const {
  AAH_CHECK(index >= 0, "sequences are numbered from 0, got ", index);
  Random random(SequenceSeed(options_.seed, split, index));
  const std::vector<int32_t> keys = DrawDistinct(random, options_.keys, options_.pairs);
  std::vector<int32_t> values;
  for (int64_t i = 0; i < options_.pairs; ++i) {
    values.push_back(DrawId(random, first_value(), options_.values));
  }
  const std::vector<int32_t> asked =
      DrawDistinct(random, static_cast<int32_t>(options_.pairs), options_.queries);

  std::vector<int32_t> tokens;
  const int64_t query_begin = scored().first;
  for (int64_t i = 0; i < options_.pairs; ++i) tokens.insert(tokens.end(), {keys[i], values[i]});
  while (std::ssize(tokens) < query_begin) {
    tokens.push_back(DrawId(random, first_filler(), options_.fillers));
  }
  for (const int32_t pair : asked) tokens.insert(tokens.end(), {keys[pair], values[pair]});
  return tokens;
}

TokenFileInfo PrepareRecall(const RecallOptions& options,
                            const std::function<void(int64_t, int64_t)>& progress) {
  const RecallTask task(options);
  CheckOutputFree(options.output, options.overwrite);
  DataSetFolder folder(options.output);
  TokenFileWriter writer({.path = (folder.unfinished() / "tokens.bin").string(),
                          .vocabulary_size = task.vocabulary_size(),
                          .end_of_document = std::nullopt,
                          .tokenizer_name = "recall",
                          .tokenizer_hash = VocabularyHash(options),
                          .scored = task.scored()});
  const int64_t all =
      std::accumulate(options.sequences.begin(), options.sequences.end(), int64_t{0});
  int64_t done = 0;
  for (int i = 0; i < kSplitCount; ++i) {
    const auto split = static_cast<Split>(i);
    for (int64_t index = 0; index < options.sequences[static_cast<size_t>(i)]; ++index) {
      const std::vector<int32_t> tokens = task.Sequence(split, index);
      writer.AddDocument(split, tokens, std::ssize(tokens));
      if (progress && ++done % kSequencesPerReport == 0) progress(done, all);
    }
  }
  const TokenFileInfo info = writer.Finish();
  WriteFileAtomically(folder.unfinished() / "data.json", Describe(task, info));
  folder.Commit();
  return info;
}

}  // namespace aah
