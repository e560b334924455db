// The program as people run it: arguments in; exit code, output and files out.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "aah/io/window_plan_file.h"
#include "aah/model/run_folder.h"
#include "aah/plan_baselines.h"
#include "tests/cli/run_support.h"

namespace aah {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Outcome {
  int exit_code = 0;
  std::string output;
  std::string errors;
};

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class CommandLineTest : public ::testing::Test {
 protected:
  // Starts the program in the scratch folder; its output and errors go to files there, or to the
  // devices.
  pid_t Start(const std::vector<std::string>& arguments, const std::string& device = "",
              const std::string& error_device = "") {
    std::vector<std::string> words = {"aah"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      const std::string to = device.empty() ? folder_ / "output" : device;
      const int output = open(to.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
      const std::string errors_to = error_device.empty() ? folder_ / "errors" : error_device;
      const int errors = open(errors_to.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_NOCTTY, 0600);
      dup2(output, STDOUT_FILENO);
      dup2(errors, STDERR_FILENO);
      if (chdir(folder_.path().c_str()) == 0) execv(AAH_PROGRAM, pointers.data());
      _exit(127);
    }
    return child;
  }

  Outcome Wait(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
            ReadText(folder_ / "output"), ReadText(folder_ / "errors")};
  }

  Outcome Run(const std::vector<std::string>& arguments) { return Wait(Start(arguments)); }

  // Until the run is under way: its first line is logged.
  void WaitForMetrics(const std::string& run) {
    const std::string metrics = MetricsPath(folder_ / run);
    for (int i = 0; i < 3000 && !std::filesystem::exists(metrics); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  // A text of its own, and a recipe and a suite that train on it in a second.
  void PrepareSmallData() {
    std::string text;
    for (int i = 0; i < 1500; ++i) text += "line " + std::to_string(i * i) + " of a small text\n";
    AppendText(folder_ / "text.txt", text);
    const Outcome prepared = Run({"data", "prepare", "text.txt", "-o", "data/text"});
    ASSERT_EQ(prepared.exit_code, 0) << prepared.errors;
    const std::string body =
        "data: data/text\n"
        "threads: 1\n"
        "model: {layers: 1, heads: 2, width: 16, context: 64}\n"
        "training: {steps: 4, batch_size: 2}\n"
        "optimizer: {warmup_steps: 1}\n"
        "validation: {every: 2, stretches: 2}\n";
    AppendText(folder_ / "small.yaml", "out: runs/small\n" + body);
    std::string base;
    for (size_t begin = 0; begin < body.size();) {
      const size_t end = body.find('\n', begin) + 1;
      base += "  " + body.substr(begin, end - begin);
      begin = end;
    }
    AppendText(folder_ / "suite.yaml",
               "out: runs/suite\nbase:\n" + base +
                   "arms:\n  - {name: full}\n"
                   "  - {name: narrow, attention: {variant: window, window: 8}}\n");
  }

  ScratchFolder folder_;
};

TEST_F(CommandLineTest, EveryCommandExplainsItselfWithAnExample) {
  const std::vector<std::vector<std::string>> commands = {{},
                                                          {"data"},
                                                          {"data", "prepare"},
                                                          {"train"},
                                                          {"eval"},
                                                          {"suite"},
                                                          {"report"},
                                                          {"inspect"},
                                                          {"plan"},
                                                          {"plan", "show"},
                                                          {"plan", "shuffle"},
                                                          {"plan", "random"},
                                                          {"info"},
                                                          {"bench"},
                                                          {"bench", "attention"},
                                                          {"bench", "train"}};
  for (std::vector<std::string> command : commands) {
    command.emplace_back("--help");
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.output, HasSubstr("Example: aah ")) << command.front();
  }
}

TEST_F(CommandLineTest, WrongArgumentsAreOneLineAndExitCode2) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"trian"},
      {"train"},
      {"train", "none.yaml"},
      {"info", "--bogus"},
      {"eval", "runs/none"},
      {"eval", "runs/none", "--threads", "100000"},
      {"bench", "train", "--threads", "100000"},
      {"report", "runs/none"},
      {"inspect"},
      {"inspect", "runs/none"},
      {"inspect", "runs/none", "--step", "first"},
      {"inspect", "runs/none", "--json", "--csv", "tables"},
      {"suite", "none.yaml"},
      {"plan"},
      {"plan", "show", "none.json"},
      {"plan", "shuffle", "none.json", "-o", "out.json"},
      {"plan", "shuffle", "none.json"},
      {"plan", "random", "none.json", "-o", "out.json"},
      {"plan", "random", "none.json", "--candidates", "many", "-o", "out.json"},
      {"bench", "attention", "--isa", "MMX"},
      {"bench", "train", "--threads", "0"},
      {"data", "prepare", "none.txt"},
      {"data", "prepare", "kjv", "--split", "half"},
      {"data", "prepare", "kjv", "--seed", "-1"},
      {"data", "prepare", "kjv", "--validation", "much"},
      {"data", "prepare", "kjv", "--task", "recall"},
      {"data", "prepare", "kjv", "--pairs", "4"},
      {"data", "prepare", "--task", "recal"},
      {"data", "prepare", "--task", "recall", "--pairs", "33"}};
  for (const std::vector<std::string>& arguments : wrong) {
    const Outcome outcome = Run(arguments);
    std::string all;
    for (const std::string& argument : arguments) all += " " + argument;
    EXPECT_EQ(outcome.exit_code, 2) << all;
    EXPECT_EQ(outcome.output, "") << all;
    EXPECT_THAT(outcome.errors, StartsWith("aah: ")) << all;
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << all;
  }
}

