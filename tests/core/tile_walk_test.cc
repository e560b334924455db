#include "attention/tile_walk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "aah/attention.h"
#include "aah/error.h"
#include "aah/random.h"

namespace aah {
namespace {

using ::testing::ThrowsMessage;

// The definition of METHOD: what a walk must agree with.
bool Sees(const HeadVisibility& head, int64_t query, int64_t key) {
  const int64_t position = query + head.key_end - head.queries;
  return head.key_begin <= key && key <= position &&
         (position - head.window < key || key < head.key_begin + head.sinks);
}

std::string Describe(const HeadVisibility& head) {
  return "queries " + std::to_string(head.queries) + ", keys [" + std::to_string(head.key_begin) +
         ", " + std::to_string(head.key_end) + "), window " + std::to_string(head.window) +
         ", sinks " + std::to_string(head.sinks);
}

HeadVisibility Draw(Random& random) {
  const auto below = [&random](int64_t bound) {
    return static_cast<int64_t>(random.Below(static_cast<uint64_t>(bound)));
  };
  HeadVisibility head;
  head.key_end = below(60);
  head.queries = 1 + below(60);
  head.key_begin = below(2) * below(62);
  head.window = 1 + below(70);
  head.sinks = below(2) * below(12);
  return head;
}

constexpr int64_t kMostKeys = 64;

TEST(TileWalk, KeyRangesAreTheVisibleKeys) {
  Random random(1);
  std::vector<KeyRange> ranges;
  for (int draw = 0; draw < 4000; ++draw) {
    const HeadVisibility head = Draw(random);
    const int64_t query_begin = static_cast<int64_t>(random.Below(uint64_t(head.queries)));
    const int64_t query_end =
        query_begin + 1 +
        static_cast<int64_t>(random.Below(static_cast<uint64_t>(head.queries - query_begin)));
    const int64_t block = 1 + static_cast<int64_t>(random.Below(20));
    SCOPED_TRACE(Describe(head) + ", block of queries [" + std::to_string(query_begin) + ", " +
                 std::to_string(query_end) + "), key_block " + std::to_string(block));
    KeyRangesOf(head, query_begin, query_end, block, ranges);
    std::vector<int> covered(kMostKeys);
    int64_t before = 0;
    for (const KeyRange& range : ranges) {
      ASSERT_LE(before, range.begin);
      ASSERT_LT(range.begin, range.end);
      ASSERT_LE(range.end, head.key_end);
      ASSERT_EQ(range.begin / block, (range.end - 1) / block);
      before = range.end;
      bool full = true;
      for (int64_t key = range.begin; key < range.end; ++key) {
        covered[static_cast<size_t>(key)] = 1;
        for (int64_t query = query_begin; query < query_end; ++query) {
          full = full && Sees(head, query, key);
          const Span visible = VisibleKeys(head, head.PositionOf(query), range.span());
          ASSERT_EQ(visible.begin <= key && key < visible.end, Sees(head, query, key));
        }
      }
      ASSERT_EQ(range.full, full);
    }
    for (int64_t key = 0; key < kMostKeys; ++key) {
      bool seen = false;
      for (int64_t query = query_begin; query < query_end; ++query) {
        seen = seen || Sees(head, query, key);
      }
      ASSERT_EQ(covered[static_cast<size_t>(key)], seen ? 1 : 0) << "key " << key;
    }
  }
}

TEST(TileWalk, QueryRangesAreTheTranspose) {
  Random random(2);
  std::vector<QueryRange> ranges;
  for (int draw = 0; draw < 4000; ++draw) {
    const HeadVisibility head = Draw(random);
    const int64_t key_begin = static_cast<int64_t>(random.Below(60));
    const int64_t key_end = key_begin + 1 + static_cast<int64_t>(random.Below(20));
    const int64_t block = 1 + static_cast<int64_t>(random.Below(20));
    SCOPED_TRACE(Describe(head) + ", keys [" + std::to_string(key_begin) + ", " +
                 std::to_string(key_end) + "), query_block " + std::to_string(block));
    QueryRangesOf(head, key_begin, key_end, block, ranges);
    std::vector<int> covered(static_cast<size_t>(head.queries));
    int64_t before = 0;
    for (const QueryRange& range : ranges) {
      ASSERT_LE(before, range.begin);
      ASSERT_LT(range.begin, range.end);
      ASSERT_LE(range.end, head.queries);
      ASSERT_EQ(range.begin / block, (range.end - 1) / block);
      before = range.end;
      bool full = true;
      for (int64_t query = range.begin; query < range.end; ++query) {
        covered[static_cast<size_t>(query)] = 1;
        for (int64_t key = key_begin; key < key_end; ++key) full = full && Sees(head, query, key);
      }
      ASSERT_EQ(range.full, full);
    }
    const Span visible = VisibleQueries(head, {0, head.queries}, {key_begin, key_end});
    for (int64_t query = 0; query < head.queries; ++query) {
      bool seen = false;
      for (int64_t key = key_begin; key < key_end; ++key) seen = seen || Sees(head, query, key);
      ASSERT_EQ(covered[static_cast<size_t>(query)], seen ? 1 : 0) << "query " << query;
      ASSERT_EQ(visible.begin <= query && query < visible.end, seen) << "query " << query;
    }
  }
}

TEST(TileWalk, VisiblePairsAreCounted) {
  Random random(3);
  for (int draw = 0; draw < 2000; ++draw) {
    const HeadVisibility head = Draw(random);
    const int64_t middle = static_cast<int64_t>(random.Below(uint64_t(head.queries)));
    int64_t pairs[2] = {0, 0};
    for (int64_t query = 0; query < head.queries; ++query) {
      for (int64_t key = 0; key < kMostKeys; ++key) {
        pairs[query < middle ? 0 : 1] += Sees(head, query, key) ? 1 : 0;
      }
    }
    SCOPED_TRACE(Describe(head));
    EXPECT_EQ(VisiblePairsOf(head, 0, middle), pairs[0]);
    EXPECT_EQ(VisiblePairsOf(head, middle, head.queries), pairs[1]);
    if (head.key_begin > 0 || head.queries > head.key_end) continue;
    EXPECT_EQ(VisiblePairs(static_cast<int32_t>(head.window), static_cast<int32_t>(head.sinks),
                           head.queries, head.key_end),
              pairs[0] + pairs[1]);
  }
  EXPECT_EQ(VisiblePairs(4096, 0, 4096, 4096), 4096 * 4097 / 2);
  EXPECT_EQ(VisiblePairs(1, 0, 10, 4096), 10);
}

TEST(TileWalk, VisiblePairsRefusesWhatHasNoMeaning) {
  EXPECT_THAT([] { VisiblePairs(0, 0, 1, 1); },
              ThrowsMessage<Error>(
                  "window is 0: a window counts the query's own key, so it is at least 1"));
  EXPECT_THAT([] { VisiblePairs(1, 0, 2, 1); },
              ThrowsMessage<Error>("queries is 2, keys is 1: the queries are the last ones of the "
                                   "keys, so give at least as many keys"));
}

}  // namespace
}  // namespace aah
