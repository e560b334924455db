#include "aah/lab/selection_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "aah/lab/run_log.h"
#include "aah/model/learned_options.h"
#include "aah/model/run_folder.h"
#include "tests/cli/run_support.h"

namespace aah {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SelectionHistoryTest, TellsTheWeightsOfAStep) {
  const RunLog log = LearnedLog();
  const SelectionHistory history(log);
  EXPECT_THAT(history.candidates(), ElementsAre(16, 32, 64));
  EXPECT_THAT(history.Steps(), ElementsAre(3, 4, 5, 7));
  EXPECT_EQ(history.StepAt(2), std::nullopt);
  EXPECT_EQ(history.StepAt(3), 3);
  EXPECT_EQ(history.StepAt(6), 5);
  EXPECT_EQ(history.StepAt(1000), 7);
  EXPECT_DOUBLE_EQ(history.At(4)[1]->weights[0][0], 0.4);
}

TEST(SelectionHistoryTest, LeavesOutAStepOfWhichLayersAreMissing) {
  RunLog log = LearnedLog();
  log.selection.pop_back();
  EXPECT_THAT(SelectionHistory(log).Steps(), ElementsAre(3, 4, 5));
  log.selection.clear();
  EXPECT_THAT(SelectionHistory(log).Steps(), IsEmpty());
  EXPECT_THAT(SelectionHistory(log).candidates(), IsEmpty());
}

TEST(SelectionHistoryTest, ClampsCandidatesToTheContext) {
  RunLog log = LearnedLog();
  for (SelectionRecord& record : log.selection) record.candidates.back() = 100;
  EXPECT_THAT(SelectionHistory(log).candidates(), ElementsAre(16, 32, 64));
}

TEST(SelectionHistoryTest, RefusesWhatContradictsTheModel) {
  const auto error = [](const auto& change) {
    RunLog log = LearnedLog();
    change(log.selection.back());
    return ErrorOf([&] { SelectionHistory history(log); });
  };
  EXPECT_THAT(error([](SelectionRecord& r) { r.layer = 2; }),
              HasSubstr("selection.jsonl: layer 2 where the model has 2 layers"));
  EXPECT_THAT(error([](SelectionRecord& r) { r.weights.pop_back(); }),
              HasSubstr("weights of 1 heads in step 7 where the model has 2 heads"));
  EXPECT_THAT(error([](SelectionRecord& r) { r.weights[1].pop_back(); }),
              HasSubstr("2 weights of a head in step 7 for 3 candidates"));
  EXPECT_THAT(error([](SelectionRecord& r) { r.weights[0][0] = 1.5; }),
              HasSubstr("a weight of 1.5 in step 7"));
  EXPECT_THAT(error([](SelectionRecord& r) { r.candidates = {16, 16, 64}; }),
              HasSubstr("windows of at least 1, ascending"));
  EXPECT_THAT(error([](SelectionRecord& r) { r.candidates[0] = 8; }),
              HasSubstr("other candidates in step 7 than in step 3"));
}

TEST(SelectionHistoryTest, ListsDecisions) {
  const auto decisions = SelectionDecisions(LearnedLog().metrics.steps);
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_EQ(decisions[0].step, 5);
  EXPECT_EQ(decisions[1].moved, 1);
  EXPECT_DOUBLE_EQ(decisions[0].duality_gap, 0.0625);
}

TEST(SelectionHistoryTest, TakesTheBudgetsLengthFromTheContext) {
  RunLog log = LearnedLog();
  EXPECT_EQ(BudgetOf(log.config.attention.learned, log.config.model.context).length, 64);
  EXPECT_EQ(BudgetOf(log.config.attention.learned, log.config.model.context).value, 0.25);
  log.config.attention.learned.budget_length = 1000;
  EXPECT_EQ(BudgetOf(log.config.attention.learned, log.config.model.context).length, 1000);
}

TEST(RunLogTest, HoldsTheSelectionAndWhetherThereIsAPlan) {
  const ScratchFolder folder;
  WriteRun(SmallConfig(folder / "run"), 4, false);
  EXPECT_FALSE(ReadRunLog(folder / "run").has_plan);
  EXPECT_THAT(ReadRunLog(folder / "run").selection, IsEmpty());
  for (const SelectionRecord& record : LearnedLog().selection) {
    AppendText(SelectionPath(folder / "run"), ToJsonLine(record) + "\n");
  }
  AppendText(PlanPath(folder / "run"), "{}\n");
  const RunLog log = ReadRunLog(folder / "run");
  EXPECT_TRUE(log.has_plan);
  EXPECT_THAT(SelectionHistory(log).Steps(), ElementsAre(3, 4, 5, 7));
}

}  // namespace
}  // namespace aah