TEST_F(CommandLineTest, SaysWhichNumberAnOptionExpects) {
  const auto error = [&](const std::vector<std::string>& arguments) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1);
    return outcome.errors;
  };
  EXPECT_THAT(error({"eval", "runs/none", "--threads", "abc"}),
              StartsWith("aah: --threads: expected a whole number, got 'abc' (aah --help"));
  EXPECT_THAT(error({"bench", "train", "--threads", "99999999999"}),
              StartsWith("aah: --threads: expected a whole number in its range, got '9999"));
  for (const std::string value : {"1.5", "-", ".."}) {
    EXPECT_THAT(error({"bench", "train", "--threads=" + value}),
                StartsWith("aah: --threads: expected a whole number, got '" + value + "'"));
  }
  EXPECT_THAT(error({"data", "prepare", "kjv", "--seed", "one"}),
              StartsWith("aah: --seed: expected a whole number from 0 on, got 'one'"));
  EXPECT_THAT(error({"data", "prepare", "kjv", "--test", "much"}),
              StartsWith("aah: --test: expected a number, got 'much'"));
}

TEST_F(CommandLineTest, WhatAMessageQuotesStaysOnItsLine) {
  PrepareSmallData();
  const Outcome outcome = Run({"train", "small.yaml", "seed=\x1b[1m\nfirst\u009b1m"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
  EXPECT_THAT(outcome.errors, AllOf(Not(HasSubstr("\x1b")), HasSubstr("first 1m")));
}

TEST_F(CommandLineTest, OutputThatCannotBeWrittenIsNoSuccess) {
  const pid_t child = Start({"info", "--json"}, "/dev/full");
  const Outcome outcome = Wait(child);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.errors, "aah: standard output cannot be written; is the disk full?\n");
}

TEST_F(CommandLineTest, InfoTellsWhatItRunsOn) {
  const Outcome outcome = Run({"info", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const nlohmann::json info = nlohmann::json::parse(outcome.output);
  EXPECT_GE(info["threads"], 1);
  EXPECT_THAT(info["attention_variants"].dump(), AllOf(HasSubstr("sdpa"), HasSubstr("windows")));
  EXPECT_THAT(Run({"info"}).output, HasSubstr("instruction set"));
}

TEST_F(CommandLineTest, PreparedDataIsNotReplacedUnasked) {
  PrepareSmallData();
  const Outcome again = Run({"data", "prepare", "text.txt", "-o", "data/text"});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.errors, HasSubstr("there is a data set already"));
  EXPECT_EQ(Run({"data", "prepare", "text.txt", "-o", "data/text", "--overwrite"}).exit_code, 0);
}

TEST_F(CommandLineTest, GeneratesRecallAndSaysWhatItNeeds) {
  const std::vector<std::string> prepare = {"data",        "prepare", "--task", "recall",
                                            "--sequences", "200",     "-o",     "data/asked"};
  const Outcome outcome = Run(prepare);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("recall of 8 pairs by 8 queries, vocabulary 80"),
                                    HasSubstr("train with model.context 256; a window up to 226")));
  EXPECT_THAT(Run(prepare).errors, HasSubstr("there is a data set already"));
  AppendText(folder_ / "recall.yaml",
             "out: runs/recall\ndata: data/asked\nthreads: 1\n"
             "model: {layers: 1, heads: 2, width: 16, context: 256}\n"
             "training: {steps: 2, batch_size: 2}\noptimizer: {warmup_steps: 1}\n");
  const Outcome trained = Run({"train", "recall.yaml"});
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_THAT(trained.errors, HasSubstr(" bits per byte  accuracy 0."));
}

