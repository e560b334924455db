#include <cmath>
#include <cstdint>
#include <vector>

#include "aah/error.h"
#include "layers/learned/learned_checks.h"

namespace aah {
namespace {

// More are no use: each is a snapshot per row, head and layer.
constexpr size_t kMaxCandidates = 64;

void CheckCandidates(const std::vector<int32_t>& candidates, int64_t context) {
  AAH_CHECK(!candidates.empty() && candidates.size() <= kMaxCandidates,
            "candidates: expected 1 to ", kMaxCandidates, " windows, got ", candidates.size());
  AAH_CHECK(candidates.front() >= 1, "candidates: expected windows of at least 1 (a window counts ",
            "the query's own key), got ", candidates.front());
  for (size_t i = 1; i < candidates.size(); ++i) {
    AAH_CHECK(candidates[i] > candidates[i - 1], "candidates: expected ascending windows, got ",
              candidates[i], " after ", candidates[i - 1]);
    AAH_CHECK(candidates[i - 1] < context, "candidates: expected only one window that reaches ",
              "model.context, ", context, ", got ", candidates[i - 1], " and ", candidates[i]);
  }
  AAH_CHECK(candidates.back() >= context, "candidates: expected the last window to reach ",
            "model.context, ", context, ", since the search begins with full attention, got ",
            candidates.back());
}

void CheckRange(const char* name, bool inside, double value, const char* expected) {
  AAH_CHECK(inside, name, ": expected ", expected, ", got ", value);
}

}  // namespace

WindowBudget BudgetOf(const LearnedOptions& options, int64_t context) {
  return {.kind = options.budget_kind,
          .value = options.budget,
          .length = options.budget_length == 0 ? context : options.budget_length,
          .element = options.cache_element};
}

std::vector<int32_t> DefaultCandidates(int64_t context) {
  constexpr int64_t kSmallest = 16;
  std::vector<int32_t> candidates;
  for (int64_t window = kSmallest; window < context; window *= 2) {
    candidates.push_back(static_cast<int32_t>(window));
  }
  candidates.push_back(static_cast<int32_t>(context));
  return candidates;
}

void CheckLearnedOptions(const LearnedOptions& options, int64_t context) {
  CheckCandidates(options.candidates, context);
  CheckRange("budget", options.budget > 0 && options.budget <= 1, options.budget,
             "a share of full attention's cost in (0, 1]");
  CheckRange("warmup", options.warmup >= 0 && options.warmup < 1, options.warmup,
             "a share of the run in [0, 1)");
  CheckRange("search", options.search > 0 && options.search < 1, options.search,
             "a share of the run in (0, 1)");
  CheckRange("warmup + search", options.warmup + options.search < 1,
             options.warmup + options.search, "less than the whole run");
  CheckRange("track_every", options.track_every >= 0, static_cast<double>(options.track_every),
             "a number of steps, or 0 for none");
  CheckRange("hysteresis", options.hysteresis >= 0 && std::isfinite(options.hysteresis),
             options.hysteresis, "a log weight of at least 0");
  CheckRange("final_temperature", options.final_temperature > 0, options.final_temperature,
             "more than 0");
  CheckRange("temperature",
             options.temperature >= options.final_temperature && std::isfinite(options.temperature),
             options.temperature, "at least final_temperature");
  CheckRange("learning_rate", options.learning_rate > 0 && std::isfinite(options.learning_rate),
             options.learning_rate, "more than 0");
  CheckRange("scorer_learning_rate",
             options.scorer_learning_rate > 0 && std::isfinite(options.scorer_learning_rate),
             options.scorer_learning_rate, "more than 0");
  CheckRange("drop_below", options.drop_below >= 0 && options.drop_below < 0.5, options.drop_below,
             "a weight in [0, 0.5)");
}

}  // namespace aah
