#ifndef AAH_SRC_ATTENTION_TILE_WALK_H_
#define AAH_SRC_ATTENTION_TILE_WALK_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace aah {

// What one head of one sequence may see: a Visibility with the batch and head axes gone.
struct HeadVisibility {
  int64_t queries = 0;
  int64_t key_begin = 0;
  int64_t key_end = 0;  // key_length
  int64_t window = 1;
  int64_t sinks = 0;

  // May be negative where a sequence is shorter than its queries: such a query sees nothing.
  int64_t PositionOf(int64_t query) const { return query + key_end - queries; }
  int64_t QueryAt(int64_t position) const { return position - key_end + queries; }

  // The query at `position` >= key_begin sees keys [key_begin, SinkEnd(position)) and
  // [WindowBegin(position), position]; the two are disjoint. Below key_begin both are empty.
  int64_t WindowBegin(int64_t position) const { return std::max(key_begin, position - window + 1); }
  int64_t SinkEnd(int64_t position) const {
    return std::min(SinkBoundary(), WindowBegin(position));
  }
  int64_t SinkBoundary() const { return key_begin + sinks; }

  // Whether keys lie hidden between the sinks and the window at `position`.
  bool HasGap(int64_t position) const { return WindowBegin(position) > SinkBoundary(); }
};

// A half-open run of indices.
struct Span {
  int64_t begin = 0;
  int64_t end = 0;

  bool empty() const { return begin >= end; }
  int64_t size() const { return end - begin; }
};

// The keys of [keys.begin, keys.end) that the query at `position` sees: always one run, because
// `keys` must not straddle the head's SinkBoundary() where the query has a gap (neither walk below
// yields such ranges).
Span VisibleKeys(const HeadVisibility& head, int64_t position, Span keys);

// The mirror: the queries of `queries` that see at least one key of `keys`. One run for any `keys`.
Span VisibleQueries(const HeadVisibility& head, Span queries, Span keys);

// A run of keys that a block of queries touches. `full`: every query of the block sees every key of
// the run; otherwise the kernel masks by VisibleKeys.
struct KeyRange {
  int64_t begin = 0;
  int64_t end = 0;
  bool full = false;

  Span span() const { return {begin, end}; }
};

// The key ranges that queries [query_begin, query_end) touch, ascending and disjoint, into `ranges`
// (overwritten). Each key of a range is seen by at least one of the queries, and each lies within
// one block [n * key_block, (n + 1) * key_block), so that panels packed per block serve every query
// block. Where any of the queries has a gap, a range ends at SinkBoundary().
void KeyRangesOf(const HeadVisibility& head, int64_t query_begin, int64_t query_end,
                 int64_t key_block, std::vector<KeyRange>& ranges);

// The transpose: the query ranges that touch keys [key_begin, key_end), marked alike, each within
// one aligned block of `query_block` queries. For use with VisibleKeys cut the keys at
// SinkBoundary() first.
struct QueryRange {
  int64_t begin = 0;
  int64_t end = 0;
  bool full = false;

  Span span() const { return {begin, end}; }
};
void QueryRangesOf(const HeadVisibility& head, int64_t key_begin, int64_t key_end,
                   int64_t query_block, std::vector<QueryRange>& ranges);

// Visible pairs of queries [query_begin, query_end): the cost of a task.
int64_t VisiblePairsOf(const HeadVisibility& head, int64_t query_begin, int64_t query_end);

}  // namespace aah

#endif  // AAH_SRC_ATTENTION_TILE_WALK_H_
