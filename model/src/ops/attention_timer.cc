#include "aah/model/attention_timer.h"

#include <atomic>
#include <cstdint>

namespace aah {
namespace {

std::atomic<int64_t> attention_nanoseconds = 0;

}  // namespace

double AttentionSeconds() {
  return 1e-9 * static_cast<double>(attention_nanoseconds.load(std::memory_order_relaxed));
}

AttentionTimer::~AttentionTimer() {
  const auto elapsed = std::chrono::steady_clock::now() - start_;
  attention_nanoseconds.fetch_add(
      std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count(),
      std::memory_order_relaxed);
}

}  // namespace aah
