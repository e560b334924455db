#include "aah/model/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "aah/model/allocation_measures.h"
#include "aah/model/run_summary.h"
#include "model/src/train/tensorboard.h"
#include "tests/model/train_support.h"

namespace aah {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void Append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app) << text;
}

TEST(RunFolderTest, RecordsComeBackAsWritten) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  std::filesystem::create_directories(run);
  const StepRecord step = {.step = 3,
                           .loss = 0.1 + 0.2,
                           .learning_rate = 1e-3,
                           .grad_norm = 2.5,
                           .tokens = 4096,
                           .seconds = 0.125,
                           .tokens_per_second = 32768,
                           .attention_share = 0.25,
                           .allocated_context_ratio = 0.5,
                           .visible_pair_ratio = 0.4};
  Append(MetricsPath(run), ToJsonLine(step) + "\n");
  Append(MetricsPath(run), ToJsonLine(ValidationRecord{3, 1.5, 2.0, 0.25}) + "\n");
  EXPECT_FALSE(IsFinished(run));
  SummaryRecord summary;
  summary.step = 3;
  summary.validation_loss = 1.5;
  summary.peak_memory_bytes = int64_t{5} << 32;
  Append(MetricsPath(run), ToJsonLine(summary) + "\n");
  Append(WindowsPath(run), ToJsonLine(WindowRecord{1, 2, 3, 64}) + "\n");

  const RunMetrics metrics = ReadMetrics(run);
  ASSERT_EQ(metrics.steps.size(), 1u);
  EXPECT_EQ(metrics.steps[0].loss, 0.1 + 0.2);
  EXPECT_EQ(metrics.steps[0].tokens, 4096);
  EXPECT_EQ(metrics.steps[0].visible_pair_ratio, 0.4);
  ASSERT_EQ(metrics.validations.size(), 1u);
  EXPECT_EQ(metrics.validations[0].bits_per_byte, 2.0);
  ASSERT_TRUE(metrics.summary.has_value());
  EXPECT_EQ(metrics.summary->peak_memory_bytes, int64_t{5} << 32);
  EXPECT_TRUE(IsFinished(run));
  const std::vector<WindowRecord> windows = ReadWindows(run);
  ASSERT_EQ(windows.size(), 1u);
  EXPECT_EQ(windows[0].head, 3);
  EXPECT_EQ(windows[0].window, 64);
}

TEST(RunFolderTest, ASummaryIsOfTheRecordsThereAre) {
  RunMetrics metrics;
  const SummaryRecord none = Summarise(metrics);
  EXPECT_EQ(none.step, 0);
  EXPECT_EQ(none.seconds, 0);
  for (const double value : {none.validation_loss, none.bits_per_byte, none.attention_share,
                             none.allocated_context_ratio, none.visible_pair_ratio,
                             none.flops_per_token, none.tokens_per_second, none.control_share}) {
    EXPECT_TRUE(std::isnan(value));
  }
  for (int64_t i = 1; i <= 4; ++i) {
    StepRecord step = {.step = i, .tokens = 100 * i, .seconds = 2};
    step.attention_share = i == 1 ? 0.75 : 0.125 * static_cast<double>(i);
    step.visible_pair_ratio = 0.25 * static_cast<double>(i);
    metrics.steps.push_back(step);
  }
  const SummaryRecord going_on = Summarise(metrics);
  EXPECT_EQ(going_on.step, 4);
  EXPECT_EQ(going_on.seconds, 8);
  EXPECT_EQ(going_on.tokens_per_second, 50);
  EXPECT_EQ(going_on.attention_share, 0.4375);  // of 0.25, 0.375, 0.5 and 0.75
  EXPECT_EQ(going_on.visible_pair_ratio, 0.625);
  EXPECT_TRUE(std::isnan(going_on.validation_loss));
  metrics.validations = {{2, 1.5, 2.0, 0.25}, {4, 1.25, 1.75, 0.5}};
  EXPECT_EQ(Summarise(metrics).validation_loss, 1.25);
  EXPECT_EQ(Summarise(metrics).bits_per_byte, 1.75);
}

TEST(RunFolderTest, KeepsTheNamesThatOtherProgramsRead) {
  EXPECT_EQ(ToJsonLine(ValidationRecord{4, 1.5, 2.0, 0.25}),
            R"({"kind":"validation","step":4,"loss":1.5,"bits_per_byte":2.0,"accuracy":0.25})");
  EXPECT_EQ(ToJsonLine(WindowRecord{1, 0, 3, 64}), R"({"step":1,"layer":0,"head":3,"window":64})");
}

