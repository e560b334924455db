#include "aah/lab/table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "aah/error.h"
#include "aah/lab/plain_text.h"

namespace aah {
namespace {

TEST(TableTest, AlignsTheFirstColumnLeftAndTheOthersRight) {
  Table table({"run", "loss\nnats", "n"});
  table.AddRow({"a", "1.25", "10000"});
  table.AddRow({"größe", "11.25", "1"});
  EXPECT_EQ(table.ToText(),
            "run     loss      n\n"
            "        nats\n"
            "-----  -----  -----\n"
            "a       1.25  10000\n"
            "größe  11.25      1\n");
}

TEST(TableTest, RefusesARowOfAnotherLength) {
  Table table({"run", "loss"});
  EXPECT_THROW(table.AddRow({"a"}), Error);
}

TEST(TableTest, FormatsNumbers) {
  EXPECT_EQ(FormatFixed(1.23456, 3), "1.235");
  EXPECT_EQ(FormatFixed(std::nan(""), 3), "-");
  EXPECT_EQ(FormatThousands(0), "0");
  EXPECT_EQ(FormatThousands(999), "999");
  EXPECT_EQ(FormatThousands(1234567.4), "1,234,567");
  EXPECT_EQ(FormatThousands(-123456), "-123,456");
  EXPECT_EQ(FormatThousands(std::nan("")), "-");
}

TEST(PlainTextTest, HoldsNoControlCharacters) {
  EXPECT_EQ(PlainText("größe 1\u00a0€"), "größe 1\u00a0€");
  EXPECT_EQ(PlainText("a\x1b[1m\n\x7f"), "a [1m  ");
  EXPECT_EQ(PlainText("\u0080a\u009b1m\u009f"), " a 1m ");
  EXPECT_EQ(PlainText("\xc2"), "\xc2");
  EXPECT_EQ(PlainText(""), "");
}

TEST(TableTest, FormatsDurations) {
  EXPECT_EQ(FormatDuration(0), "0:00");
  EXPECT_EQ(FormatDuration(75.4), "1:15");
  EXPECT_EQ(FormatDuration(3700), "1:01:40");
  EXPECT_EQ(FormatDuration(-1), "-");
  EXPECT_EQ(FormatDuration(INFINITY), "-");
}

}  // namespace
}  // namespace aah
