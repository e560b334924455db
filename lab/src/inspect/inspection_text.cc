#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "aah/error.h"
#include "aah/lab/inspect.h"
#include "aah/lab/plain_text.h"
#include "aah/lab/table.h"
#include "aah/lab/window_history.h"
#include "inspect/group_tree.h"
#include "inspect/heat_map.h"
#include "inspect/selection_text.h"

namespace aah {
namespace {

int Smallest(const HeadMap& values) {
  int smallest = values.front().front();
  for (const std::vector<int>& row : values) {
    smallest = std::min(smallest, *std::min_element(row.begin(), row.end()));
  }
  return smallest;
}

int Largest(const HeadMap& values) {
  int largest = values.front().front();
  for (const std::vector<int>& row : values) {
    largest = std::max(largest, *std::max_element(row.begin(), row.end()));
  }
  return largest;
}

std::string Heading(const Inspection& inspection, bool colour) {
  std::string text = Title(PlainText(inspection.name), colour) + ": attention " +
                     inspection.attention + "\n" + std::to_string(inspection.windows.size()) +
                     " layers of " + std::to_string(inspection.windows.front().size()) +
                     " heads, context " + std::to_string(inspection.context) + "\n";
  if (inspection.last_step == 0) return text + "no step is logged yet\n";
  text += "step " + std::to_string(inspection.step) + " of " + std::to_string(inspection.steps);
  if (!std::isnan(inspection.allocated_context_ratio)) {
    text += ": allocated context " + FormatFixed(inspection.allocated_context_ratio, 3) +
            ", visible pairs " + FormatFixed(inspection.visible_pair_ratio, 3);
  }
  return text + "\n";
}

std::string WindowsText(const Inspection& inspection, bool colour) {
  std::string text = Title("Windows", colour) + ": the last tokens a head sees, in step " +
                     std::to_string(inspection.step);
  if (inspection.window_step > 0) {
    text += " (last changed in " + std::to_string(inspection.window_step) + ")";
  }
  if (inspection.selection && inspection.selection->summary.phase == "search") {
    text += ";\nwhile all are mixed, the widest one that it still computes";
  }
  text += "\n";
  const int low = Smallest(inspection.windows);
  return text +
         HeatMapText(inspection.windows, {colour, true, low, std::max(low, inspection.context)});
}

std::string ChangesText(const Inspection& inspection, bool colour) {
  std::vector<int64_t> layer_decisions = inspection.decision_counts;
  if (inspection.selection) {
    std::fill(layer_decisions.begin(), layer_decisions.end(),
              std::ssize(inspection.selection->decisions));
  }
  const int64_t decisions = *std::max_element(layer_decisions.begin(), layer_decisions.end());
  const int largest = Largest(inspection.change_counts);
  const std::string title = Title("Changes", colour) + ": ";
  if (largest == 0 && (decisions == 0 || inspection.selection)) {
    return title + (inspection.selection
                        ? "none up to now.\n"
                        : "none; nothing decided the windows, they are as the config says.\n");
  }
  std::string text = title + "how often each head's window became another one in ";
  text += decisions == 0 || inspection.selection ? "the run\n"
                                                 : std::to_string(decisions) + " decisions\n";
  text += HeatMapText(inspection.change_counts, {colour, false, 0, std::max(1, largest)});
  Table table({"layer", "decisions", "changes of\na head, mean", "heads that\nchanged"});
  for (size_t layer = 0; layer < inspection.change_counts.size(); ++layer) {
    const std::vector<int>& counts = inspection.change_counts[layer];
    int64_t sum = 0;
    for (const int count : counts) sum += count;
    const auto changed = std::count_if(counts.begin(), counts.end(), [](int n) { return n > 0; });
    table.AddRow({std::to_string(layer), std::to_string(layer_decisions[layer]),
                  FormatFixed(static_cast<double>(sum) / static_cast<double>(counts.size()), 1),
                  std::to_string(changed) + " of " + std::to_string(counts.size())});
  }
  return text + "\n" + table.ToText();
}

std::string GroupsText(const Inspection& inspection, const InspectionTextOptions& options) {
  std::string trees;
  bool cut = false;
  for (size_t layer = 0; layer < inspection.groups.size(); ++layer) {
    const std::vector<GroupRecord>& groups = inspection.groups[layer];
    if (groups.empty() || (options.layer && *options.layer != static_cast<int>(layer))) continue;
    trees += Title("layer " + std::to_string(layer), options.colour) + ", grouped in step " +
             std::to_string(groups.front().step) + "\n" + GroupTreeText(groups);
    for (const GroupRecord& group : groups) {
      cut |= group.raw_index && group.index && *group.raw_index != *group.index;
    }
  }
  const std::string title = Title("Groups", options.colour) + ": ";
  if (trees.empty()) {
    return title + (inspection.decided ? "no head was grouped up to this step.\n"
                                       : "none; no controller groups the heads of this run.\n");
  }
  return title + "heads that decide together, coarsest level outside, with their features\n" +
         GroupTreeTitles() + trees + (cut ? "* cut to the window of the group above\n" : "");
}

std::string TimesText(const Inspection& inspection, bool colour) {
  const std::string title = Title("Time", colour) + ": ";
  if (inspection.times.empty()) return title + "no step is logged yet.\n";
  double total = 0;
  double deciding_total = 0;
  for (const PartTime& time : inspection.times) {
    total += time.seconds;
    deciding_total += time.deciding_seconds;
  }
  const bool deciding = inspection.deciding_steps > 0;
  std::vector<std::string> titles = {"part", "ms per\nstep", "share"};
  if (deciding) titles.insert(titles.end(), {"ms in a step\nthat decides", "share"});
  Table table(titles);
  const auto add = [&](const std::string& part, double seconds, double deciding_seconds) {
    std::vector<std::string> row = {part, FormatFixed(1e3 * seconds, 2),
                                    FormatFixed(100 * seconds / total, 2) + "%"};
    if (deciding) {
      row.push_back(FormatFixed(1e3 * deciding_seconds, 2));
      row.push_back(FormatFixed(100 * deciding_seconds / deciding_total, 2) + "%");
    }
    table.AddRow(row);
  };
  for (const PartTime& time : inspection.times) add(time.part, time.seconds, time.deciding_seconds);
  add("step", total, deciding_total);
  std::string text = title + "means over " + std::to_string(inspection.timed_steps) + " steps";
  if (deciding) text += ", " + std::to_string(inspection.deciding_steps) + " of which decide";
  return text + "\n" + table.ToText();
}

}  // namespace

std::string InspectionText(const Inspection& inspection, const InspectionTextOptions& options) {
  const auto layers = static_cast<int>(inspection.windows.size());
  AAH_CHECK(!options.layer || (*options.layer >= 0 && *options.layer < layers), "layer ",
            options.layer.value_or(0), ": the model has layers 0 to ", layers - 1,
            "; the nearest is ", std::clamp(options.layer.value_or(0), 0, layers - 1));
  return Heading(inspection, options.colour) + "\n" + WindowsText(inspection, options.colour) +
         "\n" + ChangesText(inspection, options.colour) + "\n" +
         (inspection.selection ? SelectionText(inspection, options)
                               : GroupsText(inspection, options)) +
         "\n" + TimesText(inspection, options.colour);
}

}  // namespace aah
