#include "train/summary.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

namespace aah {
namespace {

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
  return Sum(values) / static_cast<double>(values.size());
}

double Median(std::vector<double> values) {
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(middle), values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (upper +
          *std::max_element(values.begin(), values.begin() + static_cast<int64_t>(middle))) /
         2;
}

}  // namespace

SummaryRecord Summarise(const RunMetrics& metrics, int64_t parameters, int64_t peak_memory_bytes) {
  const std::vector<StepRecord>& steps = metrics.steps;
  const ValidationRecord& validation = metrics.validations.back();
  return {
      .step = steps.back().step,
      .validation_loss = validation.loss,
      .bits_per_byte = validation.bits_per_byte,
      .allocated_context_ratio = Mean(Collect(steps, &StepRecord::allocated_context_ratio)),
      .visible_pair_ratio = Mean(Collect(steps, &StepRecord::visible_pair_ratio)),
      .flops_per_token = Mean(Collect(steps, &StepRecord::flops_per_token)),
      .tokens_per_second = TokensPerSecond(steps),
      .attention_share = Median(Collect(steps, &StepRecord::attention_share)),
      .control_share = ControlShare(steps),
      .peak_memory_bytes = peak_memory_bytes,
      .parameters = parameters,
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
