#ifndef AAH_LAB_REPORT_WINDOW_DATA_H_
#define AAH_LAB_REPORT_WINDOW_DATA_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "aah/io/json.h"
#include "aah/lab/run_log.h"

namespace aah {

// Most steps a page's slider has, and most groupings it holds of a run: more than a hand can tell
// apart only weighs.
inline constexpr size_t kMostSliderSteps = 300;
inline constexpr size_t kMostGroupings = 40;

// Four digits: what a page shows, at half the size. JSON has no NaN: null.
Json Rounded(double value);

// At most `most` of `steps`, evenly spread, the first and the last among them. REQUIRES: most >= 2.
std::vector<int64_t> Spread(const std::vector<int64_t>& steps, size_t most);

// The steps of the page's slider: in which a window of any run changed, at most kMostSliderSteps.
struct SliderSteps {
  std::vector<int64_t> shown;
  size_t all = 0;
};
SliderSteps StepsOfSlider(const std::vector<RunLog>& logs);

// What the page shows of a run's windows and groups:
//   context, layers, heads, decisions (most of any layer)
//   values    every window there was, tokens, ascending
//   states    for each slider step what changed since the one before, [head, value, head,
//   value...]:
//             heads counted over all layers, indices into values; at first all see the context
//   changes   [layers][heads] how often the window changed
//   groupings {step, layers: for each layer a list of groups [level, group, parent or -1, [heads],
//             window or 0, 1 where the parent's cut it, features...]}, steps evenly spread
//   all_groupings  how many there were
Json WindowData(const RunLog& log, const std::vector<int64_t>& slider_steps);

}  // namespace aah

#endif  // AAH_LAB_REPORT_WINDOW_DATA_H_
