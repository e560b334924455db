#include <torch/torch.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "aah/lab/bench.h"
#include "aah/scratch.h"
#include "bench/attention_probes.h"
#include "bench/attention_ratios.h"
#include "bench/interleaved.h"

namespace aah {
namespace {

using bench::AttentionTensors;
using bench::OurSide;
using bench::OursOverOurs;
using bench::Pass;
using bench::Probe;
using bench::TorchOverOurs;
using bench::Windows;

constexpr int64_t kTokens = 4096;
constexpr int64_t kShortTokens = 1024;
constexpr int64_t kLongTokens = 16384;

Probe OurProbe(const AttentionTensors& tensors, const Windows& windows, bool with_backward = true) {
  return Probe([&tensors, windows, with_backward] {
    return bench::RunOurs(tensors, windows, with_backward);
  });
}

void BenchShort(const BenchSink& sink) {
  const AttentionTensors tensors(kShortTokens);
  const Windows full = bench::UniformWindows(kShortTokens);
  Probe sdpa([&] { return bench::RunSdpa(tensors, false); });
  Probe ours = OurProbe(tensors, full, false);
  bench::RunInterleaved({&sdpa, &ours},
                        {.warm_up = 3, .least = 9, .most = 101, .budget_seconds = 1.5});
  sink(TorchOverOurs("sdpa_over_full_forward", sdpa, {ours, full}, kShortTokens, Pass::kForward,
                     1.3));
}

// Full, windowed and mixed attention and torch's, all in one turn.
void BenchWindows(const AttentionTensors& tensors, const BenchSink& sink) {
  constexpr std::array<double, 3> kRatios = {0.5, 0.25, 0.1};
  constexpr double kAllowance = 0.03;
  const Windows full = bench::UniformWindows(kTokens);
  const Windows mixed = bench::MixedWindows(kTokens);
  const Windows equal = bench::UniformWindows(
      bench::WindowForRatio(bench::VisiblePairRatio(mixed, kTokens), kTokens));
  std::vector<Windows> windows;
  std::vector<Probe> window_probes;
  for (const double ratio : kRatios) {
    windows.push_back(bench::UniformWindows(bench::WindowForRatio(ratio, kTokens)));
    window_probes.push_back(OurProbe(tensors, windows.back()));
  }
  Probe sdpa([&] { return bench::RunSdpa(tensors, true); });
  Probe full_probe = OurProbe(tensors, full);
  Probe mixed_probe = OurProbe(tensors, mixed);
  Probe equal_probe = OurProbe(tensors, equal);
  std::vector<Probe*> probes = {&sdpa, &full_probe, &mixed_probe, &equal_probe};
  for (Probe& probe : window_probes) probes.push_back(&probe);
  bench::RunInterleaved(probes, {.least = 3, .most = 9, .budget_seconds = 9});

  sink(TorchOverOurs("sdpa_over_full_forward", sdpa, {full_probe, full}, kTokens, Pass::kForward,
                     1.15));
  sink(TorchOverOurs("sdpa_over_full_forward_backward", sdpa, {full_probe, full}, kTokens,
                     Pass::kBoth, 1.35));
  for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
    const std::string name =
        pass == Pass::kForward ? "window_over_full_forward" : "window_over_full_backward";
    for (size_t i = 0; i < kRatios.size(); ++i) {
      sink(OursOverOurs(name, {window_probes[i], windows[i]}, full_probe, kTokens, pass,
                        kRatios[i] + kAllowance));
    }
  }
  sink(OursOverOurs("mixed_over_uniform_forward_backward", {mixed_probe, mixed}, equal_probe,
                    kTokens, Pass::kBoth, 1.10));
}

// How the method's reference code runs, and torch's fused attention with the same mask. Their
// repeats are long and few, and large fresh tensors have nothing to warm up.
void BenchMasked(const AttentionTensors& tensors, const BenchSink& sink) {
  const Windows mixed = bench::MixedWindows(kTokens);
  const at::Tensor mask = bench::WindowMask(mixed, kTokens);
  Probe dense([&] { return bench::RunDenseMasked(tensors, mask); });
  Probe sdpa([&] { return bench::RunSdpaMasked(tensors, mask); });
  Probe ours = OurProbe(tensors, mixed);
  bench::RunInterleaved({&dense, &ours, &sdpa},
                        {.warm_up = 0, .least = 3, .most = 3, .budget_seconds = 0});
  const OurSide our_side = {ours, mixed};
  sink(TorchOverOurs("dense_masked_over_mixed_forward", dense, our_side, kTokens, Pass::kForward,
                     14));
  sink(TorchOverOurs("dense_masked_over_mixed_forward_backward", dense, our_side, kTokens,
                     Pass::kBoth, 10));
  sink(TorchOverOurs("sdpa_masked_over_mixed_forward", sdpa, our_side, kTokens, Pass::kForward, 6));
}

void BenchThreads(const AttentionTensors& tensors, int threads, const BenchSink& sink) {
  const Windows full = bench::UniformWindows(kTokens);
  const auto with_threads = [&](int count) {
    return Probe([&tensors, &full, count] {
      at::set_num_threads(count);
      return bench::RunOurs(tensors, full, true);
    });
  };
  Probe one = with_threads(1);
  Probe two = with_threads(2);
  bench::RunInterleaved({&one, &two}, {.least = 3, .most = 7, .budget_seconds = 4});
  at::set_num_threads(2);
  sink(TorchOverOurs("thread_scaling_forward_backward", one, {two, full}, kTokens, Pass::kBoth,
                     1.75));
  at::set_num_threads(threads);
}

void BenchScratch(const BenchSink& sink) {
  const AttentionTensors tensors(kLongTokens);
  const Windows full = bench::UniformWindows(kLongTokens);
  Scratch::ResetHighWater();
  bench::RunOurs(tensors, full, true);
  BenchResult result = bench::Describe("scratch_over_tensors", full, kLongTokens);
  result.repeats = 1;
  result.unit = "bytes";
  result.numerator = static_cast<double>(Scratch::HighWaterBytes());
  // query, key, value, out and the gradient of each.
  result.denominator = 8.0 * static_cast<double>(tensors.query.nbytes());
  result.ratio = result.numerator / result.denominator;
  result.bar_kind = BarKind::kAtMost;
  result.bar = 1;
  sink(result);
}

}  // namespace

void BenchAttention(const BenchOptions& options, const BenchSink& sink) {
  at::set_num_threads(options.threads);
  BenchShort(sink);
  {
    const AttentionTensors tensors(kTokens);
    BenchWindows(tensors, sink);
    BenchMasked(tensors, sink);
    BenchThreads(tensors, options.threads, sink);
  }
  BenchScratch(sink);
}

}  // namespace aah
