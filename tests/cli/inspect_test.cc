#include "aah/lab/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "aah/lab/run_log.h"
#include "inspect/group_tree.h"
#include "inspect/heat_map.h"
#include "tests/cli/run_support.h"

namespace aah {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Columns of the widest line; control sequences take none, a code point one.
size_t WidestLine(const std::string& text) {
  size_t widest = 0;
  size_t columns = 0;
  bool escape = false;
  for (const char c : text) {
    if (c == '\x1b') {
      escape = true;
    } else if (escape) {
      escape = c != 'm';
    } else if (c == '\n') {
      columns = 0;
    } else if ((static_cast<unsigned char>(c) >> 6U) != 2) {
      widest = std::max(widest, ++columns);
    }
  }
  return widest;
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Two layers of two heads, full until layer 0 decides in steps 2 and 4.
RunLog AdaptiveLog() {
  RunLog log;
  log.name = "adaptive";
  log.folder = "runs/adaptive";
  log.config = SmallConfig(log.folder);
  for (int step = 1; step <= 4; ++step) {
    StepRecord record;
    record.step = step;
    record.seconds = 0.1;
    record.attention_share = 0.25;
    record.allocated_context_ratio = 1.0 / step;
    record.visible_pair_ratio = 0.5 / step;
    record.control = ControlRecord{};
    record.control->path = step % 2 == 0 ? "update" : "cached";
    record.control->features_seconds = step % 2 == 0 ? 0.004 : 0;
    record.control->decision_seconds = step % 2 == 0 ? 0.002 : 0;
    log.metrics.steps.push_back(record);
  }
  log.windows = {Window(1, 0, 0, 64),        Window(1, 0, 1, 64),        Window(1, 1, 0, 64),
                 Window(1, 1, 1, 64),        DecidedWindow(2, 0, 0, 16), DecidedWindow(2, 0, 1, 16),
                 DecidedWindow(4, 0, 0, 32), DecidedWindow(4, 0, 1, 16)};
  log.groups = {Group(2, 0, 0, 0, {}, {0, 1}), Group(4, 0, 0, 0, 0, {0}), Group(4, 0, 0, 1, 0, {1}),
                Group(4, 0, 1, 0, {}, {0, 1})};
  log.groups[1].raw_index = 2;  // cut by the parent
  return log;
}

TEST(HeatMapTest, ShowsNumbersWhereTheyFit) {
  EXPECT_EQ(HeatMapText({{64, 128}, {2048, 8}},
                        {.colour = false, .logarithmic = true, .low = 8, .high = 2048}),
            "layer      0    1\n"
            "    0     64  128\n"
            "    1   2048    8\n");
}

TEST(HeatMapTest, ShowsSymbolsAndALegendWhereNumbersDoNotFit) {
  HeadMap map(2, std::vector<int>(24, 512));
  map[1][3] = 4096;
  EXPECT_EQ(HeatMapText(map, {.colour = false, .logarithmic = true, .low = 512, .high = 4096}),
            "layer   0         5         10        15        20\n"
            "    0   0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
            "    1   0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
            "       0 = 512  1 = 4096\n");
}

TEST(HeatMapTest, FitsATerminalWhateverTheModel) {
  for (const size_t heads : {1u, 12u, 16u, 40u, 71u, 96u, 200u}) {
    HeadMap map(3, std::vector<int>(heads));
    int value = 1;
    for (std::vector<int>& row : map) {
      for (int& cell : row) cell = value += 37;
    }
    for (const bool colour : {false, true}) {
      const std::string text =
          HeatMapText(map, {.colour = colour, .logarithmic = true, .low = 1, .high = value});
      EXPECT_LT(WidestLine(text), kTerminalColumns) << heads;
      EXPECT_EQ(text.find('\x1b') != std::string::npos, colour);
    }
  }
}

TEST(HeatMapTest, ShadesFromLightToDark) {
  EXPECT_EQ(Shaded("x", 0), "\x1b[48;5;229;38;5;16mx\x1b[0m");
  EXPECT_EQ(Shaded("x", 1), "\x1b[48;5;54;38;5;231mx\x1b[0m");
  EXPECT_EQ(
      HeatMapText({{0, 5, 9}}, {.colour = true, .logarithmic = false, .low = 0, .high = 9}),
      "layer   0 1 2\n    0  " + Shaded(" 0", 0) + Shaded(" 5", 5.0 / 9) + Shaded(" 9", 1) + "\n");
  EXPECT_EQ(HeatMapText({{8}}, {.colour = true, .logarithmic = true, .low = 8, .high = 8}),
            "layer   0\n    0  " + Shaded(" 8", 0) + "\n");
}

TEST(GroupTreeTest, WritesNumbersInFiveColumns) {
  EXPECT_EQ(Compact(0), "0.000");
  EXPECT_EQ(Compact(0.12345), "0.123");
  EXPECT_EQ(Compact(0.00123), ".0012");
  EXPECT_EQ(Compact(0.00994), ".0099");
  EXPECT_EQ(Compact(0.01), "0.010");
  EXPECT_EQ(Compact(12.345), "12.35");
  EXPECT_EQ(Compact(123.45), "123.5");
  EXPECT_EQ(Compact(4096), "4096");
  EXPECT_EQ(Compact(123456), "1e+05");
  EXPECT_EQ(Compact(0.0000234), "2e-05");
  EXPECT_EQ(Compact(-1.234), "-1.23");
  EXPECT_EQ(Compact(9.99951), "10.00");
  EXPECT_EQ(Compact(std::nan("")), "-");
}

TEST(GroupTreeTest, WritesHeadsAsRanges) {
  EXPECT_EQ(Ranges(std::vector<int32_t>{0, 1, 2, 5}), "0-2,5");
  EXPECT_EQ(Ranges(std::vector<int32_t>{3, 4}), "3,4");
  EXPECT_EQ(Ranges(std::vector<int32_t>{}), "");
}

TEST(GroupTreeTest, DrawsTheCoarsestLevelOutside) {
  const std::string features = " 0.500 1.500 2.500 3.500 4.500 5.500 6.500 7.500 8.500\n";
  const std::vector<GroupRecord> all = AdaptiveLog().groups;
  EXPECT_EQ(GroupTreeText({all[1], all[2], all[3]}), "0,1                   16 " + features +
                                                         "├─ 0                  16*" + features +
                                                         "└─ 1                  16 " + features);
}

TEST(GroupTreeTest, BreaksLongListsOfHeads) {
  std::vector<int32_t> odd;
  for (int head = 1; head < 64; head += 2) odd.push_back(head);
  const std::string tree = GroupTreeText(
      {Group(1, 0, 0, 0, 0, odd), Group(1, 0, 1, 0, 0, odd), Group(1, 0, 2, 0, {}, odd)});
  EXPECT_LT(WidestLine(tree), kTerminalColumns);
  EXPECT_THAT(tree, AllOf(StartsWith("1,3,5,7,9,11,13, "), HasSubstr("\n└─ 1,3,5"),
                          HasSubstr("\n   └─ 1,3,5"), HasSubstr("61,63\n")));
}

TEST(InspectTest, LooksAtAStep) {
  const RunLog log = AdaptiveLog();
  const Inspection inspection = Inspect(log, 3);
  EXPECT_EQ(inspection.step, 3);
  EXPECT_EQ(inspection.last_step, 4);
  EXPECT_EQ(inspection.windows, (HeadMap{{16, 16}, {64, 64}}));
  EXPECT_EQ(inspection.window_step, 2);
  EXPECT_DOUBLE_EQ(inspection.allocated_context_ratio, 1.0 / 3);
  EXPECT_EQ(inspection.change_counts, (HeadMap{{2, 1}, {0, 0}}));
  ASSERT_EQ(inspection.groups[0].size(), 1u);
  EXPECT_TRUE(inspection.groups[1].empty());
  EXPECT_EQ(Inspect(log, {}).groups[0].size(), 3u);
  EXPECT_EQ(Inspect(log, {}).step, 4);
}

TEST(InspectTest, NamesTheNearestStep) {
  const RunLog log = AdaptiveLog();
  EXPECT_THAT(ErrorOf([&] { Inspect(log, 900); }),
              HasSubstr("the run has steps 1 to 4; the nearest is 4"));
  EXPECT_THAT(ErrorOf([&] { Inspect(log, 0); }), HasSubstr("the nearest is 1"));
  RunLog empty;
  empty.config = SmallConfig("runs/empty");
  EXPECT_THAT(ErrorOf([&] { Inspect(empty, 1); }), HasSubstr("no step yet"));
  EXPECT_THAT(ErrorOf([&] { InspectionText(Inspect(log, {}), {.colour = false, .layer = 2}); }),
              HasSubstr("layers 0 to 1; the nearest is 1"));
}

TEST(InspectTest, AddsUpTheTimeOfAStep) {
  const Inspection inspection = Inspect(AdaptiveLog(), {});
  EXPECT_EQ(inspection.timed_steps, 4);
  EXPECT_EQ(inspection.deciding_steps, 2);
  ASSERT_EQ(inspection.times.size(), 5u);
  EXPECT_EQ(inspection.times[0].part, "attention");
  EXPECT_DOUBLE_EQ(inspection.times[0].seconds, 0.025);
  EXPECT_EQ(inspection.times[1].part, "features");
  EXPECT_DOUBLE_EQ(inspection.times[1].seconds, 0.002);
  EXPECT_DOUBLE_EQ(inspection.times[1].deciding_seconds, 0.004);
  double sum = 0;
  for (const PartTime& time : inspection.times) sum += time.seconds;
  EXPECT_NEAR(sum, 0.1, 1e-12);
}

TEST(InspectTest, WritesForPeople) {
  const std::string text = InspectionText(Inspect(AdaptiveLog(), {}), {});
  EXPECT_LT(WidestLine(text), kTerminalColumns);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, AllOf(HasSubstr("step 4 of 4: allocated context 0.250, visible pairs 0.125"),
                          HasSubstr("    0   32 16\n    1   64 64\n"), HasSubstr("in 2 decisions"),
                          HasSubstr("layer 0, grouped in step 4\n"),
                          HasSubstr("* cut to the window of the group above"),
                          HasSubstr("means over 4 steps, 2 of which decide")));
  const std::string one_layer =
      InspectionText(Inspect(AdaptiveLog(), {}), {.colour = false, .layer = 1});
  EXPECT_THAT(one_layer, Not(HasSubstr("layer 0, grouped")));
  EXPECT_THAT(InspectionText(Inspect(AdaptiveLog(), {}), {.colour = true, .layer = {}}),
              HasSubstr("\x1b[48;5;"));
}

TEST(InspectTest, SaysWhereNothingWasDecided) {
  RunLog log = AdaptiveLog();
  log.groups.clear();
  log.windows = {Window(1, 0, 0, 8)};
  for (StepRecord& step : log.metrics.steps) step.control.reset();
  const std::string text = InspectionText(Inspect(log, {}), {});
  EXPECT_THAT(text, AllOf(HasSubstr("nothing decided the windows"),
                          HasSubstr("no controller groups the heads"), Not(HasSubstr("features")),
                          HasSubstr("all else")));
  log.windows.clear();
  log.metrics.steps.clear();
  EXPECT_THAT(InspectionText(Inspect(log, {}), {}), HasSubstr("no step is logged yet"));
}

TEST(InspectTest, WritesJson) {
  const nlohmann::json json = nlohmann::json::parse(InspectionJson(Inspect(AdaptiveLog(), 4)));
  EXPECT_EQ(json["windows"], nlohmann::json({{32, 16}, {64, 64}}));
  EXPECT_EQ(json["decided"], true);
  EXPECT_EQ(json["decision_counts"], nlohmann::json({2, 0}));
  EXPECT_EQ(json["groups"][0][0]["heads"], nlohmann::json::array({0}));
  EXPECT_EQ(json["groups"][0][0]["parent"], 0);
  EXPECT_EQ(json["times"][0]["part"], "attention");
  RunLog empty;
  empty.config = SmallConfig("runs/empty");
  const nlohmann::json nothing = nlohmann::json::parse(InspectionJson(Inspect(empty, {})));
  EXPECT_TRUE(nothing["allocated_context_ratio"].is_null());
  EXPECT_EQ(nothing["windows"], nlohmann::json({{64, 64}, {64, 64}}));
}

TEST(InspectTest, LooksAtASearch) {
  EXPECT_FALSE(Inspect(AdaptiveLog(), {}).selection);
  const Inspection inspection = Inspect(LearnedLog(), 6);
  ASSERT_TRUE(inspection.selection);
  const SelectionInspection& selection = *inspection.selection;
  EXPECT_EQ(selection.summary.phase, "plan");
  EXPECT_DOUBLE_EQ(selection.summary.expected_cost, 0.44);
  EXPECT_EQ(selection.budget.length, 64);
  ASSERT_EQ(selection.decisions.size(), 2u);
  EXPECT_EQ(selection.decisions[1].step, 7);
  EXPECT_EQ(selection.decisions[1].moved, 1);
  EXPECT_EQ(selection.weights_step, 5);
  EXPECT_DOUBLE_EQ(selection.weights[1][0][0], 0.5);
  EXPECT_EQ(Inspect(LearnedLog(), 1).selection->weights_step, 0);
}

TEST(InspectTest, WritesASearchForPeople) {
  RunLog log = LearnedLog();
  const std::string plan = InspectionText(Inspect(log, {}), {});
  EXPECT_LT(WidestLine(plan), kTerminalColumns);
  EXPECT_THAT(
      plan, AllOf(HasSubstr("Search: phase plan, temperature 0.200\n"),
                  HasSubstr("0.25 of full attention's visible pairs at 64 tokens\n"),
                  HasSubstr("  target cost    0.2500\n"),
                  HasSubstr("  expected cost  0.4200 under the weights\n"),
                  HasSubstr("  hard cost      0.1250 of the plan\n"),
                  HasSubstr("  entropy        0.000 nats"), HasSubstr("  duality gap    0.0625 ")));
  EXPECT_THAT(
      plan, AllOf(HasSubstr("5            all of 4   0.0625\n"),
                  HasSubstr("7              1 of 4   0.0625\n"), HasSubstr("(1 of the 1 decisions"),
                  HasSubstr("layer  head       plan    16   32   64\n"
                            "    0     0         16    70   20   10\n"
                            "          1         16    25   12   62\n"),
                  HasSubstr("    1     0"), Not(HasSubstr("plan.json")), Not(HasSubstr("Groups"))));
  log.has_plan = true;
  EXPECT_THAT(InspectionText(Inspect(log, {}), {.colour = false, .layer = 1}),
              AllOf(HasSubstr("runs/learned/plan.json (aah plan show)"),
                    Not(HasSubstr("    0     0         16"))));
  const std::string searching = InspectionText(Inspect(log, 3), {});
  EXPECT_THAT(searching,
              AllOf(HasSubstr("0.1250 of the likeliest windows"),
                    HasSubstr("head  likeliest    16"), Not(HasSubstr("  duality gap"))));
  log.metrics.steps.resize(2);
  log.windows.resize(4);
  EXPECT_THAT(InspectionText(Inspect(log, {}), {}),
              AllOf(HasSubstr("phase warmup"), HasSubstr("none kept up to this step"),
                    HasSubstr("No plan was chosen yet"), HasSubstr("Changes: none up to now.")));
  EXPECT_THAT(InspectionText(Inspect(LearnedLog(), {}), {.colour = true, .layer = {}}),
              HasSubstr(Shaded("   70", 0.7)));
}

TEST(InspectTest, ShortensALargeSearch) {
  RunLog log = LearnedLog();
  log.config.model.layers = 40;
  log.selection.clear();
  log.config.model.context = 1 << 20;
  SelectionRecord record = {.step = 5, .layer = 0, .candidates = {}, .weights = {}};
  for (int i = 0; i <= 20; ++i) record.candidates.push_back(1 << i);
  std::vector<double> one_hot(21, 0.0);
  one_hot[20] = 1;
  record.weights = {one_hot, std::vector<double>(21, 1.0 / 21)};
  for (record.layer = 0; record.layer < 40; ++record.layer) log.selection.push_back(record);
  for (int step = 9; step <= 60; ++step) {
    log.metrics.steps.push_back(log.metrics.steps[6]);
    log.metrics.steps.back().step = step;
  }
  const std::string text = InspectionText(Inspect(log, {}), {});
  EXPECT_LT(WidestLine(text), kTerminalColumns);
  EXPECT_THAT(
      text, AllOf(HasSubstr("means over the 2 heads of a layer; --layer N shows each"),
                  HasSubstr("(53 of the 53 decisions after the first moved heads)"),
                  HasSubstr("1 to 1048576"), HasSubstr("as bars from 0 to 1"), HasSubstr(" ▄\n")));
  const std::string one = InspectionText(Inspect(log, {}), {.colour = false, .layer = 39});
  EXPECT_LT(WidestLine(one), kTerminalColumns);
  EXPECT_THAT(one, HasSubstr("█\n"));
}

TEST(InspectTest, JoinsNeighboursOfManyCandidates) {
  RunLog log = LearnedLog();
  log.config.model.context = 1 << 20;
  log.config.attention.learned.budget = 0.123457;
  log.config.attention.learned.budget_kind = BudgetKind::kAllocatedContext;
  log.selection.clear();
  SelectionRecord record = {.step = 5, .layer = 0, .candidates = {}, .weights = {}};
  for (int i = 1; i <= 64; ++i) record.candidates.push_back(16384 * i);
  std::vector<double> halves(64, 0.0);
  halves[0] = halves[1] = 0.5;
  std::vector<double> last(64, 0.0);
  last[62] = 0.5;
  last[60] = 0.25;
  last[58] = last[59] = 0.125;
  record.weights = {halves, last};
  for (record.layer = 0; record.layer < 2; ++record.layer) log.selection.push_back(record);
  const std::string text = InspectionText(Inspect(log, {}), {});
  EXPECT_LT(WidestLine(text), kTerminalColumns);
  const std::string none(29, ' ');
  EXPECT_THAT(text,
              AllOf(HasSubstr("0.123457 of full attention's allocated context\n" +
                              std::string(17, ' ') + "at 1,048,576 tokens\n"),
                    HasSubstr("of the candidate windows, as bars of 2, from 0 to 1, in step 5\n"),
                    HasSubstr("  █" + none + "  \n"), HasSubstr("  " + none + "▂▂▄\n")));
}

TEST(InspectTest, RefusesAPhaseThatIsNone) {
  RunLog log = LearnedLog();
  log.metrics.steps[2].selection->phase = "\x1b[2J";
  EXPECT_THAT(ErrorOf([&] { Inspect(log, 3); }),
              AllOf(HasSubstr("metrics.jsonl: phase '"),
                    HasSubstr("' in step 3: expected warmup, search or plan")));
  EXPECT_EQ(Inspect(log, 4).selection->summary.phase, "search");
}

TEST(InspectTest, TheNameOfARunCannotSteerATerminal) {
  RunLog log = LearnedLog();
  log.name = "run\x1b[2J";
  log.folder = "runs/\u009b2Jrun";
  log.has_plan = true;
  EXPECT_THAT(InspectionText(Inspect(log, {}), {}),
              AllOf(StartsWith("run [2J: "), HasSubstr("runs/ 2Jrun/plan.json (aah")));
}

TEST(InspectTest, WritesASearchAsJson) {
  EXPECT_FALSE(
      nlohmann::json::parse(InspectionJson(Inspect(AdaptiveLog(), {}))).contains("selection"));
  const nlohmann::json json =
      nlohmann::json::parse(InspectionJson(Inspect(LearnedLog(), {})))["selection"];
  EXPECT_EQ(json["phase"], "plan");
  EXPECT_EQ(json["budget"],
            nlohmann::json::parse(R"({"kind": "pairs", "value": 0.25, "length": 64})"));
  EXPECT_EQ(json["decisions"][1],
            nlohmann::json::parse(R"({"step": 7, "moved": 1, "duality_gap": 0.0625})"));
  EXPECT_EQ(json["candidates"], nlohmann::json({16, 32, 64}));
  EXPECT_EQ(json["weights"][1][1], nlohmann::json({0.25, 0.125, 0.625}));
  EXPECT_EQ(json["weights_step"], 7);
}

TEST(InspectTest, WritesTables) {
  const ScratchFolder folder;
  const std::vector<std::string> paths =
      WriteInspectionTables(AdaptiveLog(), {}, folder / "tables");
  ASSERT_EQ(paths.size(), 2u);
  const std::string windows = ReadText(paths[0]);
  EXPECT_THAT(windows, StartsWith("step,layer,head,window,groups,raw_index,index\n1,0,0,64,,,\n"));
  EXPECT_THAT(windows, HasSubstr("\n4,0,0,32,0,0,0\n"));
  EXPECT_EQ(std::count(windows.begin(), windows.end(), '\n'), 9);
  const std::string siblings = ReadText(paths[1]);
  EXPECT_THAT(siblings,
              StartsWith("step,layer,level,group,parent,heads,raw_index,index,window,mean|q|,"));
  EXPECT_THAT(siblings, HasSubstr("\n2,0,0,0,,0 1,1,1,16,0.5,1.5,2.5,3.5,4.5,5.5,6.5,7.5,8.5\n"));
  EXPECT_EQ(std::count(siblings.begin(), siblings.end(), '\n'), 5);

  WriteInspectionTables(AdaptiveLog(), 3, folder / "tables");
  EXPECT_EQ(ReadText(paths[0]),
            "step,layer,head,window,groups,raw_index,index\n2,0,0,16,0,0,0\n2,0,1,16,0,0,0\n"
            "1,1,0,64,,,\n1,1,1,64,,,\n");
  const std::string then = ReadText(paths[1]);
  EXPECT_EQ(std::count(then.begin(), then.end(), '\n'), 2);
}

}  // namespace
}  // namespace aah
