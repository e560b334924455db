#ifndef AAH_SCRATCH_H_
#define AAH_SCRATCH_H_

#include <cstddef>
#include <cstdint>

namespace aah {

// Working memory of the kernels, kept between calls so that a training step allocates none, one
// pool per process. Thread-safe. Memory is 64-byte aligned and not initialised.
class Scratch {
 public:
  // At least `bytes` bytes, from the pool where it has a block large enough.
  explicit Scratch(size_t bytes);
  ~Scratch();  // returns the block to the pool
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  template <typename Element>
  Element* As() const {
    return static_cast<Element*>(block_);
  }

  // Bytes lent out now, and the most that ever were since the last reset.
  static int64_t BytesInUse();
  static int64_t HighWaterBytes();
  static void ResetHighWater();

  // Frees the blocks that nobody holds.
  static void ReleaseUnused();

 private:
  void* block_;
  size_t capacity_;
};

}  // namespace aah

#endif  // AAH_SCRATCH_H_
