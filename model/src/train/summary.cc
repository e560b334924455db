#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "aah/model/run_summary.h"

namespace aah {
namespace {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

std::vector<double> Collect(const std::vector<StepRecord>& steps, double StepRecord::* field) {
  std::vector<double> values;
  values.reserve(steps.size());
  for (const StepRecord& step : steps) values.push_back(step.*field);
  return values;
}

double Sum(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

double Mean(const std::vector<double>& values) {
  return values.empty() ? kNotMeasured : Sum(values) / static_cast<double>(values.size());
}

double Median(std::vector<double> values) {
  if (values.empty()) return kNotMeasured;
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(middle), values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (upper +
          *std::max_element(values.begin(), values.begin() + static_cast<int64_t>(middle))) /
         2;
}

}  // namespace

SummaryRecord Summarise(const RunMetrics& metrics) {
  const std::vector<StepRecord>& steps = metrics.steps;
  const bool stepped = !steps.empty();
  const bool validated = !metrics.validations.empty();
  return {
      .step = stepped ? steps.back().step : 0,
      .validation_loss = validated ? metrics.validations.back().loss : kNotMeasured,
      .bits_per_byte = validated ? metrics.validations.back().bits_per_byte : kNotMeasured,
      .allocated_context_ratio = Mean(Collect(steps, &StepRecord::allocated_context_ratio)),
      .visible_pair_ratio = Mean(Collect(steps, &StepRecord::visible_pair_ratio)),
      .flops_per_token = Mean(Collect(steps, &StepRecord::flops_per_token)),
      .tokens_per_second = stepped ? TokensPerSecond(steps) : kNotMeasured,
      .attention_share = Median(Collect(steps, &StepRecord::attention_share)),
      .control_share = stepped ? ControlShare(steps) : kNotMeasured,
      .seconds = Sum(Collect(steps, &StepRecord::seconds)),
  };
}

int64_t PeakMemoryBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

}  // namespace aah
