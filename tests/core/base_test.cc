#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "aah/error.h"
#include "aah/nearest_name.h"
#include "aah/parallel.h"
#include "aah/random.h"

namespace aah {
namespace {

TEST(NearestName, FindsTheLeastEditDistance) {
  const std::vector<std::string> known = {"window", "windows", "warmup_steps"};
  EXPECT_EQ(NearestName("windws", known), "windows");
  EXPECT_EQ(NearestName("zzzzzz", known), "");
  EXPECT_EQ(NearestNameHint("warmup_step", known), " (did you mean 'warmup_steps'?)");
  EXPECT_EQ(NearestNameHint("q", known), ", known: window, windows, warmup_steps");
}

TEST(ThreadPool, RunsEveryTaskExactlyOnceForAnyNumberOfWorkers) {
  for (const int workers : {1, 2, 3, 7}) {
    const auto pool = MakeThreadPool(workers);
    ASSERT_EQ(pool->worker_count(), workers);
    for (int repeat = 0; repeat < 50; ++repeat) {
      std::array<std::atomic<int>, 101> counts = {};
      ForEachTask(*pool, 101, [&](int64_t index, int worker) {
        ASSERT_LT(worker, workers);
        ++counts[static_cast<size_t>(index)];
      });
      for (const auto& count : counts) ASSERT_EQ(count.load(), 1);
    }
  }
}

TEST(ThreadPool, RethrowsAWorkersErrorAndStaysUsable) {
  const auto pool = MakeThreadPool(3);
  const auto fail = [&] {
    pool->RunOnWorkers([](int worker) { AAH_CHECK(worker != 2, "worker ", worker); });
  };
  EXPECT_THAT(fail, testing::ThrowsMessage<Error>("worker 2"));
  std::atomic<int> sum = 0;
  pool->RunOnWorkers([&](int worker) { sum += worker; });
  EXPECT_EQ(sum.load(), 3);
}

TEST(ThreadPool, RefusesNoWorkers) { EXPECT_THROW(MakeThreadPool(0), Error); }

TEST(Random, IsXoshiro256StarStarSeededThroughSplitMix64) {
  // Published first outputs of xoshiro256** for the state {1, 2, 3, 4}.
  Random random(0);
  random.set_state({1, 2, 3, 4});
  EXPECT_EQ(random.Next(), 11520U);
  EXPECT_EQ(random.Next(), 0U);
  EXPECT_EQ(random.Next(), 1509978240U);
  EXPECT_EQ(random.Next(), 1215971899390074240U);
}

TEST(Random, BelowIsInRangeAndReachesEveryValue) {
  Random random(7);
  std::array<int, 5> seen = {};
  for (int i = 0; i < 1000; ++i) ++seen.at(random.Below(5));
  for (const int count : seen) EXPECT_GT(count, 100);
}

}  // namespace
}  // namespace aah