TEST_F(CommandLineTest, ANarrowTerminalShowsHowMuchIsRight) {
  ASSERT_EQ(Run({"data", "prepare", "--task", "recall", "--sequences", "200", "-o", "data/asked"})
                .exit_code,
            0);
  AppendText(folder_ / "recall.yaml",
             "out: runs/recall\ndata: data/asked\nthreads: 1\n"
             "model: {layers: 1, heads: 2, width: 16, context: 256}\n"
             "training: {steps: 3, batch_size: 2}\noptimizer: {warmup_steps: 1}\n"
             "validation: {every: 1, stretches: 2}\n");
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(grantpt(terminal) | unlockpt(terminal), 0);
  setenv("TERM", "xterm", /*overwrite=*/1);
  const pid_t child = Start({"train", "recall.yaml"}, "", ptsname(terminal));
  std::string shown;
  std::array<char, 4096> part;
  for (ssize_t bytes = 0; (bytes = read(terminal, part.data(), part.size())) > 0;) {
    shown.append(part.data(), static_cast<size_t>(bytes));
  }
  close(terminal);
  EXPECT_EQ(Wait(child).exit_code, 0) << shown;
  EXPECT_THAT(shown, ContainsRegex("\rstep 2/3  loss [0-9.]+  validation [0-9.]+, [0-9.]+% right  "
                                   "[0-9,]+ tokens/s"));
}

TEST_F(CommandLineTest, TrainsAndEvaluates) {
  PrepareSmallData();
  const Outcome trained = Run({"train", "small.yaml", "attention.variant=sdpa"});
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_EQ(trained.output, "runs/small/checkpoints/step-4\n");
  EXPECT_THAT(trained.errors,
              AllOf(HasSubstr("runs/small: sdpa, "), HasSubstr("step 2/4"),
                    HasSubstr("finished in"), Not(HasSubstr("\x1b")), Not(HasSubstr("accuracy"))));
  const Outcome evaluated = Run({"eval", "runs/small", "--split", "test", "--json"});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.errors;
  const nlohmann::json result = nlohmann::json::parse(evaluated.output);
  EXPECT_EQ(result["step"], 4);
  EXPECT_EQ(result["split"], "test");
  EXPECT_NEAR(result["perplexity"].get<double>(), std::exp(result["loss"].get<double>()), 1e-6);
  EXPECT_EQ(result["by_position"].size(), 8u);
  EXPECT_THAT(Run({"eval", "runs/small"}).output, HasSubstr("position in the context"));
}

// For the model of PrepareSmallData: one layer, two heads of 8.
WindowPlan SmallPlan() {
  WindowPlan plan;
  plan.model = {.architecture = "gpt2", .shape = {1, 2, 2, 8}, .fingerprint = ""};
  plan.windows = {{4, kUnlimitedWindow}};
  plan.budget = {.kind = BudgetKind::kPairs, .value = 0.6, .length = 64};
  plan.provenance.method = "by \x1b[31mhand";
  return plan;
}