TEST(RunFolderTest, DecisionsAndGroupsComeBackAsWritten) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  std::filesystem::create_directories(run);
  WindowRecord decided = {1, 0, 3, 64};
  decided.decision = HeadDecision{.groups = {2, 0}, .raw_index = 3, .index = 1};
  EXPECT_EQ(ToJsonLine(decided),
            R"({"step":1,"layer":0,"head":3,"window":64,"groups":[2,0],"raw_index":3,"index":1})");
  Append(WindowsPath(run),
         ToJsonLine(decided) + "\n" + ToJsonLine(WindowRecord{2, 0, 3, 32}) + "\n");
  const std::vector<WindowRecord> windows = ReadWindows(run);
  ASSERT_EQ(windows.size(), 2u);
  EXPECT_EQ(windows[0].decision, decided.decision);
  EXPECT_FALSE(windows[1].decision.has_value());

  GroupRecord top;
  top.level = 1;
  top.heads = {0, 1, 2};
  top.features = {0.5, 1.0 / 3};
  GroupRecord bottom = top;
  bottom.level = 0;
  bottom.parent = 0;
  bottom.raw_index = 2;
  bottom.index = 1;
  bottom.window = 16;
  Append(GroupsPath(run), ToJsonLine(top) + "\n" + ToJsonLine(bottom) + "\n");
  const std::vector<GroupRecord> groups = ReadGroups(run);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_FALSE(groups[0].parent || groups[0].index || groups[0].window);
  EXPECT_EQ(groups[0].features, top.features);
  EXPECT_EQ(groups[1].parent, 0);
  EXPECT_EQ(groups[1].raw_index, 2);
  EXPECT_EQ(groups[1].window, 16);
  EXPECT_THAT(groups[1].heads, ElementsAre(0, 1, 2));

  StepRecord step;
  step.flops_per_token = 1e6;
  step.control = ControlRecord{.path = "update",
                               .features_seconds = 0.25,
                               .grouping_seconds = 0.5,
                               .decision_seconds = 1,
                               .groups_per_level = {{4, 2}, {3}}};
  Append(MetricsPath(run), ToJsonLine(step) + "\n" + ToJsonLine(StepRecord{}) + "\n");
  const RunMetrics metrics = ReadMetrics(run);
  ASSERT_TRUE(metrics.steps[0].control.has_value());
  EXPECT_EQ(metrics.steps[0].control->path, "update");
  EXPECT_EQ(metrics.steps[0].control->decision_seconds, 1);
  EXPECT_THAT(metrics.steps[0].control->groups_per_level,
              ElementsAre(ElementsAre(4, 2), ElementsAre(3)));
  EXPECT_EQ(metrics.steps[0].flops_per_token, 1e6);
  EXPECT_FALSE(metrics.steps[1].control.has_value());
}

TEST(RunFolderTest, LeavesOutALineCutShortAndRefusesAMalformedOne) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  std::filesystem::create_directories(run);
  const std::string line = ToJsonLine(ValidationRecord{1, 1.5, 2.0});
  Append(MetricsPath(run), line + "\n" + line.substr(0, 20));
  EXPECT_EQ(ReadMetrics(run).validations.size(), 1u);
  Append(MetricsPath(run), "\n");
  EXPECT_THAT(ErrorOf([&] { ReadMetrics(run); }).first,
              AllOf(HasSubstr("metrics.jsonl"), HasSubstr("line 2")));
}

TEST(RunFolderTest, ListsWholeCheckpointsInOrder) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  for (const char* name : {"step-10", "step-9", ".step-11.tmp-1", "step-8.removed", "step-x"}) {
    std::filesystem::create_directories(run + "/checkpoints/" + name);
  }
  EXPECT_THAT(CheckpointSteps(run), ElementsAre(9, 10));
  EXPECT_TRUE(CheckpointSteps(folder / "nothing").empty());
}

TEST(TensorBoardTest, ChecksumIsCrc32c) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283U);            // the check value of the CRC catalogue
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aaU);  // RFC 3720, appendix B.4
}

TEST(TensorBoardTest, ScalarHasTheFramingAndFieldsOfAnEvent) {
  const std::string record = TensorBoardScalar(1.0, 300, "loss", 0.5F);
  // Event: 1 wall_time, 2 step (varint 300 = ac 02), 5 summary {1 value {1 tag, 2 simple_value}}.
  const std::string event(
      "\x09\0\0\0\0\0\0\xf0\x3f\x10\xac\x02"
      "\x2a\x0d\x0a\x0b\x0a\x04loss\x15\0\0\0\x3f",
      27);
  ASSERT_EQ(record.size(), 8 + 4 + event.size() + 4);
  EXPECT_EQ(record[0], static_cast<char>(event.size()));
  EXPECT_EQ(record.substr(12, event.size()), event);
}

TEST(AllocationMeasuresTest, CountsAsTheFormulasSay) {
  // Context 4: full pairs 10. Window 1: 4 pairs, with one sink 7; window 2: 7; window 9: all.
  EXPECT_DOUBLE_EQ(VisiblePairRatio({{1, 9}}, 0, 4), (4.0 + 10.0) / 20);
  EXPECT_DOUBLE_EQ(VisiblePairRatio({{1}, {2}}, 1, 4), (7.0 + 9.0) / 20);
  EXPECT_DOUBLE_EQ(AllocatedContextRatio({{1, 9}}, 0, 4), (1.0 + 4.0) / 8);
  EXPECT_DOUBLE_EQ(AllocatedContextRatio({{1}, {2}}, 1, 4), (2.0 + 3.0) / 8);
  // And refuses what is no allocation, as CostRatio does.
  EXPECT_THAT(ErrorOf([] { VisiblePairRatio({{1, 0}}, 0, 4); }).first, HasSubstr("window is 0"));
  EXPECT_THAT(ErrorOf([] { AllocatedContextRatio({{1}, {2, 3}}, 0, 4); }).first,
              HasSubstr("layer 1 has 2 heads"));
  for (const WindowTable& none : {WindowTable{}, WindowTable{{}}}) {
    EXPECT_THAT(ErrorOf([&] { VisiblePairRatio(none, 0, 4); }).first, HasSubstr("got none"));
    EXPECT_THAT(ErrorOf([&] { AllocatedContextRatio(none, 0, 4); }).first, HasSubstr("got none"));
  }
}

}  // namespace
}  // namespace aah
