#include "aah/lab/run_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "aah/lab/machine.h"
#include "aah/model/run_folder.h"
#include "tests/cli/run_support.h"

namespace aah {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RunLogTest, AFinishedRunIsItsSummary) {
  const ScratchFolder folder;
  WriteRun(SmallConfig(folder / "full"), 4, /*finished=*/true);
  const RunLog log = ReadRunLog(folder / "full/");
  EXPECT_EQ(log.name, "full");
  const RunFigures figures = Compare({log}).front();
  EXPECT_EQ(figures.step, 4);
  EXPECT_EQ(figures.steps, 4);
  EXPECT_EQ(figures.validation_loss, 1.25);
  EXPECT_EQ(figures.tokens_per_second, 2000);
  EXPECT_EQ(figures.peak_memory_bytes, 300.0 * (1 << 20));
  EXPECT_EQ(figures.speed, 1);
  EXPECT_EQ(figures.flops_per_token, 3e6);
  EXPECT_EQ(figures.control_share, 0.0625);
}

TEST(RunLogTest, AnUnfinishedRunIsWhatItHasLogged) {
  const ScratchFolder folder;
  WriteRun(SmallConfig(folder / "full"), 4, /*finished=*/true);
  WriteRun(SmallConfig(folder / "window"), 3, /*finished=*/false);
  const std::vector<RunFigures> figures =
      Compare({ReadRunLog(folder / "full"), ReadRunLog(folder / "window")});
  EXPECT_EQ(figures[1].step, 3);
  EXPECT_EQ(figures[1].validation_loss, 1.5);
  EXPECT_EQ(figures[1].bits_per_byte, 2.25);
  EXPECT_EQ(figures[1].tokens_per_second, 1000);
  EXPECT_EQ(figures[1].speed, 0.5);
  EXPECT_EQ(figures[1].attention_share, 0.25);
  EXPECT_EQ(figures[1].seconds, 3);
  EXPECT_EQ(figures[1].flops_per_token, 2e6);
  EXPECT_DOUBLE_EQ(figures[1].control_share, 0.5 / 3);
  EXPECT_TRUE(std::isnan(figures[1].peak_memory_bytes));
  const std::string table = ComparisonTable(figures).ToText();
  EXPECT_THAT(table, HasSubstr("window (step 3 of 4)"));
  EXPECT_THAT(table, HasSubstr("12.5%"));
}

TEST(RunLogTest, RefusesAFolderWithoutARun) {
  const ScratchFolder folder;
  EXPECT_THAT(ErrorOf([&] { ReadRunLog(folder.path()); }), HasSubstr("is no run folder"));
}

TEST(MachineFactsTest, ComeBackAsWritten) {
  const ScratchFolder folder;
  EXPECT_FALSE(ReadMachineFacts(folder.path()).has_value());
  const MachineFacts facts = ThisMachine();
  EXPECT_GE(facts.cores, 1);
  EXPECT_GT(facts.memory_bytes, 0);
  WriteMachineFacts(folder.path(), facts);
  EXPECT_EQ(Describe(*ReadMachineFacts(folder.path())), Describe(facts));
  AppendText(folder / "machine.json", "}");
  EXPECT_THAT(ErrorOf([&] { ReadMachineFacts(folder.path()); }), HasSubstr("machine.json"));
}

}  // namespace
}  // namespace aah
