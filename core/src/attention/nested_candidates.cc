#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "aah/error.h"
#include "attention/nested.h"

namespace aah {
namespace {

void CheckWindows(std::span<const int32_t> windows) {
  AAH_CHECK(!windows.empty(), "windows is empty: expected at least one candidate");
  for (size_t n = 0; n < windows.size(); ++n) {
    AAH_CHECK(windows[n] >= 1, "windows[", n, "] is ", windows[n],
              ": a window counts the query's own key, so it is at least 1");
    AAH_CHECK(n == 0 || windows[n] > windows[n - 1], "windows[", n, "] is ", windows[n], ", after ",
              n == 0 ? 0 : windows[n - 1],
              ": candidates must ascend, each wider than the one before");
  }
}

void CheckEntries(const AttentionShape& shape, int64_t candidates, const char* name, size_t size) {
  AAH_CHECK(static_cast<int64_t>(size) == shape.heads * candidates, name, " has ", size,
            " entries: expected one per query head and candidate, ", shape.heads, " * ",
            candidates);
}

template <typename Weight>
void CheckWeights(const NestedCandidates& candidates, int64_t heads,
                  std::span<const Weight> selection) {
  for (int64_t head = 0; head < heads; ++head) {
    for (const NestedCandidates::Candidate& candidate : candidates.Of(head)) {
      const Weight weight = selection[candidates.Entry(head, candidate)];
      AAH_CHECK(std::isfinite(weight) && weight >= 0, "selection[", head, "][", candidate.index,
                "] is ", weight, ": expected a finite weight of 0 or more");
    }
  }
}

}  // namespace

NestedCandidates::NestedCandidates(const NestedVisibility& visibility, int64_t heads)
    : candidates_(static_cast<int64_t>(visibility.windows.size())), visibility_(visibility) {
  CheckWindows(visibility.windows);
  const std::span<const uint8_t> live = visibility.live;
  AAH_CHECK(live.empty() || static_cast<int64_t>(live.size()) == heads * candidates_, "live has ",
            live.size(), " entries: expected one per query head and candidate, ", heads, " * ",
            candidates_, ", or none");
  first_.push_back(0);
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t n = 0; n < candidates_; ++n) {
      if (!live.empty() && live[static_cast<size_t>(head * candidates_ + n)] == 0) continue;
      live_.push_back({n, slots(), visibility.windows[static_cast<size_t>(n)]});
    }
    AAH_CHECK(live_.size() > first_.back(), "live has no candidate for head ", head,
              ": expected at least one per head");
    first_.push_back(live_.size());
    widest_.push_back(live_.back().window);
  }
}

Visibility NestedCandidates::Widest() const {
  return {widest_, visibility_.sinks, visibility_.key_begin, visibility_.key_length};
}

void NestedCandidates::CheckSlots(const AttentionShape& shape, const NamedShape& candidate_out,
                                  const NamedShape& log_sum_exp) const {
  AttentionShape slots_as_heads = shape;
  slots_as_heads.heads = slots();
  CheckLikeQuery(slots_as_heads, candidate_out);
  CheckLikeLogSumExp(slots_as_heads, log_sum_exp);
  AAH_CHECK(log_sum_exp.strides.back() == 1 || shape.queries == 1, log_sum_exp.name,
            "'s last stride is ", log_sum_exp.strides.back(),
            ": rows must be neighbours, so make the tensor contiguous");
}

void NestedCandidates::CheckSelection(const AttentionShape& shape,
                                      std::span<const float> selection) const {
  CheckEntries(shape, candidates_, "selection", selection.size());
  CheckWeights(*this, shape.heads, selection);
}

void NestedCandidates::CheckSelection(const AttentionShape& shape,
                                      std::span<const double> selection) const {
  CheckEntries(shape, candidates_, "selection", selection.size());
  CheckWeights(*this, shape.heads, selection);
}

void NestedCandidates::CheckGradSelection(const AttentionShape& shape, size_t size) const {
  CheckEntries(shape, candidates_, "grad_selection", size);
}

HeadVisibility BandOf(HeadVisibility head, int64_t inner, int64_t outer) {
  head.window = outer - inner;
  if (inner == 0) return head;
  head.key_begin = head.SinkBoundary();
  head.key_end -= inner;
  head.sinks = 0;
  return head;
}

int64_t LiveCandidates(const NestedVisibility& visibility, int64_t heads) {
  return NestedCandidates(visibility, heads).slots();
}

}  // namespace aah
