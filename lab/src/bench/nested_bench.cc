// What attention over nested windows costs beside attention within one.
#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "aah/lab/bench.h"
#include "aah/model/nested_operator.h"
#include "bench/attention_probes.h"
#include "bench/attention_ratios.h"
#include "bench/interleaved.h"

namespace aah {
namespace {

using bench::AttentionTensors;
using bench::OurSide;
using bench::PassSeconds;
using bench::Probe;
using bench::Windows;

constexpr int64_t kKeys = 4096;

// Candidates T / 2^(count - 1) ... T, uniformly weighted or one of them alone for all heads.
struct Candidates {
  explicit Candidates(int64_t smallest) {
    for (int64_t window = smallest; window <= kKeys; window *= 2) windows.push_back(window);
    const auto count = static_cast<int64_t>(windows.size());
    selection =
        torch::full({bench::kHeads, count}, 1.0 / static_cast<double>(count)).requires_grad_();
  }

  // The narrowest alone is live.
  void LeaveNarrowest() {
    live.assign(static_cast<size_t>(bench::kHeads) * windows.size(), 0);
    for (size_t i = 0; i < live.size(); i += windows.size()) live[i] = 1;
    selection = torch::zeros_like(selection);
    selection.select(1, 0).fill_(1);
    selection.requires_grad_();
  }

  std::vector<int64_t> windows;
  std::vector<int64_t> live;
  at::Tensor selection;
};

PassSeconds RunNested(const AttentionTensors& tensors, const Candidates& candidates) {
  return bench::RunPasses(
      [&] {
        return NestedAttention(tensors.query, tensors.key, tensors.value, candidates.selection,
                               candidates.windows, {.live = candidates.live})
            .out;
      },
      {tensors.query, tensors.key, tensors.value, candidates.selection}, tensors.grad_out);
}

}  // namespace

void BenchNested(const BenchOptions& options, const BenchSink& sink) {
  at::set_num_threads(options.threads);
  const AttentionTensors tensors(kKeys);
  const Windows full = bench::UniformWindows(kKeys);
  const Windows narrow = bench::UniformWindows(kKeys / 8);
  const Candidates four(kKeys / 8);
  const Candidates eight(kKeys / 128);
  Candidates one_hot(kKeys / 8);
  one_hot.LeaveNarrowest();
  Probe full_probe([&] { return bench::RunOurs(tensors, full, true); });
  Probe narrow_probe([&] { return bench::RunOurs(tensors, narrow, true); });
  Probe four_probe([&] { return RunNested(tensors, four); });
  Probe eight_probe([&] { return RunNested(tensors, eight); });
  Probe one_hot_probe([&] { return RunNested(tensors, one_hot); });
  bench::RunInterleaved({&full_probe, &four_probe, &eight_probe, &narrow_probe, &one_hot_probe},
                        {.warm_up = 2, .least = 7, .most = 31, .budget_seconds = 15});
  const auto over_plain = [](const char* name, const OurSide& nested, const Probe& plain,
                             double bar) {
    return bench::OursOverOurs(name, nested, plain, kKeys, bench::Pass::kBoth, bar);
  };
  sink(over_plain("nested_k4_over_full_forward_backward", {four_probe, full}, full_probe, 1.35));
  sink(over_plain("nested_k8_over_full_forward_backward", {eight_probe, full}, full_probe, 1.6));
  sink(over_plain("nested_one_hot_over_window_forward_backward", {one_hot_probe, narrow},
                  narrow_probe, 1.2));
}

}  // namespace aah