TEST_F(CommandLineTest, TrainsAndEvaluatesWithAPlan) {
  PrepareSmallData();
  WriteWindowPlan(folder_ / "plan.json", SmallPlan());
  const Outcome trained = Run({"train", "small.yaml", "attention.plan=plan.json"});
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_EQ(nlohmann::json::parse(Run({"inspect", "runs/small", "--json"}).output)["windows"],
            nlohmann::json::parse("[[4, 64]]"));
  const auto evaluate = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"eval", "runs/small", "--json"});
    const Outcome outcome = Run(more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return nlohmann::json::parse(outcome.output);
  };
  const nlohmann::json own = evaluate({});
  const nlohmann::json same = evaluate({"--plan", "plan.json"});
  EXPECT_EQ(own["attention"], "windows");
  EXPECT_EQ(same["attention"], "plan plan.json");
  EXPECT_EQ(same["loss"], own["loss"]);

  WindowPlan narrow = SmallPlan();
  narrow.windows = {{1, 1}};
  WriteWindowPlan(folder_ / "narrow.json", narrow);
  const nlohmann::json other = evaluate({"--plan", "narrow.json"});
  EXPECT_NE(other["loss"], own["loss"]);
  EXPECT_NEAR(other["allocated_context_ratio"].get<double>(), 1.0 / 64, 1e-12);

  // The run has its windows: it needs the file no more, and another plan is another run.
  EXPECT_THAT(Run({"train", "small.yaml", "attention.plan=narrow.json"}).errors,
              AllOf(HasSubstr("holds a run with another config"), HasSubstr("attention.windows")));
  WindowPlan wrong = SmallPlan();
  wrong.model.shape.layers = 2;
  wrong.windows.push_back({8, 8});
  WriteWindowPlan(folder_ / "wrong.json", wrong);
  const Outcome refused = Run({"eval", "runs/small", "--plan", "wrong.json"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.errors,
            "aah: wrong.json: the plan is for another model: expected 1 layers, got 2; choose a "
            "plan made for this model\n");
  EXPECT_EQ(Run({"train", "small.yaml", "out=runs/w", "attention.plan=wrong.json"}).exit_code, 2);
  EXPECT_EQ(Run({"eval", "runs/small", "--plan", "none.json"}).exit_code, 2);
}

TEST_F(CommandLineTest, ShowsAPlan) {
  WriteWindowPlan(folder_ / "plan.json", SmallPlan());
  const Outcome shown = Run({"plan", "show", "plan.json"});
  ASSERT_EQ(shown.exit_code, 0) << shown.errors;
  // Pairs: a window of 4 shows 10 + 60 * 4 of 2080.
  EXPECT_THAT(shown.output,
              AllOf(StartsWith("plan.json\n"),
                    HasSubstr("model        gpt2, 1 layers of 2 heads (2 key/value heads) of 8\n"),
                    HasSubstr("budget       0.6 of full attention's visible pairs at 64 tokens\n"),
                    HasSubstr("method       by  [31mhand\n"), Not(HasSubstr("\x1b")),
                    HasSubstr("Cost at 64 tokens\n"), HasSubstr("0.5601\n"), HasSubstr("0.5312\n"),
                    HasSubstr("Windows: the last tokens a head sees, of 64\n"),
                    HasSubstr("    0    4 64\n")));
  EXPECT_THAT(Run({"plan", "show", "plan.json", "--length", "4"}).output,
              AllOf(HasSubstr("Cost at 4 tokens\n"), HasSubstr("1.0000\n")));
  EXPECT_EQ(Run({"plan", "show", "plan.json", "--length", "0"}).exit_code, 2);

  WindowPlan bare = SmallPlan();
  bare.budget.reset();
  WriteWindowPlan(folder_ / "bare.json", bare);
  EXPECT_THAT(
      Run({"plan", "show", "bare.json"}).output,
      AllOf(HasSubstr("(0: all of them)\n"), HasSubstr("    0   4 0\n"), Not(HasSubstr("Cost"))));
  EXPECT_THAT(Run({"plan", "shuffle", "bare.json", "-o", "out.json"}).errors,
              HasSubstr("give --length"));
  EXPECT_EQ(Run({"plan", "shuffle", "bare.json", "--length", "9", "-o", "out.json"}).exit_code, 0);
}

