#ifndef AAH_LAB_REPORT_H_
#define AAH_LAB_REPORT_H_

#include <string>
#include <vector>

#include "aah/lab/run_log.h"

namespace aah {

// Writes one HTML file that opens offline: the comparison table, loss curves over steps and over
// time, a heat map of windows (layer x head) per run with a slider over steps, the groups of each
// layer at a step, allocated context over steps, the search of runs that learn their windows, each
// run's config, the machine. plotly.js is part of the file. Written whole or not at all; throws
// aah::Error where it cannot be written.
void WriteReport(const std::vector<RunLog>& logs, const std::string& title,
                 const std::string& path);

// The page as text: what WriteReport writes.
std::string ReportPage(const std::vector<RunLog>& logs, const std::string& title);

}  // namespace aah

#endif  // AAH_LAB_REPORT_H_
