#include "aah/io/window_plan_file.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "aah/error.h"
#include "aah/io/file.h"
#include "aah/io/json.h"
#include "aah/window_budget.h"
#include "aah/window_plan.h"
#include "tests/io/error_of.h"
#include "tests/io/temporary_folder.h"

namespace aah {
namespace {

WindowPlan SmallPlan() {
  WindowPlan plan;
  plan.model = {"gpt", {.layers = 2, .heads = 4, .kv_heads = 2, .head_dim = 64}, "5f3a"};
  plan.sinks = 4;
  plan.windows = {{16, 16, 128, kUnlimitedWindow}, {64, 16, 16, 16}};
  plan.budget = {BudgetKind::kPairs, 0.3, 1024, CacheElement::kFloat16};
  plan.predicted = {{"pairs", 0.29}, {"regret", 1e-5}};
  plan.provenance = {"a \"corpus\"", 1 << 20, "learned", UINT64_MAX, {{"aah", "0.1"}}};
  return plan;
}

const std::string& SmallText() {
  static const std::string text = R"({
  "format": "aah-window-plan",
  "version": 1,
  "model": {"architecture":"gpt","layers":2,"heads":4,"kv_heads":2,"head_dim":64,"fingerprint":"5f3a"},
  "sinks": 4,
  "windows": [
    [16, 16, 128, 0],
    [64, 16, 16, 16]
  ],
  "budget": {"kind":"pairs","value":0.3,"length":1024},
  "predicted": {"pairs":0.29,"regret":1e-05},
  "provenance": {"data":"a \"corpus\"","tokens":1048576,"method":"learned","seed":18446744073709551615,"versions":{"aah":"0.1"}}
}
)";
  return text;
}

void ExpectEqual(const WindowPlan& a, const WindowPlan& b) {
  EXPECT_EQ(a.model.architecture, b.model.architecture);
  EXPECT_EQ(a.model.fingerprint, b.model.fingerprint);
  EXPECT_EQ(a.model.shape.layers, b.model.shape.layers);
  EXPECT_EQ(a.model.shape.heads, b.model.shape.heads);
  EXPECT_EQ(a.model.shape.kv_heads, b.model.shape.kv_heads);
  EXPECT_EQ(a.model.shape.head_dim, b.model.shape.head_dim);
  EXPECT_EQ(a.sinks, b.sinks);
  EXPECT_EQ(a.windows, b.windows);
  ASSERT_EQ(a.budget.has_value(), b.budget.has_value());
  if (a.budget) {
    EXPECT_EQ(a.budget->kind, b.budget->kind);
    EXPECT_EQ(a.budget->value, b.budget->value);
    EXPECT_EQ(a.budget->length, b.budget->length);
    EXPECT_EQ(a.budget->element, b.budget->element);
  }
  EXPECT_EQ(a.predicted, b.predicted);
  EXPECT_EQ(a.provenance.data, b.provenance.data);
  EXPECT_EQ(a.provenance.tokens, b.provenance.tokens);
  EXPECT_EQ(a.provenance.method, b.provenance.method);
  EXPECT_EQ(a.provenance.seed, b.provenance.seed);
  EXPECT_EQ(a.provenance.versions, b.provenance.versions);
}

// The small plan's text with the first `from` replaced.
std::string Changed(const std::string& from, const std::string& to) {
  std::string text = SmallText();
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string Refusal(const std::string& from, const std::string& to) {
  return ErrorOf([&] { ParseWindowPlan(Changed(from, to), "p.json"); });
}

TEST(WindowPlanFile, WritesAndReadsTheSamePlan) {
  const TemporaryFolder folder;
  EXPECT_EQ(WindowPlanText(SmallPlan()), SmallText());
  WriteWindowPlan(folder / "plan.json", SmallPlan());
  EXPECT_EQ(ReadFile(folder / "plan.json"), SmallText());
  EXPECT_EQ(folder.entry_count(), 1);
  ExpectEqual(ReadWindowPlan(folder / "plan.json"), SmallPlan());

  WindowPlan cache = SmallPlan();
  cache.budget = {BudgetKind::kCacheBytes, 0.1, 4096, CacheElement::kQ8};
  WriteWindowPlan(folder / "plan.json", cache);
  ExpectEqual(ReadWindowPlan(folder / "plan.json"), cache);
}

TEST(WindowPlanFile, WhatIsOptionalMayBeAbsent) {
  const WindowPlan plan = ParseWindowPlan(
      R"({"format": "aah-window-plan", "version": 1, "windows": [[0]], "sinks": 0,
          "model": {"architecture": "", "layers": 1, "heads": 1, "kv_heads": 1, "head_dim": 8,
                    "fingerprint": ""}})",
      "p.json");
  EXPECT_EQ(plan.windows, (WindowTable{{kUnlimitedWindow}}));
  EXPECT_FALSE(plan.budget.has_value());
  EXPECT_TRUE(plan.predicted.empty());
  EXPECT_EQ(plan.provenance.seed, 0U);
  ExpectEqual(ParseWindowPlan(WindowPlanText(plan), "again"), plan);
}

