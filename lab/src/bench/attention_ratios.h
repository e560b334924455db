#ifndef AAH_LAB_SRC_BENCH_ATTENTION_RATIOS_H_
#define AAH_LAB_SRC_BENCH_ATTENTION_RATIOS_H_

#include <cstdint>
#include <string>

#include "aah/lab/bench.h"
#include "bench/attention_probes.h"
#include "bench/interleaved.h"

namespace aah::bench {

// Which passes of attention a ratio is about.
enum class Pass { kForward, kBackward, kBoth };

// What both sides of a ratio have in common; its figures are not set.
BenchResult Describe(const std::string& name, const Windows& windows, int64_t tokens);

// Ours, as one side of a ratio: its times and the windows that it computes.
struct OurSide {
  const Probe& probe;
  const Windows& windows;
};

// How many times longer torch takes than ours: at least `bar`.
BenchResult TorchOverOurs(const std::string& name, const Probe& torch_probe, const OurSide& ours,
                          int64_t tokens, Pass pass, double bar);

// How much longer ours takes than ours with other windows: at most `bar`.
BenchResult OursOverOurs(const std::string& name, const OurSide& numerator,
                         const Probe& denominator, int64_t tokens, Pass pass, double bar);

}  // namespace aah::bench

#endif  // AAH_LAB_SRC_BENCH_ATTENTION_RATIOS_H_
