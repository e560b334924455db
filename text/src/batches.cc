#include "aah/text/batches.h"

#include <algorithm>

#include "aah/error.h"
#include "aah/random.h"

namespace aah {
namespace {

// Of a split's tokens, how many documents long enough for one stretch must hold for kAuto to keep
// stretches inside documents.
constexpr double kEnoughInLongDocuments = 0.9;

template <typename Id>
void CheckRoom(int64_t count, int64_t context, std::span<Id> out) {
  AAH_CHECK(count >= 0 && static_cast<int64_t>(out.size()) == count * (context + 1), "a batch of ",
            count, " stretches needs room for ", count, " x ", context + 1, " ids, got ",
            out.size());
}

}  // namespace

StretchSpace::StretchSpace(const TokenFile& file, Split split, int64_t context, BoundaryRule rule)
    : file_(&file), context_(context), rule_(rule) {
  AAH_CHECK(context >= 1, "a context is at least 1 token, got ", context);
  if (const auto& scored = file.info().scored) {
    AAH_CHECK(context == scored->context && rule != BoundaryRule::kStream, file.path(),
              ": expected the context that the task was made for, ", scored->context,
              ", within documents, got ", context,
              rule == BoundaryRule::kStream ? " across documents" : "",
              "; set model.context or prepare the task for that context");
  }
  const SplitInfo& part = file.split(split);
  int64_t longest = 0;
  for (int64_t i = part.documents.begin; i < part.documents.end; ++i) {
    const TokenRange document = file.Document(i);
    longest = std::max(longest, document.size());
    if (document.size() > context) {
      ranges_.push_back(document);
      usable_tokens_ += document.size();
    }
  }
  const auto all = static_cast<double>(part.tokens.size());
  if (rule_ == BoundaryRule::kAuto) {
    const bool enough = static_cast<double>(usable_tokens_) >= kEnoughInLongDocuments * all;
    rule_ = enough && all > 0 ? BoundaryRule::kDocument : BoundaryRule::kStream;
  }
  if (rule_ == BoundaryRule::kStream) {
    ranges_.clear();
    usable_tokens_ = 0;
    if (part.tokens.size() > context) {
      ranges_.push_back(part.tokens);
      usable_tokens_ = part.tokens.size();
    }
    longest = part.tokens.size();
  }
  AAH_CHECK(!ranges_.empty(), file.path(), ": a context of ", context, " needs ",
            static_cast<uint64_t>(context) + 1, " tokens in a row, the ", SplitName(split),
            " split has ", longest, "; shorten the context or prepare more text");
  for (const TokenRange& range : ranges_) {
    starts_before_.push_back(start_count_);
    start_count_ += range.size() - context;
  }
}

int64_t StretchSpace::Start(int64_t index) const {
  AAH_CHECK(index >= 0 && index < start_count_, "there is no start ", index, " among ",
            start_count_);
  const auto after = std::ranges::upper_bound(starts_before_, index);
  const int64_t range = after - starts_before_.begin() - 1;
  return ranges_[range].begin + index - starts_before_[range];
}

std::vector<int64_t> StretchSpace::Disjoint() const {
  std::vector<int64_t> starts;
  for (const TokenRange& range : ranges_) {
    for (int64_t start = range.begin; start + context_ < range.end; start += context_) {
      starts.push_back(start);
    }
  }
  return starts;
}

TrainingBatches::TrainingBatches(const TokenFile& file, int64_t context, uint64_t seed,
                                 BoundaryRule rule)
    : space_(file, Split::kTrain, context, rule), seed_(seed) {}

int64_t TrainingBatches::SampleStart(int64_t sample) const {
  uint64_t state = seed_;
  const uint64_t mixed_seed = SplitMix64(state);
  Random random(mixed_seed ^ static_cast<uint64_t>(sample));
  return space_.Start(
      static_cast<int64_t>(random.Below(static_cast<uint64_t>(space_.start_count()))));
}

template <typename Id>
void TrainingBatches::FillAs(int64_t first_sample, int64_t count, std::span<Id> out) const {
  const int64_t length = space_.context() + 1;
  CheckRoom(count, space_.context(), out);
  AAH_CHECK(first_sample >= 0, "samples are numbered from 0, got ", first_sample);
  for (int64_t row = 0; row < count; ++row) {
    space_.file().Read(SampleStart(first_sample + row), out.subspan(row * length, length));
  }
}

void TrainingBatches::Fill(int64_t first_sample, int64_t count, std::span<int32_t> out) const {
  FillAs(first_sample, count, out);
}

void TrainingBatches::Fill(int64_t first_sample, int64_t count, std::span<int64_t> out) const {
  FillAs(first_sample, count, out);
}

EvaluationStretches::EvaluationStretches(const TokenFile& file, Split split, int64_t context,
                                         int64_t max_count, BoundaryRule rule)
    : space_(file, split, context, rule) {
  const std::vector<int64_t> all = space_.Disjoint();
  const auto available = static_cast<int64_t>(all.size());
  const int64_t count = max_count < 1 ? available : std::min(available, max_count);
  for (int64_t i = 0; i < count; ++i) starts_.push_back(all[i * available / count]);
  const SplitInfo& part = file.split(split);
  bytes_per_token_ = static_cast<double>(part.text_bytes) / static_cast<double>(part.tokens.size());
}

template <typename Id>
void EvaluationStretches::FillAs(int64_t first, int64_t count, std::span<Id> out) const {
  const int64_t length = space_.context() + 1;
  CheckRoom(count, space_.context(), out);
  AAH_CHECK(first >= 0 && first <= this->count() - count, "expected stretches among ",
            this->count(), ", got ", count, " from ", first);
  for (int64_t row = 0; row < count; ++row) {
    space_.file().Read(starts_[first + row], out.subspan(row * length, length));
  }
}

void EvaluationStretches::Fill(int64_t first, int64_t count, std::span<int32_t> out) const {
  FillAs(first, count, out);
}

void EvaluationStretches::Fill(int64_t first, int64_t count, std::span<int64_t> out) const {
  FillAs(first, count, out);
}

}  // namespace aah
