#include "aah/lab/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "aah/lab/machine.h"
#include "aah/lab/run_log.h"
#include "aah/model/run_folder.h"
#include "tests/cli/run_support.h"

namespace aah {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin) + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

nlohmann::json DataOf(const std::string& page) {
  return nlohmann::json::parse(
      Between(page, R"(<script type="application/json" id="data">)", "</script>"));
}

TEST(ReportTest, HoldsTheRunsAsData) {
  const ScratchFolder folder;
  WriteRun(SmallConfig(folder / "full"), 4, true);
  RunConfig window = SmallConfig(folder / "window");
  window.attention.variant = "window";
  window.attention.window = 8;
  WriteRun(window, 2, false);
  WriteMachineFacts(window.out, ThisMachine());
  const nlohmann::json data =
      DataOf(ReportPage({ReadRunLog(folder / "full"), ReadRunLog(folder / "window")}, "two runs"));
  EXPECT_EQ(data["title"], "two runs");
  EXPECT_EQ(data["slider"]["steps"], nlohmann::json::array());
  ASSERT_EQ(data["runs"].size(), 2u);
  EXPECT_EQ(data["runs"][0]["finished"], true);
  EXPECT_EQ(data["runs"][0]["figures"]["validation_loss"], 1.25);
  EXPECT_EQ(data["runs"][0]["figures"]["flops_per_token"], 3e6);
  EXPECT_EQ(data["runs"][0]["figures"]["control_share"], 0.0625);
  EXPECT_EQ(data["runs"][1]["finished"], false);
  EXPECT_TRUE(data["runs"][1]["figures"]["peak_memory_bytes"].is_null());
  EXPECT_EQ(data["runs"][1]["train"]["loss"], nlohmann::json({3.0, 2.5}));
  EXPECT_EQ(data["runs"][1]["train"]["elapsed"], nlohmann::json({1.0, 2.0}));
  EXPECT_EQ(data["runs"][1]["validation"]["step"], nlohmann::json({2}));
  EXPECT_EQ(data["runs"][0]["train"]["allocated"], nlohmann::json({0.5, 0.5, 0.5, 0.5}));
  EXPECT_EQ(data["runs"][0]["windows"]["context"], 64);
  EXPECT_EQ(data["runs"][0]["windows"]["changes"], nlohmann::json({{0, 0}, {0, 0}}));
  EXPECT_EQ(data["differences"], nlohmann::json({"attention.variant", "attention.window"}));
  ASSERT_EQ(data["machines"].size(), 2u);
  EXPECT_EQ(data["machines"][1]["runs"], nlohmann::json({"window"}));
}

TEST(ReportTest, HoldsWindowsAsChangesBetweenTheSlidersSteps) {
  RunLog adaptive;
  adaptive.config = SmallConfig("runs/adaptive");
  adaptive.windows = {Window(1, 0, 0, 64), Window(1, 0, 1, 16), DecidedWindow(3, 0, 0, 8),
                      DecidedWindow(3, 0, 1, 16)};
  adaptive.groups = {Group(3, 0, 0, 0, 0, {0, 1}), Group(3, 0, 1, 0, {}, {0, 1})};
  RunLog fixed;
  fixed.config = SmallConfig("runs/fixed");
  fixed.windows = {Window(2, 1, 1, 32)};
  const nlohmann::json data = DataOf(ReportPage({adaptive, fixed}, "two"));
  EXPECT_EQ(data["slider"], nlohmann::json::parse(R"({"steps": [1, 2, 3], "all": 3})"));
  EXPECT_EQ(data["features"].size(), 9u);
  const nlohmann::json windows = data["runs"][0]["windows"];
  EXPECT_EQ(windows["values"], nlohmann::json({8, 16, 64}));
  EXPECT_EQ(windows["states"], nlohmann::json::parse("[[0, 2, 1, 1], [], [0, 0]]"));
  EXPECT_EQ(windows["changes"], nlohmann::json({{1, 0}, {0, 0}}));
  EXPECT_EQ(windows["decisions"], 1);
  EXPECT_EQ(windows["all_groupings"], 1);
  EXPECT_EQ(windows["groupings"][0]["step"], 3);
  EXPECT_EQ(windows["groupings"][0]["layers"][0][0],
            nlohmann::json::parse(
                "[0, 0, 0, [0, 1], 16, 0, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5]"));
  EXPECT_EQ(windows["groupings"][0]["layers"][1], nlohmann::json::array());
  EXPECT_EQ(data["runs"][1]["windows"]["states"], nlohmann::json::parse("[[], [3, 0], []]"));
  EXPECT_EQ(data["runs"][1]["windows"]["groupings"], nlohmann::json::array());
}

TEST(ReportTest, ThinsOutThousandsOfDecisions) {
  RunLog log;
  log.config = SmallConfig("runs/long");
  for (int step = 1; step <= 3000; ++step) {
    log.windows.push_back(DecidedWindow(step, 0, 0, 1 + step % 60));
    log.groups.push_back(Group(step, 0, 0, 0, {}, {0, 1}));
  }
  const nlohmann::json data = DataOf(ReportPage({log}, "long"));
  const nlohmann::json& slider = data["slider"];
  EXPECT_EQ(slider["steps"].size(), 300u);
  EXPECT_EQ(slider["steps"].front(), 1);
  EXPECT_EQ(slider["steps"].back(), 3000);
  EXPECT_EQ(slider["all"], 3000);
  const nlohmann::json& windows = data["runs"][0]["windows"];
  ASSERT_EQ(windows["states"].size(), 300u);
  EXPECT_EQ(windows["values"][windows["states"].back()[1].get<size_t>()], 1);  // of step 3000
  EXPECT_EQ(windows["groupings"].size(), 40u);
  EXPECT_EQ(windows["groupings"].back()["step"], 3000);
  EXPECT_LT(windows.dump().size(), 20000u);
}

