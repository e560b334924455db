#include "aah/text/utf8.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/text/test_support.h"

namespace aah {
namespace {

TEST(FindInvalidUtf8, TakesEveryCharacter) {
  // All of U+0000..U+10FFFF but the surrogates, in one text.
  std::string text;
  for (uint32_t c = 0; c <= 0x10ffff; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    const auto put = [&](uint32_t byte) { text += static_cast<char>(byte); };
    if (c < 0x80) {
      put(c);
    } else if (c < 0x800) {
      put(0xc0 | c >> 6);
      put(0x80 | (c & 63));
    } else if (c < 0x10000) {
      put(0xe0 | c >> 12);
      put(0x80 | (c >> 6 & 63));
      put(0x80 | (c & 63));
    } else {
      put(0xf0 | c >> 18);
      put(0x80 | (c >> 12 & 63));
      put(0x80 | (c >> 6 & 63));
      put(0x80 | (c & 63));
    }
  }
  EXPECT_EQ(FindInvalidUtf8(text), text.size());
}

TEST(FindInvalidUtf8, FindsTheFirstBadByte) {
  for (const std::string bad :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2 ", "\xe0\x9f\xbf", "\xe2\x82",
        "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf0\x9f\x98", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xff", "\xc2\xc2\xa0"}) {
    EXPECT_EQ(FindInvalidUtf8(bad), 0U) << bad;
    EXPECT_EQ(FindInvalidUtf8("\u00e9 ascii, nine\n" + bad), 15U) << bad;
  }
}

TEST(CheckUtf8, NamesTextAndOffset) {
  EXPECT_EQ(BadInput([] { CheckUtf8("abc\xff", "notes.txt"); }),
            "notes.txt: expected UTF-8 text, byte 3 does not continue it; convert the text (for "
            "instance with iconv)");
}

TEST(CompleteUtf8Prefix, HoldsBackABegunCharacter) {
  EXPECT_EQ(CompleteUtf8Prefix(""), 0U);
  EXPECT_EQ(CompleteUtf8Prefix("ab"), 2U);
  EXPECT_EQ(CompleteUtf8Prefix("a\xc3\xa9"), 3U);
  EXPECT_EQ(CompleteUtf8Prefix("a\xc3"), 1U);
  EXPECT_EQ(CompleteUtf8Prefix("a\xf0\x9f\x98"), 1U);
  EXPECT_EQ(CompleteUtf8Prefix("a\xf0\x9f\x98\x80"), 5U);
  EXPECT_EQ(CompleteUtf8Prefix("\x80\x80\x80\x80"), 4U);
}

}  // namespace
}  // namespace aah
