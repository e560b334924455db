#include "aah/lab/window_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "aah/lab/run_log.h"
#include "tests/cli/run_support.h"

namespace aah {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RunLog SmallLog() {
  RunLog log;
  log.folder = "runs/small";
  log.config = SmallConfig(log.folder);
  return log;
}

TEST(WindowHistoryTest, TellsTheWindowsInForceAtAnyStep) {
  RunLog log = SmallLog();
  log.windows = {Window(1, 0, 0, 100),       Window(1, 0, 1, 16),       DecidedWindow(3, 0, 0, 32),
                 DecidedWindow(3, 0, 1, 16), DecidedWindow(5, 0, 0, 8), DecidedWindow(5, 0, 1, 16)};
  const WindowHistory history(log);
  EXPECT_EQ(history.At(0), (HeadMap{{64, 64}, {64, 64}}));
  EXPECT_EQ(history.At(1), (HeadMap{{64, 16}, {64, 64}}));  // clamped to the context
  EXPECT_EQ(history.At(2), (HeadMap{{64, 16}, {64, 64}}));
  EXPECT_EQ(history.At(4), (HeadMap{{32, 16}, {64, 64}}));
  EXPECT_EQ(history.AtTheEnd(), (HeadMap{{8, 16}, {64, 64}}));
}

TEST(WindowHistoryTest, CountsChangesAndDecisions) {
  RunLog log = SmallLog();
  log.windows = {Window(1, 0, 0, 64),        Window(1, 0, 1, 16),        DecidedWindow(3, 0, 0, 32),
                 DecidedWindow(3, 0, 1, 16), DecidedWindow(3, 1, 0, 64), DecidedWindow(5, 0, 0, 8),
                 DecidedWindow(7, 0, 0, 8)};
  const WindowHistory history(log);
  EXPECT_THAT(history.ChangeSteps(), ElementsAre(1, 3, 5));
  EXPECT_EQ(history.change_counts(), (HeadMap{{2, 0}, {0, 0}}));
  EXPECT_THAT(history.decision_counts(), ElementsAre(3, 1));
  EXPECT_TRUE(history.decided());
}

TEST(WindowHistoryTest, KnowsWhenNothingDecided) {
  RunLog log = SmallLog();
  EXPECT_THAT(WindowHistory(log).ChangeSteps(), IsEmpty());
  log.windows = {Window(1, 0, 0, 8)};
  EXPECT_FALSE(WindowHistory(log).decided());
  EXPECT_EQ(WindowHistory(log).change_counts(), (HeadMap{{0, 0}, {0, 0}}));
}

TEST(WindowHistoryTest, RefusesWhatContradictsTheModel) {
  const auto error = [](const WindowRecord& first, const WindowRecord& second) {
    RunLog log = SmallLog();
    log.windows = {first, second};
    return ErrorOf([&] { WindowHistory{log}; });
  };
  const WindowRecord good = Window(3, 0, 0, 8);
  EXPECT_EQ(error(good, good), "");
  EXPECT_THAT(error(good, Window(3, 2, 0, 8)),
              HasSubstr("windows.jsonl: layer 2, head 0 where the model has 2 layers of 2 heads"));
  EXPECT_THAT(error(good, Window(3, 0, -1, 8)), HasSubstr("head -1"));
  EXPECT_THAT(error(good, Window(3, 0, 0, 0)), HasSubstr("a window of 0 in step 3"));
  EXPECT_THAT(error(good, Window(2, 0, 0, 8)), HasSubstr("step 2 after step 3"));
}

TEST(GroupHistoryTest, FindsTheNewestGrouping) {
  RunLog log = SmallLog();
  log.groups = {Group(2, 0, 0, 0, 0, {0}), Group(2, 0, 0, 1, 0, {1}), Group(2, 0, 1, 0, {}, {0, 1}),
                Group(6, 0, 0, 0, {}, {0, 1})};
  const GroupHistory history(log);
  EXPECT_THAT(history.At(0, 1), IsEmpty());
  EXPECT_EQ(history.At(0, 2).size(), 3u);
  EXPECT_THAT(history.At(0, 5), ElementsAre(log.groups.data(), &log.groups[1], &log.groups[2]));
  EXPECT_THAT(history.At(0, 6), ElementsAre(&log.groups[3]));
  EXPECT_THAT(history.At(1, 6), IsEmpty());
  EXPECT_THAT(history.Steps(), ElementsAre(2, 6));
}

TEST(GroupHistoryTest, RefusesWhatIsNoHierarchyOfTheModel) {
  const auto error = [](const GroupRecord& group) {
    RunLog log = SmallLog();
    log.groups = {group};
    return ErrorOf([&] { GroupHistory{log}; });
  };
  EXPECT_EQ(error(Group(1, 1, 0, 0, {}, {0, 1})), "");
  EXPECT_THAT(error(Group(1, 2, 0, 0, {}, {0})), HasSubstr("layer 2 where the model has 2"));
  EXPECT_THAT(error(Group(1, 0, 0, 0, {}, {2})), HasSubstr("head 2 where the model has 2"));
  EXPECT_THAT(error(Group(1, 0, -1, 0, {}, {0})), HasSubstr("of level -1"));
  EXPECT_THAT(error(Group(1, 0, 0, 0, {}, {})), HasSubstr("a group without heads"));
  EXPECT_THAT(error(Group(4, 0, 0, 0, 3, {0})),
              HasSubstr("the parent of group 0 of level 0 in step 4 is not there"));
  GroupRecord short_row = Group(1, 0, 0, 0, {}, {0});
  short_row.features.pop_back();
  EXPECT_THAT(error(short_row), HasSubstr("8 features where 9 were expected"));
  RunLog log = SmallLog();
  log.groups = {Group(1, 0, 0, 0, {}, {0}), Group(1, 0, 0, 0, {}, {1})};
  EXPECT_THAT(ErrorOf([&] { GroupHistory{log}; }), HasSubstr("is there twice in step 1"));
}

}  // namespace
}  // namespace aah
