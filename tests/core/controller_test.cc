#include "aah/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "aah/control_options.h"
#include "aah/error.h"
#include "aah/head_features.h"
#include "aah/parallel.h"
#include "aah/random.h"
#include "aah/regime.h"
#include "aah/tensor_view.h"

namespace aah {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int32_t kHeads = 6;
constexpr int64_t kTokens = 32;

ControlOptions SmallOptions(const std::string& regime) {
  ControlOptions options;
  options.regime = regime;
  options.windows = {4, 8, 16, 32};
  options.warmup_steps = 4;
  options.hierarchy.min_group_size = 2;
  options.logit_scale = 8;
  options.joint_output_scale = 8;
  options.seed = 12;
  return options;
}

// A layer fed with drawn projections and statistics that depend on the step alone.
class FakeLayer {
 public:
  explicit FakeLayer(const ControlOptions& options, int32_t layer = 0)
      : scorers_(MakeScorers(options, layer)),
        controller_(options, layer, kHeads, scorers_.weights()),
        sums_(kHeads, kHeads) {}

  std::vector<int32_t> Step(int64_t step) {
    Random random(static_cast<uint64_t>(step) + 100);
    sums_.Clear();
    if (controller_.NeedsFeatures(step)) {
      std::vector<float> numbers(static_cast<size_t>(3 * kHeads * 4 * 8));
      for (size_t i = 0; i < numbers.size(); ++i) {
        const auto head = static_cast<double>(i / 32 % kHeads);
        numbers[i] = static_cast<float>((random.Uniform() - 0.3) * std::exp2(head - 2));
      }
      const auto view = [&](int64_t part) {
        return ConstView4<float>::Contiguous(numbers.data() + part * kHeads * 32,
                                             {1, kHeads, 4, 8});
      };
      SerialParallel serial;
      sums_.AddBatch(view(0), view(1), view(2), serial);
    }
    const std::span<const int32_t> windows = controller_.Advance(step, kTokens, &sums_);
    std::vector<int32_t> result(windows.begin(), windows.end());
    std::vector<float> statistics(3 * kHeads);
    for (float& x : statistics) x = static_cast<float>(random.Uniform());
    controller_.RecordStatistics(statistics);
    return result;
  }

  Controller& controller() { return controller_; }

