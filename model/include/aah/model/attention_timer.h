#ifndef AAH_MODEL_ATTENTION_TIMER_H_
#define AAH_MODEL_ATTENTION_TIMER_H_

#include <chrono>

namespace aah {

// Wall-clock seconds this process has spent inside attention so far: scores, softmax and weighted
// sum, forward and backward, of our operator and of the sdpa variant alike; projections are not
// part of it. Only grows: a step's share is the difference over the step divided by its time.
// Thread-safe.
double AttentionSeconds();

// Adds the time from its construction to its destruction to AttentionSeconds().
class AttentionTimer {
 public:
  AttentionTimer() : start_(std::chrono::steady_clock::now()) {}
  ~AttentionTimer();
  AttentionTimer(const AttentionTimer&) = delete;
  AttentionTimer& operator=(const AttentionTimer&) = delete;

 private:
  std::chrono::steady_clock::time_point start_;
};

}  // namespace aah

#endif  // AAH_MODEL_ATTENTION_TIMER_H_
