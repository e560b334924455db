#ifndef AAH_SRC_ATTENTION_TILE_WALK_H_
#define AAH_SRC_ATTENTION_TILE_WALK_H_

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

  int64_t PositionOf(int64_t query) const { return query + key_end - queries; }
  // Keys [0, SinkEnd(p)) and [WindowBegin(p), p] are visible at position p, from key_begin on; the
  // two are disjoint.
  int64_t WindowBegin(int64_t position) const;
  int64_t SinkEnd(int64_t position) const;
};

// A run of keys that a block of queries touches. `full`: every query of the block sees every key of
// the run; otherwise the kernel masks by HeadVisibility ("edge").
struct KeyRange {
  int64_t begin = 0;
  int64_t end = 0;
  bool full = false;
};

// The key ranges that queries [query_begin, query_end) touch, ascending, disjoint, each at most
// one of: sinks, window's left edge, full middle, causal edge. Ranges are aligned to `key_block`
// where a block boundary lies inside, so that packed panels of keys serve every query block.
void KeyRangesOf(const HeadVisibility& head, int64_t query_begin, int64_t query_end,
                 int64_t key_block, std::vector<KeyRange>& ranges);

// The transpose: the query ranges that touch keys [key_begin, key_end), marked alike.
struct QueryRange {
  int64_t begin = 0;
  int64_t end = 0;
  bool full = false;
};
void QueryRangesOf(const HeadVisibility& head, int64_t key_begin, int64_t key_end,
                   int64_t query_block, std::vector<QueryRange>& ranges);

}  // namespace aah

#endif  // AAH_SRC_ATTENTION_TILE_WALK_H_
