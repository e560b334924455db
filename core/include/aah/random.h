#ifndef AAH_RANDOM_H_
#define AAH_RANDOM_H_

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>

namespace aah {

// SplitMix64 (Steele, Lea, Flood, 2014): one step of the sequence, also a good 64-bit mixer.
constexpr uint64_t SplitMix64(uint64_t& state) {
  state += 0x9e3779b97f4a7c15U;
  uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

// xoshiro256** 1.0 (Blackman, Vigna, 2018), seeded through SplitMix64. Our documented generator:
// the same numbers on every machine and standard library, and a state that checkpoints can hold.
class Random {
 public:
  using State = std::array<uint64_t, 4>;

  explicit constexpr Random(uint64_t seed) : state_{} {
    for (uint64_t& word : state_) word = SplitMix64(seed);
  }

  const State& state() const { return state_; }
  void set_state(const State& state) { state_ = state; }

  constexpr uint64_t Next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17U;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, 1), 53 bits.
  constexpr double Uniform() { return static_cast<double>(Next() >> 11U) * 0x1.0p-53; }

  // Uniform integer in [0, bound), bound >= 1, without bias (Lemire, 2019).
  constexpr uint64_t Below(uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    Wide product = static_cast<Wide>(Next()) * bound;
    const uint64_t threshold = (0 - bound) % bound;
    while (static_cast<uint64_t>(product) < threshold) {
      product = static_cast<Wide>(Next()) * bound;
    }
    return static_cast<uint64_t>(product >> 64U);
  }

  // Fisher-Yates.
  template <typename Element>
  constexpr void Shuffle(std::span<Element> items) {
    for (uint64_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[Below(i)]);
  }

 private:
  State state_;
};

}  // namespace aah

#endif  // AAH_RANDOM_H_
