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
  EXPECT_EQ(data["context"], 64);
  ASSERT_EQ(data["runs"].size(), 2u);
  EXPECT_EQ(data["runs"][0]["finished"], true);
  EXPECT_EQ(data["runs"][0]["figures"]["validation_loss"], 1.25);
  EXPECT_EQ(data["runs"][1]["finished"], false);
  EXPECT_TRUE(data["runs"][1]["figures"]["peak_memory_bytes"].is_null());
  EXPECT_EQ(data["runs"][1]["train"]["loss"], nlohmann::json({3.0, 2.5}));
  EXPECT_EQ(data["runs"][1]["train"]["elapsed"], nlohmann::json({1.0, 2.0}));
  EXPECT_EQ(data["runs"][1]["validation"]["step"], nlohmann::json({2}));
  EXPECT_EQ(data["runs"][0]["windows"], nlohmann::json({{64, 64}, {64, 64}}));
  EXPECT_EQ(data["differences"], nlohmann::json({"attention.variant", "attention.window"}));
  ASSERT_EQ(data["machines"].size(), 2u);
  EXPECT_EQ(data["machines"][1]["runs"], nlohmann::json({"window"}));
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
