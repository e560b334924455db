#ifndef AAH_LAB_SRC_BENCH_LEARNED_RUN_H_
#define AAH_LAB_SRC_BENCH_LEARNED_RUN_H_

#include <cstdint>
#include <memory>

#include "aah/lab/bench.h"
#include "aah/model/config.h"
#include "aah/model/learned_attention.h"
#include "aah/model/learned_options.h"

namespace aah::bench {

// A run whose windows are learned, put into each of its phases without running it: LearnedAttention
// takes phase and schedule from the number of a step, and its weights from its logits.
inline constexpr int64_t kLearnedRunSteps = 1000;

// The defaults: 5% warm-up, 20% search, then every 20th step a tracking one, a fifth of all pairs.
LearnedOptions LearnedRunOptions();

// One step of each phase, of kLearnedRunSteps.
struct LearnedRunSteps {
  int64_t warmup = 0;
  int64_t search = 0;  // the first one
  int64_t harden = 0;  // the first one with a plan
  int64_t track = 0;   // the first mixed one after it,
  int64_t plan = 0;    // and the one after that, which decides again and has one window per head
};
LearnedRunSteps StepsOfPhases(const LearnedOptions& options);

// Before and in the search. With their first logits no candidate's weight is below drop_below, so
// that all of all heads are computed: no state of the search costs more.
std::unique_ptr<LearnedAttention> SearchingAttention(const ModelConfig& model);

// After it, for 2 layers of 8 heads and at least 4,096 tokens of context: a few heads see far, the
// others near, no two layers alike, at 0.19 of all pairs. A head's own window has nine tenths of
// its weight, and each candidate twice or half as wide a twentieth of the one before: in tracking
// steps the next three wider ones are still computed.
std::unique_ptr<LearnedAttention> PlannedAttention(const ModelConfig& model);

// The phases by name with the share of a run's steps that each has; seconds are left 0.
PhasedRun SharesOfPhases(const LearnedOptions& options);

}  // namespace aah::bench

#endif  // AAH_LAB_SRC_BENCH_LEARNED_RUN_H_
