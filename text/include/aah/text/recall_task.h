#ifndef AAH_TEXT_RECALL_TASK_H_
#define AAH_TEXT_RECALL_TASK_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "aah/text/token_file.h"

namespace aah {

// Multi-query associative recall (after Arora et al., "Zoology", 2023): a task whose right
// allocation of context is known. A sequence of context + 1 tokens is
//
//   key value key value ... | filler ... filler | key value key value ...
//   in the first quarter                          in the last quarter
//
// The first keys differ from each other and their values are drawn freely; each key of the last
// quarter repeats one of them, none twice, in a random order, and its value is the answer. Only
// answers count (TokenFileInfo::scored). Without sight of the first quarter an answer is one of
// `values` equally likely ids: earlier answers say nothing about it. A model needs a near head that
// joins each value to the key before it, and in a later layer a head that sees nearly the whole
// context; narrow windows relay over layers only what lies within the sum of their widths, and that
// must be chosen below RecallTask::gap().
struct RecallOptions {
  int64_t context = 256;  // predictions per sequence, at least 16
  int64_t pairs = 8;      // at most an eighth of the context
  int64_t queries = 8;    // at most `pairs`
  // Sizes of three vocabularies without overlap: ids of keys, then of values, then of fillers.
  int32_t keys = 32;  // at least `pairs`
  int32_t values = 32;
  int32_t fillers = 16;

  std::array<int64_t, kSplitCount> sequences = {50000, 1000, 1000};  // each at least 1
  uint64_t seed = 0;

  std::string output;  // a folder; made where it is missing; for PrepareRecall only
  bool overwrite = false;
};

class RecallTask {
 public:
  // Throws aah::Error where a size is out of its bounds, or where the sequences asked for are so
  // many that two equal ones, hence an overlap of splits, would be likely.
  explicit RecallTask(const RecallOptions& options);

  const RecallOptions& options() const { return options_; }
  int32_t vocabulary_size() const { return options_.keys + options_.values + options_.fillers; }
  int32_t first_value() const { return options_.keys; }
  int32_t first_filler() const { return options_.keys + options_.values; }

  // The least number of tokens from a queried key back to its value: a window must exceed it to
  // show any value to any query.
  int64_t gap() const { return options_.context + 2 - 2 * options_.queries - 2 * options_.pairs; }

  ScoredPredictions scored() const;

  // Sequence `index` >= 0 of a split, [context + 1]: a pure function of the options' sizes, their
  // seed, the split and the index.
  std::vector<int32_t> Sequence(Split split, int64_t index) const;

 private:
  RecallOptions options_;
};

// Writes tokens.bin and data.json, as PrepareData does, into options.output; there is no
// tokenizer.json, since ids stand for no text. Every sequence is one document; text_bytes counts
// tokens, so that "bits per byte" of this data are bits per token. `progress`, if given, is called
// now and then with the sequences done and the sequences in all. Returns what the token file says.
// Throws aah::Error as RecallTask does, and where a data set is there already.
TokenFileInfo PrepareRecall(const RecallOptions& options,
                            const std::function<void(int64_t, int64_t)>& progress = {});

}  // namespace aah

#endif  // AAH_TEXT_RECALL_TASK_H_
