#include "tests/golden/golden_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace aah::golden {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 7> kKinds = {
    "attention",      "cluster",        "hierarchy",        "layer_sequence",
    "nested_windows", "select_windows", "train_trajectory",
};

void AppendFiles(const fs::path& folder, std::vector<fs::path>& files) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
}

void AppendNumbers(const nlohmann::json& nested, std::vector<double>& numbers) {
  if (nested.is_array()) {
    for (const nlohmann::json& item : nested) AppendNumbers(item, numbers);
  } else {
    numbers.push_back(nested.get<double>());
  }
}

std::string Outcome(const Check& check, const nlohmann::json& file,
                    const nlohmann::json& golden_case) {
  try {
    return check(file, golden_case);
  } catch (const std::exception& error) {
    return error.what();
  }
}

void RunFile(const fs::path& path, const Check& check) {
  std::ifstream stream(path);
  const nlohmann::json file = nlohmann::json::parse(stream);
  int held = 0;
  int passed = 0;
  for (const nlohmann::json& golden_case : file.at("cases")) {
    const std::string difference = Outcome(check, file, golden_case);
    if (difference.empty()) {
      ++passed;
    } else {
      ADD_FAILURE() << path.string() << ", case " << held << ": " << difference;
    }
    ++held;
  }
  EXPECT_GT(held, 0) << path.string() << " holds no case";
  std::printf("%s: cases held %d, passed %d\n", path.filename().c_str(), held, passed);
}

}  // namespace

std::span<const std::string_view> Kinds() { return kKinds; }

std::string_view KindOf(const fs::path& file) {
  const std::string stem = file.stem().string();
  std::string_view best;
  for (const std::string_view kind : kKinds) {
    if (!stem.starts_with(kind) || kind.size() <= best.size()) continue;
    // `attention_2` is of the kind `attention`, `attentionless` is not.
    const bool whole_word = stem.size() == kind.size() || std::isalpha(stem[kind.size()]) == 0;
    if (whole_word) best = kind;
  }
  return best;
}

std::vector<fs::path> AllFiles() {
  std::vector<fs::path> files;
  AppendFiles(AAH_GOLDEN_SOURCE_DIR, files);
  const char* further = std::getenv("AAH_GOLDEN_DIR");
  if (further != nullptr && *further != '\0') {
    if (!fs::is_directory(further)) {
      throw std::runtime_error("AAH_GOLDEN_DIR names the folder " + std::string(further) +
                               ", which does not exist");
    }
    if (!fs::equivalent(further, AAH_GOLDEN_SOURCE_DIR)) {
      const size_t before = files.size();
      AppendFiles(further, files);
      if (files.size() == before) {
        throw std::runtime_error("AAH_GOLDEN_DIR names the folder " + std::string(further) +
                                 ", which holds no .json file");
      }
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

void RunKind(std::string_view kind, const Check& check) {
  int count = 0;
  for (const fs::path& path : AllFiles()) {
    if (KindOf(path) != kind) continue;
    RunFile(path, check);
    ++count;
  }
  EXPECT_GT(count, 0) << "no golden file of kind " << kind;
}

std::vector<double> Numbers(const nlohmann::json& nested) {
  std::vector<double> numbers;
  AppendNumbers(nested, numbers);
  return numbers;
}

std::string Compare(std::string_view name, std::span<const double> actual,
                    std::span<const double> expected) {
  std::ostringstream text;
  if (actual.size() != expected.size()) {
    text << name << " has " << actual.size() << " numbers, expected " << expected.size();
    return text.str();
  }
  for (size_t n = 0; n < actual.size(); ++n) {
    const double allowed = std::max(1e-5, 1e-4 * std::abs(expected[n]));
    if (std::abs(actual[n] - expected[n]) <= allowed) continue;
    text.precision(9);
    text << name << "[" << n << "] is " << actual[n] << ", expected " << expected[n];
    return text.str();
  }
  return {};
}

}  // namespace aah::golden
