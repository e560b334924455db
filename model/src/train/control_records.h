#ifndef AAH_MODEL_SRC_TRAIN_CONTROL_RECORDS_H_
#define AAH_MODEL_SRC_TRAIN_CONTROL_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "aah/model/attention_variant.h"
#include "aah/model/run_folder.h"

namespace aah {

// What the controllers of a run did in the step that has just ended, as log records.

// Six digits of a number that is logged for reading, to keep the file small.
double ForReading(double number);

// Nothing where there are no controllers.
std::optional<ControlRecord> MakeControlRecord(const ControlView& control);

// [heads] of a layer that has decided in this step; empty of one that has not.
std::vector<HeadDecision> HeadDecisions(const ControlView& control, size_t layer);

// Of a layer that has grouped its heads in this step, level by level; empty of one that has not.
std::vector<GroupRecord> GroupRecords(const ControlView& control, size_t layer, int64_t step);

}  // namespace aah

#endif  // AAH_MODEL_SRC_TRAIN_CONTROL_RECORDS_H_
