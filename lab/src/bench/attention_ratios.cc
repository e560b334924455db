#include "bench/attention_ratios.h"

#include <ATen/Parallel.h>

#include <cstdint>
#include <string>

#include "aah/instruction_set.h"

namespace aah::bench {
namespace {

double Time(const Probe& probe, Pass pass) {
  if (pass == Pass::kForward) return probe.forward();
  return pass == Pass::kBackward ? probe.backward() : probe.forward_backward();
}

double Flops(const Windows& windows, int64_t tokens, Pass pass) {
  double flops = 0;
  if (pass != Pass::kBackward) flops += ForwardFlops(windows, tokens);
  if (pass != Pass::kForward) flops += BackwardFlops(windows, tokens);
  return flops;
}

void SetTimes(BenchResult& result, const Probe& numerator, const Probe& denominator, Pass pass) {
  result.repeats = numerator.repeats();
  result.numerator = Time(numerator, pass);
  result.denominator = Time(denominator, pass);
  result.ratio = result.numerator / result.denominator;
}

}  // namespace

BenchResult Describe(const std::string& name, const Windows& windows, int64_t tokens) {
  BenchResult result;
  result.name = name;
  result.batch = kBatch;
  result.heads = kHeads;
  result.head_dim = kHeadDim;
  result.tokens = tokens;
  result.instruction_set = CurrentInstructionSet();
  result.threads = at::get_num_threads();
  result.visible_pair_ratio = VisiblePairRatio(windows, tokens);
  return result;
}

BenchResult TorchOverOurs(const std::string& name, const Probe& torch_probe, const OurSide& ours,
                          int64_t tokens, Pass pass, double bar) {
  BenchResult result = Describe(name, ours.windows, tokens);
  SetTimes(result, torch_probe, ours.probe, pass);
  result.gflops = Flops(ours.windows, tokens, pass) / result.denominator * 1e-9;
  result.bar_kind = BarKind::kAtLeast;
  result.bar = bar;
  return result;
}

BenchResult OursOverOurs(const std::string& name, const OurSide& numerator,
                         const Probe& denominator, int64_t tokens, Pass pass, double bar) {
  BenchResult result = Describe(name, numerator.windows, tokens);
  SetTimes(result, numerator.probe, denominator, pass);
  result.gflops = Flops(numerator.windows, tokens, pass) / result.numerator * 1e-9;
  result.bar_kind = BarKind::kAtMost;
  result.bar = bar;
  return result;
}

}  // namespace aah::bench
