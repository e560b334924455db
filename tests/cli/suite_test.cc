#include "aah/lab/suite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "aah/model/train_config.h"
#include "tests/cli/run_support.h"

namespace aah {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kBase[] = R"(base:
  data: data/none
  model: {layers: 2, heads: 2, width: 16, context: 64}
  training: {steps: 4, batch_size: 1}
  optimizer: {warmup_steps: 0}
)";

class SuiteTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& arms) {
    const std::string path = folder_ / "compare.yaml";
    std::filesystem::remove(path);
    AppendText(path, kBase + arms);
    return path;
  }
  Suite Read(const std::string& arms, const std::vector<std::string>& overrides = {}) {
    return ReadSuite(Write(arms), overrides, folder_ / "runs");
  }

  ScratchFolder folder_;
};

constexpr char kTwoArms[] = R"(arms:
  - name: full
  - name: narrow
    attention: {variant: window, window: 8}
    model: {width: 32}
)";

TEST_F(SuiteTest, AnArmIsTheBaseWithItsOwnSettings) {
  const Suite suite = Read(kTwoArms, {"training.steps=7"});
  EXPECT_EQ(suite.name, "runs");
  ASSERT_EQ(suite.arms.size(), 2u);
  EXPECT_EQ(suite.arms[0].name, "full");
  EXPECT_EQ(suite.arms[0].config.attention.variant, "full");
  EXPECT_EQ(suite.arms[0].config.model.width, 16);
  EXPECT_EQ(suite.arms[0].config.training.steps, 7);
  EXPECT_EQ(suite.arms[1].config.attention.window, 8);
  EXPECT_EQ(suite.arms[1].config.model.width, 32);
  EXPECT_EQ(suite.arms[1].config.model.context, 64);
  EXPECT_THAT(RunFolders(suite), ElementsAre(folder_ / "runs/full", folder_ / "runs/narrow"));
}

TEST_F(SuiteTest, WithoutAFolderItsNameIsTheFiles) {
  const Suite suite = ReadSuite(Write(kTwoArms), {}, "");
  EXPECT_EQ(suite.out, "runs/compare");
  EXPECT_EQ(suite.name, "compare");
}

TEST_F(SuiteTest, RefusesBadSuites) {
  const auto error = [&](const std::string& arms) { return ErrorOf([&] { Read(arms); }); };
  EXPECT_THAT(error(""), HasSubstr("expected a list of runs under `arms`, found none"));
  EXPECT_THAT(error("arms: [{name: a}, {name: a}]\n"), HasSubstr("is the name of two arms"));
  EXPECT_THAT(error("arms: [{name: ../a}]\n"), HasSubstr("expected letters, digits"));
  EXPECT_THAT(error("arms: [{attention: sdpa}]\n"), HasSubstr("name"));
  EXPECT_THAT(error("arms: [{name: a, out: x}]\n"), HasSubstr("each arm's folder"));
  EXPECT_THAT(error("arms: [{name: a, modle: {width: 8}}]\n"), HasSubstr("did you mean 'model'"));
  EXPECT_THAT(error("arms: [{name: a, model: {heads: 3}}]\n"), HasSubstr("heads"));
  EXPECT_THAT(error("arms: [{name: a}]\narmss: 1\n"), HasSubstr("did you mean 'arms'"));
}

TEST_F(SuiteTest, RunsArmsInOrderAndSkipsFinishedOnes) {
  const Suite suite = Read(kTwoArms);
  WriteRun(suite.arms[0].config, 4, /*finished=*/true);
  std::vector<std::string> recipes;
  std::vector<bool> finished;
  const int exit_code = RunSuite(
      suite,
      [&](const std::string& recipe) {
        recipes.push_back(recipe);
        EXPECT_TRUE(CompareRunConfigs(ReadRunConfig(recipe, {}), suite.arms[1].config).empty());
        return 0;
      },
      [&](size_t /*arm*/, bool is_finished) { finished.push_back(is_finished); });
  EXPECT_EQ(exit_code, 0);
  EXPECT_THAT(recipes, ElementsAre(folder_ / "runs/narrow.yaml"));
  EXPECT_THAT(finished, ElementsAre(true, false));
}

TEST_F(SuiteTest, RefusesAnArmTooLargeForThisMachineUnlessItIsDone) {
  const std::string large = R"(arms:
  - name: small
  - name: large
    training: {batch_size: 16777216}
    model: {context: 1048576, positions: rope}
)";
  const Suite suite = Read(large);
  int calls = 0;
  const auto count = [&](const std::string&) { return ++calls, 0; };
  const auto ignore = [](size_t, bool) {};
  EXPECT_THAT(ErrorOf([&] { RunSuite(suite, count, ignore); }), HasSubstr("GiB"));
  EXPECT_EQ(calls, 0);
  WriteRun(suite.arms[1].config, 4, /*finished=*/true);
  EXPECT_EQ(RunSuite(suite, count, ignore), 0);
  EXPECT_EQ(calls, 1);
}

TEST_F(SuiteTest, EndsAtTheFirstArmThatFails) {
  int calls = 0;
  const int exit_code = RunSuite(
      Read(kTwoArms), [&](const std::string&) { return ++calls, 130; }, [](size_t, bool) {});
  EXPECT_EQ(exit_code, 130);
  EXPECT_EQ(calls, 1);
}

TEST_F(SuiteTest, RefusesAFinishedRunOfAnotherConfigBeforeAnythingRuns) {
  WriteRun(Read(kTwoArms).arms[1].config, 4, /*finished=*/true);
  const Suite suite = Read(kTwoArms, {"training.steps=9"});
  int calls = 0;
  const std::string message = ErrorOf([&] {
    RunSuite(suite, [&](const std::string&) { return ++calls, 0; }, [](size_t, bool) {});
  });
  EXPECT_THAT(message, HasSubstr("training.steps = 4, this suite has 9"));
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace aah
