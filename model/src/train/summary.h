#ifndef AAH_MODEL_SRC_TRAIN_SUMMARY_H_
#define AAH_MODEL_SRC_TRAIN_SUMMARY_H_

#include <cstdint>

#include "aah/model/run_folder.h"

namespace aah {

// What a run's records amount to. REQUIRES: at least one step and one validation record.
SummaryRecord Summarise(const RunMetrics& metrics, int64_t parameters, int64_t peak_memory_bytes);

// The most this process has held resident so far.
int64_t PeakMemoryBytes();

}  // namespace aah

#endif  // AAH_MODEL_SRC_TRAIN_SUMMARY_H_
