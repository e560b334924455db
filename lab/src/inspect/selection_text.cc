#include "inspect/selection_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "aah/lab/inspect.h"
#include "aah/lab/plain_text.h"
#include "aah/lab/plan_text.h"
#include "aah/lab/selection_history.h"
#include "aah/lab/table.h"
#include "aah/window_budget.h"
#include "inspect/heat_map.h"

namespace aah {
namespace {

constexpr size_t kMostDecisions = 10;    // rows
constexpr size_t kLabelColumns = 17;     // of a cost, two of them in front
constexpr size_t kRowTitleColumns = 22;  // and one that parts them from the cells
constexpr std::array<std::string_view, 9> kBlocks = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

std::string Right(std::string_view text, size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + std::string(text);
}

// On a line of its own from "at 1,024 tokens" on where one line would be too long.
std::string BudgetText(const WindowBudget& budget) {
  std::string text = CostText(budget.value, budget);
  if (kLabelColumns + text.size() < kTerminalColumns) return text;
  text.replace(text.rfind(" at "), 1, "\n" + std::string(kLabelColumns, ' '));
  return text;
}

std::string CostsText(const SelectionInspection& selection) {
  const SelectionSummary& summary = selection.summary;
  const bool planned = summary.phase == "plan";
  const auto line = [](std::string_view label, const std::string& text) {
    return "  " + std::string(label) + std::string(kLabelColumns - 2 - label.size(), ' ') + text +
           "\n";
  };
  std::string text =
      line("budget", BudgetText(selection.budget)) +
      line("target cost", FormatFixed(summary.target_cost, 4)) +
      line("expected cost", FormatFixed(summary.expected_cost, 4) + " under the weights") +
      line("hard cost", FormatFixed(summary.hard_cost, 4) +
                            (planned ? " of the plan" : " of the likeliest windows")) +
      line("entropy", FormatFixed(summary.entropy, 3) + " nats, mean over heads");
  if (planned) {
    text += line("duality gap",
                 FormatFixed(summary.duality_gap, 4) + " of log weight, at most, below the best");
  }
  if (!selection.plan.empty()) {
    text += line("newest plan", PlainText(selection.plan) + " (aah plan show)");
  }
  return text;
}

// Of many decisions the first, the newest that moved heads, and the last.
std::string DecisionsText(const std::vector<SelectionDecision>& decisions, size_t heads) {
  if (decisions.empty()) return "No plan was chosen yet.\n";
  std::vector<size_t> shown;
  for (size_t i = decisions.size() - 1; i > 0; --i) {
    const bool last = i + 1 == decisions.size();
    if (last || (decisions[i].moved > 0 && shown.size() + 1 < kMostDecisions)) shown.push_back(i);
  }
  shown.push_back(0);
  std::reverse(shown.begin(), shown.end());
  Table table({"plan chosen\nin step", "heads\nmoved", "duality\ngap"});
  for (const size_t i : shown) {
    const SelectionDecision& decision = decisions[i];
    const bool first = i == 0 && decision.moved == 0;
    table.AddRow({std::to_string(decision.step),
                  first ? "all of " + std::to_string(heads)
                        : std::to_string(decision.moved) + " of " + std::to_string(heads),
                  FormatFixed(decision.duality_gap, 4)});
  }
  const auto moving = std::count_if(decisions.begin() + 1, decisions.end(),
                                    [](const SelectionDecision& d) { return d.moved > 0; });
  return table.ToText() + "(" + std::to_string(moving) + " of the " +
         std::to_string(decisions.size() - 1) + " decisions after the first moved heads)\n";
}

struct Row {
  std::string title;
  std::string window;
  std::vector<double> weights;
};

// A line a row: numbers in per cent where they fit, else a block a candidate; where not even those
// fit, a block for the summed weights of some neighbours.
class WeightTable {
 public:
  WeightTable(const std::vector<int32_t>& candidates, bool colour)
      : candidates_(candidates), colour_(colour) {
    const size_t room = kTerminalColumns - 2 - kRowTitleColumns;
    cell_ = std::max<size_t>(5, std::to_string(candidates.back()).size() + 1);
    numbers_ = cell_ * candidates.size() <= room;
    const size_t bars = room - 1;
    joined_ = numbers_ ? 1 : (candidates.size() + bars - 1) / bars;
  }

  std::string Legend() const {
    if (numbers_) return "in per cent";
    return (joined_ > 1 ? "as bars of " + std::to_string(joined_) + "," : "as bars") +
           " from 0 to 1";
  }

