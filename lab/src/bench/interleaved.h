#ifndef AAH_LAB_SRC_BENCH_INTERLEAVED_H_
#define AAH_LAB_SRC_BENCH_INTERLEAVED_H_

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace aah::bench {

// Seconds that `work` takes.
template <typename Work>
double Seconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// REQUIRES: at least one value.
double Median(std::vector<double> values);

// Times of one repeat. A probe that has no backward pass leaves it 0.
struct PassSeconds {
  double forward = 0;
  double backward = 0;
};

// One thing to time, and its times so far.
class Probe {
 public:
  explicit Probe(std::function<PassSeconds()> run) : run_(std::move(run)) {}

  void Run() { times_.push_back(run_()); }
  void Forget() { times_.clear(); }
  int repeats() const { return static_cast<int>(times_.size()); }

  // Medians over the repeats.
  double forward() const;
  double backward() const;
  double forward_backward() const;  // of the sums

 private:
  std::function<PassSeconds()> run_;
  std::vector<PassSeconds> times_;
};

struct Repeats {
  int warm_up = 1;
  int least = 3;
  int most = 15;
  double budget_seconds = 1;  // no new round begins after it, once there are `least`
};

// Runs all probes in turn, round after round, so that whatever slows the machine for a while slows
// all of them alike.
void RunInterleaved(const std::vector<Probe*>& probes, const Repeats& repeats);

}  // namespace aah::bench

#endif  // AAH_LAB_SRC_BENCH_INTERLEAVED_H_
