#ifndef AAH_TEXT_PREPARE_H_
#define AAH_TEXT_PREPARE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "aah/text/corpus.h"
#include "aah/text/token_file.h"

namespace aah {

enum class SplitRule {
  kAuto,      // kDocument from 20 documents on, kPosition below
  kDocument,  // whole documents, drawn at random
  kPosition,  // the first part of the text trains, the next validates, the last tests
};

struct PrepareOptions {
  // "kjv", "pystdlib", or paths of text files, JSONL files and folders (FileCorpusOptions).
  std::vector<std::string> sources;
  std::vector<std::string> extensions;
  std::string field = "text";

  std::string tokenizer = "bytes";  // as LoadTokenizer takes it

  SplitRule split = SplitRule::kAuto;
  double validation_fraction = 0.05;  // of the text's bytes, in [0, 1)
  double test_fraction = 0.05;        // their sum below 1
  uint64_t seed = 0;                  // which documents go where, for kDocument

  std::string output;      // a folder; made where it is missing
  bool overwrite = false;  // replace the data set that is there; otherwise it is an error
};

struct PrepareProgress {
  int64_t documents_done = 0;
  int64_t documents = 0;
  int64_t bytes_done = 0;
  int64_t bytes = 0;
};

struct PrepareResult {
  TokenFileInfo info;
  std::string token_path;  // output/tokens.bin
  int64_t duplicates_dropped = 0;
  int64_t empty_dropped = 0;
  SplitRule split = SplitRule::kAuto;  // the rule applied, never kAuto
};

// Writes into `output`: tokens.bin (TokenFile), tokenizer.json, and data.json, which says for
// people and programs what tokens.bin holds and how it was made. A document cut by kPosition is cut
// at the next line end, or between two characters where no line end is near, and its parts are
// documents of their own. An end-of-document token follows every document where there are several
// and the tokenizer has one.
//
// `progress`, if given, is called after every document; an exception it throws stops the work.
// tokens.bin appears whole or not at all. Throws aah::Error for bad options, an unknown corpus, a
// text that is not UTF-8, output that is there already, several documents that contain the
// end-of-document token, or nothing left to train on.
PrepareResult PrepareData(const PrepareOptions& options,
                          const std::function<void(const PrepareProgress&)>& progress = {});

}  // namespace aah

#endif  // AAH_TEXT_PREPARE_H_