TEST_F(CommandLineTest, MakesBaselinesOfAPlan) {
  WindowPlan plan = SmallPlan();
  plan.model.shape = {4, 4, 2, 8};
  plan.windows = {{4, 4, 8, 8}, {4, 4, 4, 4}, {16, 16, 64, 64}, {4, 4, 32, 32}};
  WriteWindowPlan(folder_ / "plan.json", plan);
  const std::vector<std::string> shuffle = {"plan", "shuffle", "plan.json",    "--seed",
                                            "3",    "-o",      "shuffled.json"};
  const Outcome shuffled = Run(shuffle);
  ASSERT_EQ(shuffled.exit_code, 0) << shuffled.errors;
  const std::string cost = " of full attention's visible pairs at 64 tokens\n";
  EXPECT_THAT(shuffled.output, AllOf(StartsWith("plan.json: 0."), HasSubstr(cost)));
  const WindowPlan read = ReadWindowPlan(folder_ / "shuffled.json");
  EXPECT_EQ(read.windows, ShuffledPlan(plan, 3).windows);
  EXPECT_EQ(read.provenance.seed, 3u);
  EXPECT_EQ(read.provenance.versions.count("aah"), 1u);

  EXPECT_EQ(Run(shuffle).exit_code, 2);
  EXPECT_THAT(Run(shuffle).errors, HasSubstr("there is a file already"));
  std::vector<std::string> again = shuffle;
  again.emplace_back("--overwrite");
  EXPECT_EQ(Run(again).exit_code, 0);

  const auto draw = [&](const std::string& candidates, const std::string& out) {
    return Run({"plan", "random", "plan.json", "--candidates", candidates, "-o", out});
  };
  const Outcome drawn = draw("2,8,64", "random.json");
  ASSERT_EQ(drawn.exit_code, 0) << drawn.errors;
  EXPECT_THAT(drawn.output, AllOf(HasSubstr("plan.json: 0."), HasSubstr("\nrandom.json: 0.")));
  EXPECT_EQ(ReadWindowPlan(folder_ / "random.json").windows,
            RandomPlan(plan, std::vector<int32_t>{2, 8, 64}, *plan.budget, 0).windows);
  for (const auto& [candidates, out, message] : std::vector<std::array<std::string, 3>>{
           {"64,8", "x.json", "each larger than the one before"},
           {"0,8", "x.json", "candidate window 0 is 0"},
           {"-2,8", "x.json", "candidate window 0 is -2"},
           {"60,64", "x.json", "cannot be kept"},
           {"8,64", "none/x.json", "none"},
           {"8,64", "plan.json/x.json", "plan.json"}}) {
    const Outcome outcome = draw(candidates, out);
    EXPECT_EQ(outcome.exit_code, 2) << candidates << " " << out;
    EXPECT_EQ(outcome.output, "");
    EXPECT_THAT(outcome.errors, HasSubstr(message));
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1);
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x.json"));
}

