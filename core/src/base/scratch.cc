#include "aah/scratch.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "aah/error.h"

namespace aah {
namespace {

constexpr size_t kAlignment = 64;
// More than any machine has: a size beyond comes from a shape gone wrong.
constexpr size_t kMostBytes = size_t{1} << 40;

struct Block {
  void* data;
  size_t capacity;
};

// Rounded up by at most an eighth, so that nearby sizes share blocks.
size_t CapacityFor(size_t bytes) {
  const size_t step = std::max(kAlignment, std::bit_floor(std::max<size_t>(bytes, 1)) / 8);
  return (std::max<size_t>(bytes, 1) + step - 1) / step * step;
}

class Pool {
 public:
  Block Take(size_t bytes) {
    const size_t capacity = CapacityFor(bytes);
    Block block = {nullptr, capacity};
    {
      const std::scoped_lock lock(mutex_);
      // The smallest that fits, but none so large that a big block hides behind a small need.
      auto best = unused_.end();
      for (auto it = unused_.begin(); it != unused_.end(); ++it) {
        const bool fits = it->capacity >= capacity && it->capacity <= 2 * capacity;
        if (fits && (best == unused_.end() || it->capacity < best->capacity)) best = it;
      }
      if (best != unused_.end()) {
        block = *best;
        unused_.erase(best);
        unused_bytes_ -= static_cast<int64_t>(block.capacity);
      }
      in_use_ += static_cast<int64_t>(block.capacity);
      if (capacity <= kMostBytes) high_water_ = std::max(high_water_, in_use_);
      ever_high_ = std::max(ever_high_, high_water_);
    }
    if (block.data == nullptr && capacity <= kMostBytes) {
      block.data = std::aligned_alloc(kAlignment, capacity);
    }
    if (block.data == nullptr) {
      const std::scoped_lock lock(mutex_);
      in_use_ -= static_cast<int64_t>(block.capacity);
      ThrowError(
          ErrorKind::kMachine, "out of memory: ", bytes,
          " bytes of working memory were refused, so use a shorter context or fewer threads");
    }
    return block;
  }

  void Return(Block block) {
    {
      const std::scoped_lock lock(mutex_);
      in_use_ -= static_cast<int64_t>(block.capacity);
      // Changing sizes must not pile up: keep at most what was once needed at the same time, and
      // as much again for the other sizes of a step.
      const auto capacity = static_cast<int64_t>(block.capacity);
      if (unused_bytes_ + capacity <= 2 * ever_high_) {
        unused_.push_back(block);
        unused_bytes_ += capacity;
        return;
      }
    }
    std::free(block.data);
  }

  int64_t in_use() {
    const std::scoped_lock lock(mutex_);
    return in_use_;
  }

  int64_t high_water() {
    const std::scoped_lock lock(mutex_);
    return high_water_;
  }

  void ResetHighWater() {
    const std::scoped_lock lock(mutex_);
    high_water_ = in_use_;
  }

  void ReleaseUnused() {
    const std::scoped_lock lock(mutex_);
    for (const Block& block : unused_) std::free(block.data);
    unused_.clear();
    unused_bytes_ = 0;
  }

 private:
  std::mutex mutex_;
  std::vector<Block> unused_;
  int64_t unused_bytes_ = 0;
  int64_t in_use_ = 0;
  int64_t high_water_ = 0;
  int64_t ever_high_ = 0;  // as high_water_, never reset
};

// Never destroyed: scratch may be returned by threads that outlive static destruction.
Pool& ThePool() {
  static Pool* const pool = new Pool;
  return *pool;
}

}  // namespace

Scratch::Scratch(size_t bytes) : block_(nullptr), capacity_(0) {
  const Block block = ThePool().Take(bytes);
  block_ = block.data;
  capacity_ = block.capacity;
}

Scratch::~Scratch() { ThePool().Return({block_, capacity_}); }

int64_t Scratch::BytesInUse() { return ThePool().in_use(); }
int64_t Scratch::HighWaterBytes() { return ThePool().high_water(); }
void Scratch::ResetHighWater() { ThePool().ResetHighWater(); }
void Scratch::ReleaseUnused() { ThePool().ReleaseUnused(); }

}  // namespace aah
