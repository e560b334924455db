#include <algorithm>
#include <cmath>
#include <cstdint>

#include "aah/error.h"
#include "aah/model/learned_attention.h"

namespace aah {

const char* SelectionPhaseName(SelectionPhase phase) {
  switch (phase) {
    case SelectionPhase::kWarmup:
      return "warmup";
    case SelectionPhase::kSearch:
      return "search";
    case SelectionPhase::kPlan:
      return "plan";
  }
  return "";
}

SelectionSchedule::SelectionSchedule(const LearnedOptions& options, int64_t steps) {
  // 0.1 * 30 is a little less than 3.
  const auto whole = [&](double share) {
    return static_cast<int64_t>(std::floor(share * static_cast<double>(steps) + 1e-6));
  };
  search_begin = whole(options.warmup);
  search_end = std::max(search_begin + 1, whole(options.warmup + options.search));
  AAH_CHECK(search_end < steps, "expected more training steps than the ", search_end,
            " of warm-up and search, got ", steps,
            "; train longer, or lower attention.learned.warmup or .search");
}

SelectionPhase SelectionSchedule::Phase(int64_t step) const {
  if (step < search_begin) return SelectionPhase::kWarmup;
  return step < search_end ? SelectionPhase::kSearch : SelectionPhase::kPlan;
}

double SelectionSchedule::Progress(int64_t step) const {
  const int64_t last = search_end - 1 - search_begin;
  if (last <= 0) return 1;
  return std::clamp(static_cast<double>(step - search_begin) / static_cast<double>(last), 0.0, 1.0);
}

}  // namespace aah
