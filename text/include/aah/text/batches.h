#ifndef AAH_TEXT_BATCHES_H_
#define AAH_TEXT_BATCHES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "aah/text/token_file.h"

namespace aah {

enum class BoundaryRule {
  // kDocument where the documents of at least `context + 1` tokens hold 90 % of the split's tokens,
  // else kStream.
  kAuto,
  // Every stretch lies inside one document; shorter documents are not used.
  kDocument,
  // The split is one stream: stretches cross documents, which end-of-document tokens separate, but
  // never the split's ends.
  kStream,
};

// Where stretches of context + 1 tokens may begin in one split: the shared ground of training
// batches and evaluation. `file` must outlive it.
class StretchSpace {
 public:
  // Throws aah::Error for context < 1 and where no stretch fits, with both sizes; where the file
  // says which predictions count, also for another context than its own and for kStream.
  StretchSpace(const TokenFile& file, Split split, int64_t context, BoundaryRule rule);

  int64_t context() const { return context_; }
  BoundaryRule rule() const { return rule_; }  // the rule applied, never kAuto
  int64_t start_count() const { return start_count_; }
  int64_t usable_tokens() const { return usable_tokens_; }  // tokens some stretch can reach
  const TokenFile& file() const { return *file_; }

  // The token position of allowed start `index` in [0, start_count()).
  int64_t Start(int64_t index) const;

  // Begins of stretches whose `context` predictions do not overlap, from the front of each range.
  std::vector<int64_t> Disjoint() const;

 private:
  const TokenFile* file_;
  int64_t context_;
  BoundaryRule rule_;
  int64_t start_count_ = 0;
  int64_t usable_tokens_ = 0;
  std::vector<TokenRange> ranges_;      // that hold at least one stretch
  std::vector<int64_t> starts_before_;  // [ranges], allowed starts in earlier ranges
};

// Training stretches. Sample `i` is a pure function of the file, the seed and `i`: the number of
// samples drawn so far is all the state that a resumed run needs, and a batch cut into smaller ones
// is the same text. Starts are drawn uniformly, with replacement. `file` must outlive it.
class TrainingBatches {
 public:
  TrainingBatches(const TokenFile& file, int64_t context, uint64_t seed,
                  BoundaryRule rule = BoundaryRule::kAuto);

  const StretchSpace& space() const { return space_; }

  // Samples [first_sample, first_sample + count) into out, [count, context + 1] row-major: row r is
  // inputs out[r][0 .. context) and targets out[r][1 .. context].
  void Fill(int64_t first_sample, int64_t count, std::span<int32_t> out) const;
  void Fill(int64_t first_sample, int64_t count, std::span<int64_t> out) const;

 private:
  int64_t SampleStart(int64_t sample) const;
  template <typename Id>
  void FillAs(int64_t first_sample, int64_t count, std::span<Id> out) const;

  StretchSpace space_;
  uint64_t seed_;
};

// Fixed stretches for validation and test: at most `max_count` of the split's disjoint stretches,
// evenly spread over it, the same ones at every call and in every run. `file` must outlive it.
class EvaluationStretches {
 public:
  // max_count < 1 means all.
  EvaluationStretches(const TokenFile& file, Split split, int64_t context, int64_t max_count,
                      BoundaryRule rule = BoundaryRule::kAuto);

  const StretchSpace& space() const { return space_; }
  int64_t count() const { return static_cast<int64_t>(starts_.size()); }
  std::span<const int64_t> starts() const { return starts_; }

  // Bytes of text per token of the split: mean nats per token / (ln 2 * bytes_per_token()) is bits
  // per byte.
  double bytes_per_token() const { return bytes_per_token_; }

  // Stretches [first, first + count) into out, [count, context + 1] row-major.
  void Fill(int64_t first, int64_t count, std::span<int32_t> out) const;
  void Fill(int64_t first, int64_t count, std::span<int64_t> out) const;

 private:
  template <typename Id>
  void FillAs(int64_t first, int64_t count, std::span<Id> out) const;

  StretchSpace space_;
  std::vector<int64_t> starts_;
  double bytes_per_token_ = 0;
};

}  // namespace aah

#endif  // AAH_TEXT_BATCHES_H_