 private:
  OwnedScorers scorers_;
  Controller controller_;
  ProjectionSums sums_;
};

std::vector<std::string> AllRegimes() {
  std::vector<std::string> names;
  for (const Regime& regime : Regimes()) names.emplace_back(regime.name);
  names.insert(names.end(),
               {"fixed:8", "shuffle_post_select", "shuffle_post_select:full_adaptive"});
  return names;
}

TEST(Regimes, AreAllThereByName) {
  for (const char* name :
       {"full_attention", "grouping_off", "full_adaptive", "shallow_freeze", "deep_practical_reuse",
        "control_off", "fixed_random", "fixed_deterministic", "freeze_after_warmup",
        "independent_scoring", "no_parent_constraint", "no_feature_ema", "random_uniform"}) {
    EXPECT_EQ(FindRegime(name).name, name);
  }
  EXPECT_EQ(FindRegime("fixed:1024").fixed_window, 1024);
  EXPECT_EQ(FindRegime("shuffle_post_select").groups, GroupSource::kFirstDecision);
  EXPECT_TRUE(FindRegime("shuffle_post_select:grouping_off").shuffled);
}

TEST(Regimes, RefusesUnknownNamesWithTheNearest) {
  EXPECT_THAT([] { FindRegime("full_adaptiv"); },
              ThrowsMessage<Error>(HasSubstr("(did you mean 'full_adaptive'?)")));
  for (const char* bad : {"", "fixed:", "fixed:0", "fixed:8x", "fixed:-3", "fixed:99999999999",
                          "shuffle_post_select:", "shuffle_post_select:control_off",
                          "shuffle_post_select:shuffle_post_select"}) {
    EXPECT_THROW(FindRegime(bad), Error) << bad;
  }
}

TEST(Controller, IsFullInWarmupAndDecidesEveryIntervalAfterIt) {
  for (const std::string& name : AllRegimes()) {
    SCOPED_TRACE(name);
    FakeLayer layer(SmallOptions(name));
    const bool full = FindRegime(name).windows == WindowSource::kFull;
    for (int64_t step = 0; step < 30; ++step) {
      const std::vector<int32_t> windows = layer.Step(step);
      const ControlPath path = layer.controller().report().path;
      if (step < 4 || full) {
        EXPECT_THAT(windows, Each(kTokens));
        EXPECT_TRUE(path == ControlPath::kShadow || path == ControlPath::kFull);
      } else {
        EXPECT_EQ(path, (step - 4) % 5 == 0 ? ControlPath::kUpdate : ControlPath::kCached);
        EXPECT_THAT(windows, Each(testing::AnyOf(4, 8, 16, 32)));
      }
      EXPECT_EQ(layer.controller().WindowsFor(kTokens), windows);
      EXPECT_THAT(layer.controller().WindowsFor(10), Each(AllOf(testing::Ge(4), testing::Le(10))));
    }
  }
}

TEST(Controller, AsksForFeaturesOnlyWhereItReadsThem) {
  for (const std::string& name : AllRegimes()) {
    FakeLayer layer(SmallOptions(name));
    int needed = 0;
    for (int64_t step = 0; step < 30; ++step) {
      const bool needs = layer.controller().NeedsFeatures(step);
      needed += static_cast<int>(needs);
      if (needs) {
        const ControlState before = layer.controller().state();
        EXPECT_THROW(layer.controller().Advance(step, kTokens, nullptr), Error);
        EXPECT_EQ(layer.controller().state(), before);
      }
      layer.Step(step);
    }
    const Regime regime = FindRegime(name);
    const bool decides = regime.windows == WindowSource::kScorer;
    const bool shadows = regime.groups != GroupSource::kNone;
    EXPECT_EQ(needed > 0, decides || shadows) << name;
    EXPECT_LE(needed, 8) << name;
  }
}

TEST(Controller, StateRestoredGoesOnAsIfNothingHadHappened) {
  for (const std::string& name : AllRegimes()) {
    for (const int64_t stop : {1, 3, 4, 7, 14}) {
      SCOPED_TRACE(name + ", stopped before step " + std::to_string(stop));
      FakeLayer through(SmallOptions(name));
      for (int64_t step = 0; step < stop; ++step) through.Step(step);
      FakeLayer resumed(SmallOptions(name));
      resumed.controller().set_state(through.controller().state());
      EXPECT_EQ(resumed.controller().WindowsFor(kTokens), through.controller().WindowsFor(kTokens));
      for (int64_t step = stop; step < 30; ++step) {
        EXPECT_EQ(resumed.Step(step), through.Step(step));
        ASSERT_EQ(resumed.controller().state(), through.controller().state()) << "step " << step;
      }
    }
  }
}

TEST(Controller, VisitsEveryFieldOfItsState) {
  FakeLayer layer(SmallOptions("full_adaptive"));
  for (int64_t step = 0; step < 10; ++step) layer.Step(step);
  const ControlState& state = layer.controller().state();
  ControlState copy;
  std::map<std::string, const void*> fields;
  VisitControlState(state, [&](const char* name, const auto& field) { fields[name] = &field; });
  VisitControlState(copy, [&]<typename Field>(const char* name, Field& field) {
    field = *static_cast<const Field*>(fields.at(name));
  });
  EXPECT_EQ(fields.size(), 8U);
  EXPECT_EQ(copy, state);
}

TEST(Controller, FirstDecisionsGroupsAreKeptByShallowFreeze) {
  FakeLayer layer(SmallOptions("shallow_freeze"));
  std::set<std::vector<int32_t>> groupings;
  for (int64_t step = 0; step < 40; ++step) {
    layer.Step(step);
    if (step >= 4) groupings.insert(layer.controller().state().group_of_head);
    EXPECT_LE(layer.controller().report().hierarchy.levels.size(), 1U);
  }
  EXPECT_EQ(groupings.size(), 1U);
}

TEST(Controller, FixedGroupingsAreHalves) {
  FakeLayer alternating(SmallOptions("fixed_deterministic"));
  FakeLayer random(SmallOptions("fixed_random"));
  FakeLayer other_layer(SmallOptions("fixed_random"), 1);
  for (int64_t step = 0; step < 6; ++step) {
    alternating.Step(step);
    random.Step(step);
    other_layer.Step(step);
  }
  EXPECT_THAT(alternating.controller().state().group_of_head, ElementsAre(0, 1, 0, 1, 0, 1));
  const std::vector<int32_t> halves = random.controller().state().group_of_head;
  EXPECT_EQ(std::count(halves.begin(), halves.end(), 0), 3);
  EXPECT_EQ(std::count(halves.begin(), halves.end(), 1), 3);
  EXPECT_NE(halves, other_layer.controller().state().group_of_head);
  EXPECT_THAT(random.controller().report().hierarchy.GroupsPerLevel(), ElementsAre(2, 2, 2, 2));
}

TEST(Controller, AFixedWindowIsOneForAllAfterWarmup) {
  FakeLayer layer(SmallOptions("fixed:9"));
  EXPECT_THAT(layer.Step(3), Each(32));
  EXPECT_THAT(layer.Step(4), Each(9));
  EXPECT_THAT(layer.controller().WindowsFor(5), Each(5));
}

TEST(Controller, RandomWindowsDependOnSeedStepAndLayerAlone) {
  const auto run = [](uint64_t seed, int32_t layer_number) {
    ControlOptions options = SmallOptions("random_uniform");
    options.seed = seed;
    FakeLayer layer(options, layer_number);
    std::vector<std::vector<int32_t>> windows;
    for (int64_t step = 4; step < 200; ++step) windows.push_back(layer.Step(step));
    return windows;
  };
  const auto windows = run(1, 0);
  EXPECT_EQ(windows, run(1, 0));
  EXPECT_NE(windows, run(2, 0));
  EXPECT_NE(windows, run(1, 1));
  EXPECT_EQ(windows[0], windows[4]);
  EXPECT_NE(windows[0], windows[5]);
  std::map<int32_t, int> histogram;
  for (const auto& step : windows) {
    for (const int32_t window : step) ++histogram[window];
  }
  EXPECT_EQ(histogram.size(), 4U);
  for (const auto& [window, count] : histogram) EXPECT_GT(count, 196 * kHeads / 6);
}

TEST(Controller, ShufflingKeepsTheHistogram) {
  FakeLayer plain(SmallOptions("grouping_off"));
  FakeLayer shuffled(SmallOptions("shuffle_post_select:grouping_off"));
  bool moved = false;
  for (int64_t step = 0; step < 60; ++step) {
    std::vector<int32_t> expected = plain.Step(step);
    std::vector<int32_t> windows = shuffled.Step(step);
    moved = moved || windows != expected;
    std::sort(expected.begin(), expected.end());
    std::sort(windows.begin(), windows.end());
    EXPECT_EQ(windows, expected);
  }
  EXPECT_TRUE(moved);
}

TEST(Controller, TheRampLeadsFromFullToTheDecision) {
  ControlOptions options = SmallOptions("independent_scoring");
  options.control_interval = 1000;
  FakeLayer direct(options);
  options.ramp_steps = 10;
  FakeLayer ramped(options);
  std::vector<int32_t> last(kHeads, kTokens);
  for (int64_t step = 0; step < 20; ++step) {
    const std::vector<int32_t> target = direct.Step(step);
    const std::vector<int32_t> windows = ramped.Step(step);
    for (size_t head = 0; head < windows.size(); ++head) {
      EXPECT_LE(windows[head], last[head]);
      if (step >= 4) {
        EXPECT_GE(windows[head], target[head]);
      }
    }
    if (step >= 13) {
      EXPECT_EQ(windows, target);
    }
    last = windows;
  }
}

TEST(Controller, NoWindowIsBelowTheLeastAllowed) {
  ControlOptions options = SmallOptions("fixed:2");
  options.min_window = 6;
  FakeLayer layer(options);
  EXPECT_THAT(layer.Step(4), Each(6));
}

TEST(Controller, RefusesAStateOfAnotherShape) {
  FakeLayer layer(SmallOptions("full_adaptive"));
  for (int64_t step = 0; step < 6; ++step) layer.Step(step);
  const ControlState good = layer.controller().state();
  const auto refused = [&](const std::function<void(ControlState&)>& spoil) {
    ControlState state = good;
    spoil(state);
    EXPECT_THROW(layer.controller().set_state(state), Error);
    EXPECT_EQ(layer.controller().state(), good);
  };
  refused([](ControlState& s) { s.group_of_head.push_back(0); });
  refused([](ControlState& s) { s.group_of_head[0] = -1; });
  refused([](ControlState& s) { s.group_of_head.assign(kHeads, 2); });
  refused([](ControlState& s) { s.group_of_head.clear(); });
  refused([](ControlState& s) { s.feature_average.resize(2); });
  refused([](ControlState& s) { s.statistics.resize(4); });
  refused([](ControlState& s) { s.decided_index[2] = 4; });
  refused([](ControlState& s) { s.decided_index.clear(); });
  refused([](ControlState& s) { s.window_average[1] = std::numeric_limits<float>::quiet_NaN(); });
  refused([](ControlState& s) { s.executed_window[0] = 0; });
}

void ExpectRefused(const std::string& message, const std::function<void(ControlOptions&)>& spoil,
                   int32_t heads = 12) {
  ControlOptions options;
  spoil(options);
  EXPECT_THAT([&] { CheckControlOptions(options, heads); },
              ThrowsMessage<Error>(HasSubstr(message)));
}

TEST(ControlOptions, RefusesWhatIsOutOfRangeInOneLine) {
  CheckControlOptions({}, 12);
  using Options = ControlOptions;
  ExpectRefused("sim_threshold is 1.5, expected -1 to 1",
                [](Options& o) { o.hierarchy.sim_threshold = 1.5; });
  ExpectRefused("super_threshold is -2, expected -1 to 1",
                [](Options& o) { o.hierarchy.super_threshold = -2; });
  ExpectRefused("super_threshold is nan", [](Options& o) {
    o.hierarchy.super_threshold = std::numeric_limits<double>::quiet_NaN();
  });
  ExpectRefused("upper_l2_threshold is 1, expected at most 0",
                [](Options& o) { o.hierarchy.upper_l2_threshold = 1; });
  ExpectRefused("churn_penalty is -1", [](Options& o) { o.hierarchy.churn_penalty = -1; });
  ExpectRefused("min_group_size is 0, expected 1",
                [](Options& o) { o.hierarchy.min_group_size = 0; });
  ExpectRefused("max_depth is 0, expected 1", [](Options& o) { o.hierarchy.max_depth = 0; });
  ExpectRefused("windows[1] is 256 after 512: give the candidates in ascending order",
                [](Options& o) { o.windows = {512, 256}; });
  ExpectRefused("windows[1] repeats 512", [](Options& o) { o.windows = {512, 512}; });
  ExpectRefused("windows[0] is 0: a window counts the query's own key",
                [](Options& o) { o.windows = {0, 512}; });
  ExpectRefused("windows is empty", [](Options& o) { o.windows.clear(); });
  ExpectRefused("control_interval is 0, expected 1", [](Options& o) { o.control_interval = 0; });
  ExpectRefused("warmup_steps is -1", [](Options& o) { o.warmup_steps = -1; });
  ExpectRefused("feature_ema is 1,", [](Options& o) { o.feature_ema = 1; });
  ExpectRefused("window_ema is -0.5", [](Options& o) { o.window_ema = -0.5; });
  ExpectRefused("(did you mean 'shallow_freeze'?)", [](Options& o) { o.regime = "shalow_freeze"; });
  ExpectRefused("joint_siblings is 13, but a layer has 12 heads",
                [](Options& o) { o.joint_siblings = 13; });
  ExpectRefused("joint_siblings is 2, but a layer has 1 heads", [](Options&) {}, 1);
  ExpectRefused("joint_siblings is 3, expected 2", [](Options& o) { o.joint_siblings = 3; });
  ExpectRefused("hidden is 0", [](Options& o) { o.hidden = 0; });
  ExpectRefused("hidden is 1025", [](Options& o) { o.hidden = 1025; });
  ExpectRefused("joint_hidden is 1025", [](Options& o) { o.joint_hidden = 1025; });
  ExpectRefused("min_window is 0", [](Options& o) { o.min_window = 0; });
}

TEST(Controller, RefusesScorersOfOtherSizes) {
  ControlOptions options = SmallOptions("full_adaptive");
  const OwnedScorers scorers = MakeScorers(options, 0);
  options.windows = {8, 16};
  EXPECT_THROW(Controller(options, 0, kHeads, scorers.weights()), Error);
  EXPECT_THROW(Controller(options, 0, kHeads, {}), Error);
}

TEST(Controller, ADeepScorerHasOneMoreLayer) {
  ControlOptions options = SmallOptions("grouping_off");
  options.deep_scorer = true;
  const OwnedScorers scorers = MakeScorers(options, 0);
  EXPECT_EQ(scorers.weights().base.size(), 3U);
  EXPECT_TRUE(scorers.weights().siblings.empty());
  FakeLayer layer(options);
  layer.Step(4);
  EXPECT_EQ(layer.controller().report().path, ControlPath::kUpdate);
}

}  // namespace
}  // namespace aah