TEST(WindowPlanFile, RefusesOtherFormatsAndVersions) {
  EXPECT_EQ(Refusal("aah-window-plan", "gguf"),
            "p.json: expected the format 'aah-window-plan', got the text 'gguf': this is no window "
            "plan");
  EXPECT_EQ(Refusal("\"version\": 1", "\"version\": 2"),
            "p.json: expected version 1 of the format, got 2: it was written by another aah, use "
            "that one");
  EXPECT_EQ(Refusal("\"version\": 1", "\"version\": \"1\""),
            "p.json: 'version': expected an integer below 2^63, got the text '1'");
  EXPECT_EQ(ErrorOf([] { ParseWindowPlan("{}", "p.json"); }),
            "p.json: the key 'format' is missing");
  EXPECT_THROW(ParseWindowPlan("", "p.json"), Error);
  EXPECT_THROW(ParseWindowPlan("[1]", "p.json"), Error);
  for (size_t size = 0; size + 2 < SmallText().size(); size += 7) {
    EXPECT_THROW(ParseWindowPlan(SmallText().substr(0, size), "p.json"), Error) << size;
  }
}

TEST(WindowPlanFile, RefusesUnknownKeysAndWrongTypes) {
  EXPECT_EQ(Refusal("\"sinks\"", "\"sink\""),
            "p.json: the plan: unknown key the text 'sink' (did you mean 'sinks'?)");
  EXPECT_EQ(Refusal("\"fingerprint\":\"5f3a\"", "\"fingerprint\":7"),
            "p.json: 'fingerprint': expected a text, got 7");
  EXPECT_EQ(Refusal("\"value\":0.3", "\"value\":\"most\""),
            "p.json: 'value': expected a number, got the text 'most'");
  EXPECT_EQ(Refusal("\"length\":1024", "\"length\":1024,\"element\":\"fp16\""),
            "p.json: budget: 'element' is of a cache: expected it with the kind kv_bytes alone, "
            "got pairs");
  EXPECT_EQ(Refusal("\"kind\":\"pairs\"", "\"kind\":\"pair\""),
            "p.json: 'kind': unknown budget kind 'pair' (did you mean 'pairs'?)");
  EXPECT_EQ(Refusal("\"value\":0.3", "\"value\":1.5"),
            "p.json: the budget is 1.5: expected a share of full attention's cost, above 0 and at "
            "most 1");
  EXPECT_EQ(Refusal("\"regret\":1e-05", "\"regret\":null"),
            "p.json: 'regret': expected a number, got null");
  EXPECT_EQ(Refusal("18446744073709551615", "-1"),
            "p.json: 'seed': expected a whole number of 0 or more, below 2^64, got -1");
  EXPECT_EQ(Refusal("{\"aah\":\"0.1\"}", "[]"),
            "p.json: 'versions': expected an object of texts, got a list");
  EXPECT_EQ(Refusal("5f3a", "\\n"),
            "p.json: fingerprint: expected at most 256 bytes of text without line breaks, got 1 "
            "bytes with control characters");
}