TEST_F(CommandLineTest, InspectsARun) {
  PrepareSmallData();
  const Outcome trained = Run({"train", "small.yaml", "attention={variant: window, window: 8}"});
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const Outcome shown = Run({"inspect", "runs/small", "--step", "2"});
  EXPECT_EQ(shown.exit_code, 0) << shown.errors;
  EXPECT_THAT(shown.output,
              AllOf(HasSubstr("step 2 of 4"), HasSubstr("    0   8 8\n"),
                    HasSubstr("nothing decided the windows"), Not(HasSubstr("\x1b"))));
  const nlohmann::json json =
      nlohmann::json::parse(Run({"inspect", "runs/small", "--json"}).output);
  EXPECT_EQ(json["windows"], nlohmann::json::parse("[[8, 8]]"));
  EXPECT_EQ(json["step"], 4);
  const Outcome wrong = Run({"inspect", "runs/small", "--step", "5"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(wrong.errors,
            "aah: step 5 of 'runs/small': the run has steps 1 to 4; the nearest is 4\n");
  const Outcome tables = Run({"inspect", "runs/small", "--csv", "tables"});
  EXPECT_EQ(tables.output, "tables/windows.csv\ntables/siblings.csv\n");
  EXPECT_THAT(ReadText(folder_ / "tables/windows.csv"), HasSubstr("\n1,0,1,8,,,\n"));
}

TEST_F(CommandLineTest, AStoppedRunSavesAndGoesOn) {
  PrepareSmallData();
  for (const int signal : {SIGTERM, SIGHUP}) {
    const std::string run = "runs/stopped" + std::to_string(signal);
    const std::vector<std::string> arguments = {"train", "small.yaml", "training.steps=300",
                                                "out=" + run};
    const pid_t child = Start(arguments);
    WaitForMetrics(run);
    kill(child, signal);
    kill(child, signal);  // an echo changes nothing
    const Outcome stopped = Wait(child);
    EXPECT_EQ(stopped.exit_code, 128 + signal);
    EXPECT_THAT(stopped.errors, AllOf(HasSubstr("stopped after step "),
                                      HasSubstr("saved in " + run + "/checkpoints/step-"),
                                      HasSubstr("the same command goes on from there")));
    const std::vector<int64_t> saved = CheckpointSteps(folder_ / run);
    ASSERT_EQ(saved.size(), 1u);
    const Outcome finished = Run(arguments);
    EXPECT_EQ(finished.exit_code, 0) << finished.errors;
    EXPECT_THAT(finished.errors, HasSubstr("goes on after step " + std::to_string(saved.front())));
  }
}

TEST_F(CommandLineTest, AHangupOfASuiteIsItsRunsToObey) {
  PrepareSmallData();
  const pid_t child = Start({"suite", "suite.yaml", "training.steps=300"});
  WaitForMetrics("runs/suite/full");
  kill(child, SIGHUP);
  const Outcome stopped = Wait(child);
  EXPECT_EQ(stopped.exit_code, 128 + SIGHUP);
  EXPECT_THAT(stopped.errors, HasSubstr("saved in runs/suite/full/checkpoints/step-"));
  EXPECT_EQ(CheckpointSteps(folder_ / "runs/suite/full").size(), 1u);
}

TEST_F(CommandLineTest, ASignalThatASuiteGetsEarlyIsNotLost) {
  PrepareSmallData();
  for (const int milliseconds : {0, 0, 1, 2, 4, 8}) {
    std::filesystem::remove(folder_ / "errors");
    const pid_t child = Start({"suite", "suite.yaml", "training.steps=3000"});
    for (int i = 0; i < 60000 && ReadText(folder_ / "errors").empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    kill(child, SIGTERM);
    const Outcome stopped = Wait(child);
    // Whom it ends depends on the moment.
    EXPECT_THAT(stopped.exit_code, AnyOf(-SIGTERM, 128 + SIGTERM)) << stopped.errors;
    EXPECT_THAT(stopped.errors, Not(HasSubstr("[2/2]")));
    std::filesystem::remove_all(folder_ / "runs");
  }
}

// As nohup starts it.
TEST_F(CommandLineTest, AHangupThatIsIgnoredStaysSo) {
  PrepareSmallData();
  const auto before = std::signal(SIGHUP, SIG_IGN);
  const pid_t child = Start({"suite", "suite.yaml", "training.steps=30"});
  std::signal(SIGHUP, before);
  WaitForMetrics("runs/suite/full");
  kill(child, SIGHUP);
  const Outcome outcome = Wait(child);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("narrow"));
}

TEST_F(CommandLineTest, ASuiteEndsInATableAndAPage) {
  PrepareSmallData();
  const Outcome outcome = Run({"suite", "suite.yaml", "training.steps=3"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("validation"), HasSubstr("narrow"),
                                    HasSubstr("runs/suite/report.html")));
  EXPECT_THAT(outcome.errors, AllOf(HasSubstr("[1/2] full"), HasSubstr("[2/2] narrow")));
  EXPECT_THAT(ReadText(folder_ / "runs/suite/report.html"), HasSubstr("</html>"));
  const Outcome again = Run({"suite", "suite.yaml", "training.steps=3"});
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_THAT(again.errors, AllOf(HasSubstr("not run again"), Not(HasSubstr("finished in"))));
  EXPECT_EQ(again.output, outcome.output);

  const Outcome report = Run({"report", "runs/suite/narrow", "runs/suite/full", "-o", "two.html"});
  EXPECT_EQ(report.exit_code, 0) << report.errors;
  EXPECT_THAT(report.output, HasSubstr("narrow"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "two.html"));
}

}  // namespace
}  // namespace aah
