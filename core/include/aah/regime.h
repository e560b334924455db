#ifndef AAH_REGIME_H_
#define AAH_REGIME_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "aah/window_decision.h"

namespace aah {

// Where a decision's window indices come from.
enum class WindowSource {
  kFull,           // nothing is decided: every head sees everything
  kScorer,         // scored groups
  kFixed,          // one window for all
  kRandomUniform,  // drawn per head, from seed, step and layer
};

// Where a decision's level-0 groups come from.
enum class GroupSource {
  kNone,           // there is no grouping
  kSingletons,     // every head alone, features without EMA
  kClustered,      // clustered anew at every decision, from averaged features
  kFirstDecision,  // clustered at the first decision, kept
  kFirstForward,   // clustered at the first forward pass, kept
  kRandomHalves,   // two halves by a seeded shuffle
  kAlternating,    // head modulo 2
};

// What lies above the level-0 groups.
enum class UpperLevels { kClustered, kPassThrough };

// One way of setting windows: a row of a table of choices (METHOD.md section 6).
struct Regime {
  std::string_view name;
  WindowSource windows = WindowSource::kScorer;
  GroupSource groups = GroupSource::kClustered;
  UpperLevels upper = UpperLevels::kClustered;
  int32_t max_depth = 4;  // at most; the options may ask for less
  SiblingScoring siblings = SiblingScoring::kJoint;
  bool parent_constraint = true;
  bool feature_average = true;  // false: features of this step alone
  bool shuffled = false;        // the windows decided, heads permuted
  int32_t fixed_window = 0;     // of kFixed
};

// The regimes known by a plain name, in the paper's order.
std::span<const Regime> Regimes();

// By name: one of the table; `fixed:<w>` with a window w >= 1; `shuffle_post_select` for
// shallow_freeze with its heads permuted, `shuffle_post_select:<regime>` for another one. Throws
// aah::Error with the nearest name.
Regime FindRegime(std::string_view name);

}  // namespace aah

#endif  // AAH_REGIME_H_