TEST(ReportTest, ThinsOutALongRun) {
  const ScratchFolder folder;
  RunLog log;
  log.config = SmallConfig(folder / "long");
  for (int step = 1; step <= 5000; ++step) {
    StepRecord record;
    record.step = step;
    record.loss = step % 2;
    record.seconds = 0.5;
    log.metrics.steps.push_back(record);
  }
  const nlohmann::json train = DataOf(ReportPage({log}, "long"))["runs"][0]["train"];
  EXPECT_LE(train["step"].size(), 2000u);
  EXPECT_EQ(train["step"].size(), train["loss"].size());
  EXPECT_EQ(train["step"].back(), 5000);
  EXPECT_EQ(train["elapsed"].back(), 2500.0);
}

TEST(ReportTest, HoldsTheSearchForWindows) {
  RunLog fixed;
  fixed.config = SmallConfig("runs/fixed");
  const nlohmann::json data = DataOf(ReportPage({LearnedLog(), fixed}, "two"));
  EXPECT_FALSE(data["runs"][1].contains("selection"));
  const nlohmann::json selection = data["runs"][0]["selection"];
  EXPECT_EQ(selection["candidates"], nlohmann::json({16, 32, 64}));
  EXPECT_EQ(selection["budget"]["value"], 0.25);
  EXPECT_EQ(selection["budget"]["text"], "0.25 of full attention's visible pairs at 64 tokens");
  EXPECT_EQ(selection["phases"],
            nlohmann::json::parse(R"([["warmup", 1, 2], ["search", 3, 4], ["plan", 5, 8]])"));
  const nlohmann::json& curve = selection["curve"];
  EXPECT_EQ(curve["step"], nlohmann::json({1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(curve["target"], nlohmann::json({1, 1, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25}));
  EXPECT_EQ(curve["expected"][2], 0.47);
  EXPECT_EQ(curve["hard"][7], 0.125);
  EXPECT_EQ(curve["entropy"].front(), 0.875);
  EXPECT_EQ(curve["temperature"].back(), 0.2);
  EXPECT_EQ(selection["decisions"], nlohmann::json::parse("[[5, 0, 0.0625], [7, 1, 0.0625]]"));
  const nlohmann::json& snapshots = selection["snapshots"];
  ASSERT_EQ(snapshots.size(), 4u);
  EXPECT_EQ(selection["all_snapshots"], 4);
  EXPECT_EQ(snapshots[0]["step"], 3);
  EXPECT_EQ(snapshots[0]["weights"][1],
            nlohmann::json::parse("[[300, 600, 100], [250, 125, 625]]"));
  EXPECT_FALSE(snapshots[1].contains("windows"));
  EXPECT_EQ(snapshots[2]["windows"], nlohmann::json({{16, 32}, {16, 32}}));
  EXPECT_EQ(snapshots[3]["windows"], nlohmann::json({{16, 16}, {16, 32}}));
}

TEST(ReportTest, ThinsOutALongSearch) {
  RunLog log = LearnedLog();
  const StepRecord last = log.metrics.steps.back();
  const std::vector<SelectionRecord> records(log.selection.end() - 2, log.selection.end());
  for (int step = 9; step <= 4000; ++step) {
    log.metrics.steps.push_back(last);
    log.metrics.steps.back().step = step;
    for (SelectionRecord record : records) {
      record.step = step;
      log.selection.push_back(record);
    }
  }
  const nlohmann::json selection = DataOf(ReportPage({log}, "long"))["runs"][0]["selection"];
  EXPECT_EQ(selection["curve"]["step"].size(), 1000u);
  EXPECT_EQ(selection["curve"]["step"].front(), 1);
  EXPECT_EQ(selection["curve"]["step"].back(), 4000);
  EXPECT_EQ(selection["snapshots"].size(), 120u);
  EXPECT_EQ(selection["snapshots"].back()["step"], 4000);
  EXPECT_EQ(selection["all_snapshots"], 3996);
  EXPECT_EQ(selection["phases"].back(), nlohmann::json::parse(R"(["plan", 5, 4000])"));
}

TEST(ReportTest, OpensOfflineAndSurvivesHostileNames) {
  const ScratchFolder folder;
  RunLog log;
  log.config = SmallConfig(folder / "run");
  log.name = "</script><script>alert(1)</script>";
  const std::string page = ReportPage({log}, "<!-- & \xff");
  EXPECT_THAT(page, Not(HasSubstr("alert(1)</script>")));
  EXPECT_EQ(DataOf(page)["runs"][0]["name"], log.name);
  EXPECT_THAT(page, HasSubstr("plotly.js v"));
  EXPECT_THAT(page, Not(HasSubstr("@PLOTLY@")));
  EXPECT_THAT(page, Not(HasSubstr("@WINDOWS@")));
  EXPECT_THAT(page, Not(HasSubstr("@HEAT_MAP@")));
  EXPECT_THAT(page, Not(HasSubstr("@SEARCH@")));
  EXPECT_THAT(page, Not(HasSubstr("<script src=")));
  EXPECT_THAT(page, Not(HasSubstr("<link ")));
}

TEST(ReportTest, IsWrittenWhole) {
  const ScratchFolder folder;
  RunLog log;
  log.config = SmallConfig(folder / "run");
  WriteReport({log}, "one", folder / "report.html");
  std::ifstream file(folder / "report.html");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(page, ReportPage({log}, "one"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
  EXPECT_THAT(ErrorOf([&] { WriteReport({log}, "one", folder / "none/report.html"); }),
              HasSubstr("cannot write in the folder"));
}

}  // namespace
}  // namespace aah
