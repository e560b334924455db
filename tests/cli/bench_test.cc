#include "aah/lab/bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "bench/attention_probes.h"
#include "bench/attention_ratios.h"
#include "bench/interleaved.h"

namespace aah {
namespace {

using ::testing::ElementsAre;

TEST(BenchTest, CountsVisiblePairs) {
  EXPECT_EQ(bench::VisiblePairRatio(bench::UniformWindows(64), 64), 1);
  // 4 tokens, window 2: 1 + 2 + 2 + 2 of 10.
  EXPECT_DOUBLE_EQ(bench::VisiblePairRatio(bench::UniformWindows(2), 4), 0.7);
  EXPECT_THAT(bench::MixedWindows(64), ElementsAre(8, 8, 16, 16, 32, 32, 64, 64));
  // Per head 4 * 64 operations a pair, 10 pairs.
  EXPECT_EQ(bench::ForwardFlops(bench::UniformWindows(4), 4), 8 * 4 * 64 * 10);
  EXPECT_EQ(bench::BackwardFlops(bench::UniformWindows(4), 4), 8 * 10 * 64 * 10);
}

TEST(BenchTest, FindsTheWindowNearestToARatio) {
  EXPECT_EQ(bench::WindowForRatio(1, 64), 64);
  for (const int64_t tokens : {64, 1000, 4096}) {
    for (const double ratio : {0.5, 0.25, 0.1}) {
      const int64_t window = bench::WindowForRatio(ratio, tokens);
      const auto distance = [&](int64_t w) {
        return std::abs(bench::VisiblePairRatio(bench::UniformWindows(w), tokens) - ratio);
      };
      EXPECT_LE(distance(window), distance(window - 1));
      EXPECT_LE(distance(window), distance(window + 1));
    }
  }
}

TEST(BenchTest, ProbesTakeTurnsAndGiveMedians) {
  std::vector<int> order;
  int call = 0;
  bench::Probe first([&] {
    order.push_back(1);
    return bench::PassSeconds{static_cast<double>(call++), 10};
  });
  bench::Probe second([&] {
    order.push_back(2);
    return bench::PassSeconds{5, 0};
  });
  bench::RunInterleaved({&first, &second}, {.least = 3, .most = 9, .budget_seconds = 0});
  EXPECT_THAT(order, ElementsAre(1, 2, 1, 2, 1, 2, 1, 2));
  EXPECT_EQ(first.repeats(), 3);
  EXPECT_EQ(first.forward(), 2);  // of 1, 2, 3: the warm-up's 0 is forgotten
  EXPECT_EQ(first.forward_backward(), 12);
  EXPECT_EQ(second.backward(), 0);
}

TEST(BenchTest, ARatioTakesTimesAndOperationsOfItsPasses) {
  bench::Probe slow([] { return bench::PassSeconds{2, 6}; });
  bench::Probe quick([] { return bench::PassSeconds{1, 3}; });
  bench::RunInterleaved({&slow, &quick}, {.least = 3, .most = 3, .budget_seconds = 0});
  // Window 2 over 4 tokens: 7 pairs a head of 10, 8 heads; 4 * 64 operations a pair forward.
  const bench::Windows windows = bench::UniformWindows(2);
  const BenchResult torch =
      bench::TorchOverOurs("torch", slow, {quick, windows}, 4, bench::Pass::kBackward, 1.5);
  EXPECT_EQ(torch.numerator, 6);
  EXPECT_EQ(torch.denominator, 3);
  EXPECT_EQ(torch.ratio, 2);
  EXPECT_EQ(torch.repeats, 3);
  EXPECT_EQ(torch.tokens, 4);
  EXPECT_DOUBLE_EQ(torch.visible_pair_ratio, 0.7);
  EXPECT_DOUBLE_EQ(torch.gflops, 8 * 10 * 64 * 7 / 3.0 * 1e-9);
  EXPECT_TRUE(torch.holds());
  const BenchResult ours =
      bench::OursOverOurs("ours", {slow, windows}, quick, 4, bench::Pass::kBoth, 1.5);
  EXPECT_EQ(ours.numerator, 8);
  EXPECT_EQ(ours.ratio, 2);
  EXPECT_DOUBLE_EQ(ours.gflops, 8 * 14 * 64 * 7 / 8.0 * 1e-9);
  EXPECT_FALSE(ours.holds());
}

TEST(BenchTest, AResultHoldsOnItsSideOfTheBar) {
  BenchResult result;
  result.ratio = 1.2;
  result.bar = 1.2;
  EXPECT_TRUE(result.holds());
  result.bar = 1.3;
  EXPECT_FALSE(result.holds());
  result.bar_kind = BarKind::kAtMost;
  EXPECT_TRUE(result.holds());
}

TEST(BenchTest, WritesALineOfJson) {
  BenchResult result;
  result.name = "a_over_b";
  result.tokens = 4096;
  result.numerator = 3;
  result.denominator = 2;
  result.ratio = 1.5;
  result.gflops = 100;
  result.bar = 1.25;
  nlohmann::json json = nlohmann::json::parse(ToJsonLine(result));
  EXPECT_EQ(json["name"], "a_over_b");
  EXPECT_EQ(json["T"], 4096);
  EXPECT_EQ(json["numerator_seconds"], 3);
  EXPECT_EQ(json["denominator_seconds"], 2);
  EXPECT_EQ(json["holds"], true);
  result.unit = "bytes";
  json = nlohmann::json::parse(ToJsonLine(result));
  EXPECT_EQ(json["numerator_bytes"], 3);
  EXPECT_TRUE(json["numerator_seconds"].is_null());
  EXPECT_TRUE(json["gflops"].is_null());
}

// Attention that is timed has to be the same attention.
TEST(BenchTest, TheMaskShowsWhatWindowsShow) {
  const bench::Windows windows = bench::MixedWindows(16);
  const at::Tensor mask = bench::WindowMask(windows, 16);
  const double visible = mask.to(at::kDouble).sum().item<double>();
  EXPECT_DOUBLE_EQ(visible / (8 * 16 * 17 / 2.0), bench::VisiblePairRatio(windows, 16));
}

}  // namespace
}  // namespace aah
