#ifndef AAH_LAB_REPORT_SELECTION_DATA_H_
#define AAH_LAB_REPORT_SELECTION_DATA_H_

#include <cstddef>

#include "aah/io/json.h"
#include "aah/lab/run_log.h"

namespace aah {

// Most points of the page's curves of a search, and most snapshots of its weights.
inline constexpr size_t kMostSelectionPoints = 1000;
inline constexpr size_t kMostSelectionSnapshots = 120;

// What the page shows of a run's search for windows; null where it learns none:
//   candidates     windows, tokens; empty before the first snapshot
//   budget         {value, text}: the text is what costs are shares of
//   phases         [name, first step, last step] each, in order
//   curve          step, target, expected, hard, entropy, temperature: a list each, of some steps
//   decisions      [step, heads moved, duality gap] each
//   snapshots      {step, weights: [layers][heads][candidates] in thousandths, and in the phase of
//                  plans windows: [layers][heads], tokens}, some steps, the first and the last
//   all_snapshots  how many there were
Json SelectionData(const RunLog& log);

}  // namespace aah

#endif  // AAH_LAB_REPORT_SELECTION_DATA_H_
