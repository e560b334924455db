#ifndef AAH_MODEL_RUN_SUMMARY_H_
#define AAH_MODEL_RUN_SUMMARY_H_

#include <cstdint>

#include "aah/model/run_folder.h"

namespace aah {

// What a run's records amount to, of a run that goes on as well. What there are no records for is
// NaN, the step and seconds of no steps 0; parameters and peak_memory_bytes, which no record tells,
// stay 0.
SummaryRecord Summarise(const RunMetrics& metrics);

// The most this process has held resident so far.
int64_t PeakMemoryBytes();

}  // namespace aah

#endif  // AAH_MODEL_RUN_SUMMARY_H_
