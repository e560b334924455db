#include "aah/lab/bench.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "aah/model/allocation_measures.h"
#include "bench/attention_probes.h"
#include "bench/attention_ratios.h"
#include "bench/interleaved.h"
#include "bench/learned_run.h"

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

TEST(BenchTest, TheLineOfARunHasItsPhases) {
  BenchResult result;
  EXPECT_FALSE(nlohmann::json::parse(ToJsonLine(result)).contains("phase_seconds"));
  PhasedRun run = bench::SharesOfPhases(bench::LearnedRunOptions());
  const std::vector<double> seconds = {4, 8, 1, 2};
  for (size_t i = 0; i < seconds.size(); ++i) run.phases.at(i).seconds = seconds[i];
  run.visible_pair_ratio_of_plan = 0.19;
  // 5% warm-up, 20% search, and of the rest a twentieth tracks.
  EXPECT_NEAR(run.mean_step_seconds(), 0.05 * 4 + 0.2 * 8 + 0.7125 * 1 + 0.0375 * 2, 1e-12);
  result.numerator = 5;
  result.run = run;
  const nlohmann::json json = nlohmann::json::parse(ToJsonLine(result));
  EXPECT_EQ(json["phase_seconds"],
            nlohmann::json(
                {{"warmup", 4.0}, {"search", 8.0}, {"plan", 1.0}, {"track", 2.0}, {"sdpa", 5.0}}));
  EXPECT_EQ(json["phase_shares"]["warmup"], 0.05);
  EXPECT_EQ(json["phase_shares"]["search"], 0.2);
  EXPECT_NEAR(json["phase_shares"]["plan"].get<double>(), 0.7125, 1e-12);
  EXPECT_NEAR(json["phase_shares"]["track"].get<double>(), 0.0375, 1e-12);
  EXPECT_EQ(json["visible_pair_ratio_of_plan"], 0.19);
  EXPECT_EQ(json["search_weights"], "first");
  EXPECT_EQ(json["track_weights"], "sharp");
}

ModelConfig TwoLayers() {
  ModelConfig config;
  config.layers = 2;
  config.heads = 8;
  config.width = 512;
  config.context = 4096;
  config.vocabulary = 256;
  return config;
}

// The states that are timed as those of a search have to be them.
TEST(BenchTest, AllCandidatesAreLiveInTheSearchThatIsTimed) {
  const bench::LearnedRunSteps steps = bench::StepsOfPhases(bench::LearnedRunOptions());
  const auto attention = bench::SearchingAttention(TwoLayers());
  attention->BeginStep({.step = steps.search, .steps = bench::kLearnedRunSteps});
  EXPECT_EQ(attention->selection()->phase, "search");
  EXPECT_THAT(attention->selection()->candidates,
              ElementsAre(16, 32, 64, 128, 256, 512, 1024, 2048, 4096));
  EXPECT_GT(attention->Weights().min().item<double>(), bench::LearnedRunOptions().drop_below);
  EXPECT_TRUE(attention->Mixes(true));
  // The phases go back before a search has ended.
  attention->BeginStep({.step = steps.warmup, .steps = bench::kLearnedRunSteps});
  EXPECT_EQ(attention->selection()->phase, "warmup");
  EXPECT_FALSE(attention->Mixes(true));
}

TEST(BenchTest, ThePlanThatIsTimedIsWithinItsBudgetAndDecidedAgain) {
  const bench::LearnedRunSteps steps = bench::StepsOfPhases(bench::LearnedRunOptions());
  const auto attention = bench::PlannedAttention(TwoLayers());
  // Only tracking steps are mixed, in any order of the repeats.
  for (int repeat = 0; repeat < 2; ++repeat) {
    attention->BeginStep({.step = steps.plan, .steps = bench::kLearnedRunSteps});
    EXPECT_FALSE(attention->Mixes(true));
    EXPECT_TRUE(attention->selection()->decided);
    attention->BeginStep({.step = steps.track, .steps = bench::kLearnedRunSteps});
    EXPECT_TRUE(attention->Mixes(true));
    EXPECT_EQ(attention->selection()->phase, "plan");
  }
  EXPECT_THAT(attention->windows(),
              ElementsAre(ElementsAre(4096, 512, 256, 128, 128, 64, 32, 16),
                          ElementsAre(64, 1024, 128, 256, 128, 1024, 256, 512)));
  const double pairs = VisiblePairRatio(attention->windows(), 0, 4096);
  EXPECT_LE(pairs, 0.2);
  EXPECT_NEAR(pairs, 0.19, 1e-3);
  // A head between others: 0.9 for its own window, then a twentieth each, the fourth of them dead.
  const at::Tensor weights = attention->Weights();
  EXPECT_NEAR(weights[3][3].item<double>(), 0.905, 1e-3);
  EXPECT_NEAR(weights[3][4].item<double>(), weights[3][3].item<double>() / 20, 1e-4);
  EXPECT_GT(weights[3][6].item<double>(), bench::LearnedRunOptions().drop_below);
  EXPECT_LT(weights[3][7].item<double>(), bench::LearnedRunOptions().drop_below);
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
