#include "aah/io/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "aah/error.h"
#include "tests/io/error_of.h"

namespace aah {
namespace {

TEST(ParseJson, BuildsTheSameValueAsTheLibrary) {
  const std::string text =
      R"({"a": [1, -2, 3.5, "x\u00e9", null, true, {"b": []}], "c": {}, "": 18446744073709551615})";
  EXPECT_EQ(ParseJson(text, "t"), Json::parse(text));
  EXPECT_EQ(ParseJson(" 7 ", "t"), Json(7));
}

TEST(ParseJson, SaysWhereTheTextIsBroken) {
  EXPECT_EQ(ErrorOf([] { ParseJson("{\"a\": 1,\n  \"b\": ]}", "x.json"); }),
            "x.json: not valid JSON at line 2, column 8, near '\"b\": ]'");
  EXPECT_EQ(ErrorOf([] { ParseJson("[1, 2", "x.json"); }),
            "x.json: not valid JSON at line 1, column 6: the text ends too "
            "early");
  EXPECT_THROW(ParseJson("", "x.json"), Error);
  EXPECT_THROW(ParseJson("1 2", "x.json"), Error);
  EXPECT_THROW(ParseJson("\"\xff\"", "x.json"), Error);
  EXPECT_THROW(ParseJson("1e999", "x.json"), Error);
}

TEST(ParseJson, RefusesARepeatedKeyAndDeepNesting) {
  EXPECT_EQ(ErrorOf([] { ParseJson(R"({"a": {"b": 1, "b": 2}})", "x.json"); }),
            "x.json: key 'b' is given twice in one object, remove one");
  const std::string deep(kMaxJsonDepth, '[');
  EXPECT_EQ(ParseJson(deep + std::string(kMaxJsonDepth, ']'), "t").size(), 1U);
  EXPECT_EQ(ErrorOf([&] { ParseJson(deep + "[", "x.json"); }),
            "x.json: nested deeper than 128 levels");
}

TEST(JsonMember, ReadsTypesStrictly) {
  const Json object =
      ParseJson(R"({"i": 3, "f": 2.5, "s": "x", "b": false, "n": null, "big": 1e3})", "t");
  EXPECT_EQ(JsonMember<int64_t>(object, "i", "t"), 3);
  EXPECT_EQ(JsonMember<double>(object, "i", "t"), 3.0);
  EXPECT_EQ(JsonMember<double>(object, "f", "t"), 2.5);
  EXPECT_EQ(JsonMember<std::string>(object, "s", "t"), "x");
  EXPECT_FALSE(JsonMember<bool>(object, "b", "t"));
  EXPECT_EQ(JsonMemberOr<int64_t>(object, "absent", 7, "t"), 7);
  EXPECT_EQ(JsonMemberOr<int64_t>(object, "n", 7, "t"), 7);
  EXPECT_EQ(JsonMemberOr<int64_t>(object, "i", 7, "t"), 3);
  EXPECT_EQ(ErrorOf([&] { JsonMember<int64_t>(object, "f", "x.json"); }),
            "x.json: 'f': expected an integer below 2^63, got 2.5");
  EXPECT_EQ(ErrorOf([&] { JsonMember<bool>(object, "s", "x.json"); }),
            "x.json: 's': expected true or false, got the text 'x'");
  EXPECT_EQ(ErrorOf([&] { JsonMember<double>(object, "q", "x.json"); }),
            "x.json: the key 'q' is missing");
  EXPECT_EQ(ErrorOf([] { JsonMember<double>(Json::array(), "q", "x.json"); }),
            "x.json: expected an object with the key 'q', got a list");
}

}  // namespace
}  // namespace aah
