#ifndef AAH_LAB_BENCH_H_
#define AAH_LAB_BENCH_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "aah/lab/table.h"

namespace aah {

// Which side of its bar a ratio must be on.
enum class BarKind { kAtLeast, kAtMost };

// A run of steps of several kinds, as the time of its mean step.
struct PhasedRun {
  struct Phase {
    std::string name;
    double share = 0;    // of the run's steps; all sum to 1
    double seconds = 0;  // of a step
  };
  std::vector<Phase> phases;
  double visible_pair_ratio_of_plan = 0;
  std::string search_weights;  // in what state the search is timed, and
  std::string track_weights;   // tracking steps

  double mean_step_seconds() const;
};

// One ratio, both sides measured in one process: medians over repeats in which the two sides take
// turns, after a warm-up.
struct BenchResult {
  std::string name;  // NUMERATOR_over_DENOMINATOR_what, or PART_share
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t tokens = 0;
  std::string dtype = "float32";
  std::string instruction_set;
  int threads = 0;
  double visible_pair_ratio = 1;  // of our side; where both are ours, of the numerator
  int repeats = 0;
  // Seconds, or bytes for a ratio of memory: `unit` says which.
  std::string unit = "seconds";
  double numerator = 0;
  double denominator = 0;
  double ratio = 0;  // numerator / denominator
  // Of the side that visible_pair_ratio describes, counting the visible pairs alone: 4 head_dim
  // operations a pair forward, 10 backward. NaN for memory.
  double gflops = std::numeric_limits<double>::quiet_NaN();
  BarKind bar_kind = BarKind::kAtLeast;
  double bar = 0;
  // Where the denominator is a run's mean step; the numerator then is sdpa's.
  std::optional<PhasedRun> run;

  bool holds() const { return bar_kind == BarKind::kAtLeast ? ratio >= bar : ratio <= bar; }
};

// One line of JSON. A ratio of memory has numerator_bytes and denominator_bytes, and null for
// seconds and gflops. That of a run has as well: phase_seconds, with sdpa's beside the phases',
// phase_shares, visible_pair_ratio_of_plan, search_weights and track_weights.
std::string ToJsonLine(const BenchResult& result);

// A table for people, a row a result.
Table MakeBenchTable();
void AddResult(Table& table, const BenchResult& result);

// Called with each result as soon as it is there.
using BenchSink = std::function<void(const BenchResult& result)>;

struct BenchOptions {
  int threads = 2;
};

// The attention kernels against torch's, and their own promises: that time follows visible pairs,
// that threads help, that scratch stays small. batch 1, 8 heads of 64, mostly 4,096 tokens; about
// 40 seconds. Both sides run through autograd operators on the same tensors and threads.
void BenchAttention(const BenchOptions& options, const BenchSink& sink);

// Attention over nested windows, uniformly weighted, over full attention: candidates T/8 to T, and
// T/128 to T; and with the candidate T/8 alone live over attention within that window. batch 1, 8
// heads of 64, 4,096 tokens, forward and backward; under half a minute.
void BenchNested(const BenchOptions& options, const BenchSink& sink);

// Whole training steps (forward, backward, clipping, AdamW) of a small model: 4,096 tokens, 2
// layers, 8 heads, width 512, bytes; with fixed windows and with windows as the controller decides
// them, regime full_adaptive; and a run that learns its windows, whose steps are timed phase by
// phase and weighted by their share:
//   warmup  5%: full attention
//   search  20%: all candidates, 16 to T, of all heads, with their first weights, when
//           they cost most
//   plan    one window per head, at most a fifth of all pairs, chosen again in every step
//   track   every 20th of the remaining steps: a mixed one, nine tenths of each head's weight in
//           one window, as after a search
// Under 50 seconds.
void BenchTrain(const BenchOptions& options, const BenchSink& sink);

// What the controller adds to a training step of a model of 8 layers, 12 heads, width 768, over
// 2,048 tokens, that decides every fifth step: adaptive steps against steps of the same model with
// the same windows from a plan, in pairs, as (adaptive - plan) / plan step. The difference is taken
// over the forward passes of attention, where all of it arises. Two lines:
//   controller_share_of_step  averaged over the five steps of an interval: medians of the pairs of
//                             each kind of step (deciding, gathering by-products, cached), weighted
//                             by how many of the kind an interval has
//   decision_step_share       of the steps that decide
// About a minute.
void BenchController(const BenchOptions& options, const BenchSink& sink);

}  // namespace aah

#endif  // AAH_LAB_BENCH_H_
