#ifndef AAH_LAB_INSPECT_SELECTION_TEXT_H_
#define AAH_LAB_INSPECT_SELECTION_TEXT_H_

#include <string>

#include "aah/lab/inspect.h"

namespace aah {

// How the windows of a run are learned: phase, costs, decisions, and the weight of every candidate
// in each head; of more than kMostHeadRows heads the means over each layer, unless one is chosen.
// Lines of at most 79 columns, but for that with the path of the plan. REQUIRES:
// inspection.selection.
inline constexpr size_t kMostHeadRows = 48;
std::string SelectionText(const Inspection& inspection, const InspectionTextOptions& options);

}  // namespace aah

#endif  // AAH_LAB_INSPECT_SELECTION_TEXT_H_
