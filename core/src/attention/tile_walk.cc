#include "attention/tile_walk.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "aah/attention.h"
#include "aah/error.h"

namespace aah {
namespace {

// Sum over positions [begin, end) of min(position + 1, most): rows that start at key 0.
int64_t SumOfRowLengths(int64_t begin, int64_t end, int64_t most) {
  const int64_t bend = std::clamp(most, begin, end);  // from here on every row has `most` keys
  const int64_t growing = (begin + 1 + bend) * (bend - begin) / 2;
  return growing + (end - bend) * most;
}

// Whether the query at `position` sees every key of `keys` (not empty, none before key_begin).
bool SeesAll(const HeadVisibility& head, int64_t position, Span keys) {
  if (position < keys.end - 1) return false;
  return keys.begin >= head.WindowBegin(position) || keys.end <= head.SinkBoundary() ||
         !head.HasGap(position);
}

void AppendBlocks(const HeadVisibility& head, Span positions, Span keys, int64_t key_block,
                  std::vector<KeyRange>& ranges) {
  for (int64_t begin = keys.begin; begin < keys.end;) {
    const int64_t end = std::min(keys.end, (begin / key_block + 1) * key_block);
    // What a middle query sees lies between what the first and the last see.
    const bool full = SeesAll(head, positions.begin, {begin, end}) &&
                      SeesAll(head, positions.end - 1, {begin, end});
    ranges.push_back({begin, end, full});
    begin = end;
  }
}

}  // namespace

Span VisibleKeys(const HeadVisibility& head, int64_t position, Span keys) {
  const int64_t end = std::min(keys.end, position + 1);
  const int64_t window_begin = keys.begin < head.SinkBoundary() ? head.key_begin  // sinks, no gap
                                                                : head.WindowBegin(position);
  const int64_t begin = std::max(keys.begin, window_begin);
  return {begin, std::max(begin, end)};
}

Span VisibleQueries(const HeadVisibility& head, Span queries, Span keys) {
  const int64_t first_key = std::max(keys.begin, head.key_begin);
  const int64_t last_key = std::min(keys.end, head.key_end) - 1;
  if (first_key > last_key) return {queries.begin, queries.begin};
  const int64_t begin = std::max(queries.begin, head.QueryAt(first_key));
  int64_t end = queries.end;
  if (first_key >= head.SinkBoundary()) {
    end = std::min(end, head.QueryAt(last_key) + head.window);
  }
  return {begin, std::max(begin, end)};
}

void KeyRangesOf(const HeadVisibility& head, int64_t query_begin, int64_t query_end,
                 int64_t key_block, std::vector<KeyRange>& ranges) {
  ranges.clear();
  // `full` speaks of all queries of the block, also of those that see nothing at all.
  const Span positions = {head.PositionOf(query_begin), head.PositionOf(query_end)};
  const int64_t first = std::max(positions.begin, head.key_begin);
  const int64_t last = positions.end - 1;
  if (first > last) return;
  int64_t window_begin = head.WindowBegin(first);
  if (head.HasGap(last)) {
    AppendBlocks(head, positions, {head.key_begin, head.SinkBoundary()}, key_block, ranges);
    window_begin = std::max(window_begin, head.SinkBoundary());
  } else if (head.sinks > 0) {
    window_begin = head.key_begin;
  }
  AppendBlocks(head, positions, {window_begin, last + 1}, key_block, ranges);
}

void QueryRangesOf(const HeadVisibility& head, int64_t key_begin, int64_t key_end,
                   int64_t query_block, std::vector<QueryRange>& ranges) {
  ranges.clear();
  const Span keys = {key_begin, key_end};
  const Span visible = VisibleQueries(head, {0, head.queries}, keys);
  for (int64_t begin = visible.begin; begin < visible.end;) {
    const int64_t end = std::min(visible.end, (begin / query_block + 1) * query_block);
    const bool full = key_begin >= head.key_begin && key_end <= head.key_end &&
                      SeesAll(head, head.PositionOf(begin), keys) &&
                      SeesAll(head, head.PositionOf(end - 1), keys);
    ranges.push_back({begin, end, full});
    begin = end;
  }
}

int64_t VisiblePairsOf(const HeadVisibility& head, int64_t query_begin, int64_t query_end) {
  const int64_t begin = std::max<int64_t>(head.PositionOf(query_begin) - head.key_begin, 0);
  const int64_t end = std::max(head.PositionOf(query_end) - head.key_begin, begin);
  return SumOfRowLengths(begin, end, head.window + head.sinks);
}

int64_t VisiblePairs(int32_t window, int32_t sinks, int64_t queries, int64_t keys) {
  AAH_CHECK(window >= 1, "window is ", window,
            ": a window counts the query's own key, so it is at least 1");
  AAH_CHECK(sinks >= 0, "sinks is ", sinks, ": expected 0 or more");
  AAH_CHECK(queries >= 0 && queries <= keys, "queries is ", queries, ", keys is ", keys,
            ": the queries are the last ones of the keys, so give at least as many keys");
  const HeadVisibility head = {queries, 0, keys, window, sinks};
  return VisiblePairsOf(head, 0, queries);
}

}  // namespace aah
