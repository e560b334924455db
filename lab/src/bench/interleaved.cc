#include "bench/interleaved.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace aah::bench {

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

namespace {

template <typename Value>
double MedianOf(const std::vector<PassSeconds>& times, const Value& value) {
  std::vector<double> values;
  values.reserve(times.size());
  for (const PassSeconds& time : times) values.push_back(value(time));
  return Median(std::move(values));
}

}  // namespace

double Probe::forward() const {
  return MedianOf(times_, [](const PassSeconds& time) { return time.forward; });
}

double Probe::backward() const {
  return MedianOf(times_, [](const PassSeconds& time) { return time.backward; });
}

double Probe::forward_backward() const {
  return MedianOf(times_, [](const PassSeconds& time) { return time.forward + time.backward; });
}

void RunInterleaved(const std::vector<Probe*>& probes, const Repeats& repeats) {
  for (int round = 0; round < repeats.warm_up; ++round) {
    for (Probe* probe : probes) {
      probe->Run();
      probe->Forget();
    }
  }
  const auto start = std::chrono::steady_clock::now();
  for (int round = 0; round < repeats.most; ++round) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    if (round >= repeats.least && spent.count() >= repeats.budget_seconds) break;
    for (Probe* probe : probes) probe->Run();
  }
}

}  // namespace aah::bench