  std::string Titles(std::string_view first, std::string_view second) const {
    std::string line = std::string(first) + std::string(12 - first.size(), ' ') +
                       Right(second, kRowTitleColumns - 12) + " ";
    if (numbers_) {
      for (const int32_t candidate : candidates_) line += Right(std::to_string(candidate), cell_);
    } else {
      line +=
          "  " + std::to_string(candidates_.front()) + " to " + std::to_string(candidates_.back());
    }
    return line + "\n";
  }

  std::string Line(const Row& row) const {
    std::string line = row.title + std::string(12 - std::min<size_t>(12, row.title.size()), ' ') +
                       Right(row.window, kRowTitleColumns - 12) + " ";
    if (!numbers_) line += " ";
    for (size_t i = 0; i < row.weights.size(); i += joined_) {
      const auto first = row.weights.begin() + static_cast<int64_t>(i);
      const size_t count = std::min(joined_, row.weights.size() - i);
      line += Cell(std::accumulate(first, first + static_cast<int64_t>(count), 0.0));
    }
    return line + "\n";
  }

 private:
  std::string Cell(double weight) const {
    if (!numbers_) {
      return std::string(
          kBlocks[static_cast<size_t>(std::lround(std::clamp(weight, 0.0, 1.0) * 8))]);
    }
    const std::string cell = Right(FormatFixed(100 * weight, 0), cell_);
    return colour_ ? Shaded(cell, weight) : cell;
  }

  const std::vector<int32_t>& candidates_;
  bool colour_;
  bool numbers_;
  size_t cell_;    // columns of a number
  size_t joined_;  // candidates of a cell
};

std::vector<Row> HeadRows(const Inspection& inspection, size_t layer) {
  const SelectionInspection& selection = *inspection.selection;
  const bool planned = selection.summary.phase == "plan";
  std::vector<Row> rows;
  for (size_t head = 0; head < selection.weights[layer].size(); ++head) {
    const std::vector<double>& weights = selection.weights[layer][head];
    const auto likeliest = std::max_element(weights.begin(), weights.end()) - weights.begin();
    const int window = planned ? inspection.windows[layer][head]
                               : selection.candidates[static_cast<size_t>(likeliest)];
    rows.push_back({(head == 0 ? Right(std::to_string(layer), 5) : Right("", 5)) +
                        Right(std::to_string(head), 6),
                    std::to_string(window), weights});
  }
  return rows;
}

Row MeanRow(const Inspection& inspection, size_t layer) {
  const auto& heads = inspection.selection->weights[layer];
  Row row = {Right(std::to_string(layer), 5), "", std::vector<double>(heads.front().size(), 0)};
  for (const std::vector<double>& weights : heads) {
    for (size_t i = 0; i < weights.size(); ++i) {
      row.weights[i] += weights[i] / static_cast<double>(heads.size());
    }
  }
  return row;
}

std::string WeightsText(const Inspection& inspection, const InspectionTextOptions& options) {
  const SelectionInspection& selection = *inspection.selection;
  const std::string title = Title("Weights", options.colour) + ": ";
  if (selection.weights_step == 0) return title + "none kept up to this step.\n";
  const size_t layers = selection.weights.size();
  const size_t heads = selection.weights.front().size();
  const bool each = options.layer || layers * heads <= kMostHeadRows;
  const WeightTable table(selection.candidates, options.colour);
  std::string text = title + "of the candidate windows, " + table.Legend() + ", in step " +
                     std::to_string(selection.weights_step) + "\n";
  if (each) {
    text += table.Titles("layer  head", selection.summary.phase == "plan" ? "plan" : "likeliest");
    for (size_t layer = 0; layer < layers; ++layer) {
      if (options.layer && static_cast<size_t>(*options.layer) != layer) continue;
      for (const Row& row : HeadRows(inspection, layer)) text += table.Line(row);
    }
    return text;
  }
  text += table.Titles("layer", "");
  for (size_t layer = 0; layer < layers; ++layer) text += table.Line(MeanRow(inspection, layer));
  return text + "(means over the " + std::to_string(heads) +
         " heads of a layer; --layer N shows each of them)\n";
}

}  // namespace

std::string SelectionText(const Inspection& inspection, const InspectionTextOptions& options) {
  const SelectionInspection& selection = *inspection.selection;
  const size_t heads = inspection.windows.size() * inspection.windows.front().size();
  return Title("Search", options.colour) + ": phase " + selection.summary.phase + ", temperature " +
         FormatFixed(selection.summary.temperature, 3) + "\n" + CostsText(selection) + "\n" +
         DecisionsText(selection.decisions, heads) + "\n" + WeightsText(inspection, options);
}

}  // namespace aah