TEST(WindowPlanFile, RefusesShapesThatDisagree) {
  EXPECT_EQ(Refusal("\"layers\":2", "\"layers\":3"),
            "p.json: windows: expected a list for each of 3 layers, got 2");
  EXPECT_EQ(Refusal("[64, 16, 16, 16]", "[64, 16, 16]"),
            "p.json: windows of layer 1: expected one for each of 4 heads, got 3");
  EXPECT_EQ(Refusal("[64, 16, 16, 16]", "16"),
            "p.json: windows of layer 1: expected one for each of 4 heads, got 16");
  EXPECT_EQ(Refusal("\"kv_heads\":2", "\"kv_heads\":3"),
            "p.json: expected key/value heads that divide the 4 heads, got 3");
  EXPECT_EQ(Refusal("\"head_dim\":64", "\"head_dim\":0"),
            "p.json: 'head_dim': expected 1 to 1048576, got 0");
  EXPECT_EQ(Refusal("\"layers\":2", "\"layers\":9000000000000"),
            "p.json: 'layers': expected 1 to 1048576, got 9000000000000");
}

TEST(WindowPlanFile, RefusesWindowsThatAreNone) {
  const std::string expected =
      "p.json: window of layer 0, head 2: expected 1 or more keys (at most 2147483647), or 0 for "
      "all of them, got ";
  EXPECT_EQ(Refusal("128", "-1"), expected + "-1");
  EXPECT_EQ(Refusal("128", "1.5"), expected + "1.5");
  EXPECT_EQ(Refusal("128", "2147483648"), expected + "2147483648");
  EXPECT_EQ(Refusal("128", "18446744073709551615"), expected + "18446744073709551615");
  EXPECT_EQ(Refusal("128", "\"all\""), expected + "the text 'all'");
  EXPECT_EQ(Refusal("\"sinks\": 4", "\"sinks\": -4"),
            "p.json: 'sinks': expected 0 to 2147483647, got -4");
}

TEST(WindowPlanFile, IsForOneModelAlone) {
  const TemporaryFolder folder;
  WriteWindowPlan(folder / "plan.json", SmallPlan());
  const auto refusal = [&](const PlanModel& model) {
    const std::string message = ErrorOf([&] { ReadWindowPlan(folder / "plan.json", model); });
    const std::string begin =
        (folder / "plan.json").string() + ": the plan is for another model: expected ";
    return message.starts_with(begin) ? message.substr(begin.size()) : message;
  };
  PlanModel model = SmallPlan().model;
  EXPECT_EQ(refusal(model), "(nothing was thrown)");
  model.fingerprint = "77aa";
  EXPECT_EQ(refusal(model),
            "the fingerprint '77aa', got '5f3a'; choose a plan made for this model");
  model.fingerprint = "";
  EXPECT_EQ(refusal(model), "(nothing was thrown)");
  model.shape.heads = 8;
  EXPECT_EQ(refusal(model), "8 heads, got 4; choose a plan made for this model");
  model.shape.layers = 12;
  EXPECT_EQ(refusal(model), "12 layers, got 2; choose a plan made for this model");
  model.architecture = "llama";
  EXPECT_EQ(refusal(model),
            "the architecture 'llama', got 'gpt'; choose a plan made for this model");
  model = SmallPlan().model;
  model.shape.kv_heads = 4;
  EXPECT_EQ(refusal(model), "4 key/value heads, got 2; choose a plan made for this model");
  model = SmallPlan().model;
  model.shape.head_dim = 32;
  EXPECT_EQ(refusal(model), "32 dimensions per head, got 64; choose a plan made for this model");
}

TEST(WindowPlanFile, WritesNoPlanThatItWouldNotRead) {
  const TemporaryFolder folder;
  WindowPlan plan = SmallPlan();
  plan.windows[1][2] = 0;
  EXPECT_EQ(ErrorOf([&] { WriteWindowPlan(folder / "plan.json", plan); }),
            "window plan: window of layer 1, head 2: expected 1 or more keys, got 0");
  plan = SmallPlan();
  plan.predicted["x"] = 1.0 / 0.0;
  EXPECT_EQ(ErrorOf([&] { WriteWindowPlan(folder / "plan.json", plan); }),
            "window plan: predicted 'x': expected a finite number, got inf");
  EXPECT_EQ(folder.entry_count(), 0);

  // Not UTF-8, as paths may be: still a plan that reads.
  plan = SmallPlan();
  plan.provenance.data = "caf\xe9";
  EXPECT_EQ(ParseWindowPlan(WindowPlanText(plan), "t").provenance.data, "caf\xef\xbf\xbd");
}

}  // namespace
}  // namespace aah
