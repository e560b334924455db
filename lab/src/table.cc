#include "aah/lab/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aah/error.h"

namespace aah {
namespace {

// Code points: bytes that do not continue one.
size_t Width(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) >> 6U) != 2; }));
}

std::pair<std::string, std::string> SplitTitle(const std::string& title) {
  const size_t line_break = title.find('\n');
  if (line_break == std::string::npos) return {title, ""};
  return {title.substr(0, line_break), title.substr(line_break + 1)};
}

}  // namespace

Table::Table(std::vector<std::string> titles) : titles_(std::move(titles)) {}

void Table::AddRow(std::vector<std::string> cells) {
  AAH_CHECK(cells.size() == titles_.size(), "a table of ", titles_.size(), " columns got a row of ",
            cells.size());
  rows_.push_back(std::move(cells));
}

std::string Table::ToText() const {
  std::vector<std::string> upper;
  std::vector<std::string> lower;
  std::vector<size_t> widths;
  for (size_t column = 0; column < titles_.size(); ++column) {
    auto [first, second] = SplitTitle(titles_[column]);
    size_t width = std::max(Width(first), Width(second));
    for (const auto& row : rows_) width = std::max(width, Width(row[column]));
    upper.push_back(std::move(first));
    lower.push_back(std::move(second));
    widths.push_back(width);
  }
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t column = 0; column < cells.size(); ++column) {
      const std::string padding(widths[column] - Width(cells[column]), ' ');
      if (column > 0) line += "  ";
      line += column == 0 ? cells[column] + padding : padding + cells[column];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_line(upper);
  if (std::any_of(lower.begin(), lower.end(), [](const auto& cell) { return !cell.empty(); })) {
    add_line(lower);
  }
  std::vector<std::string> rule;
  for (const size_t width : widths) rule.emplace_back(width, '-');
  add_line(rule);
  for (const auto& row : rows_) add_line(row);
  return text;
}

std::string FormatFixed(double value, int digits) {
  if (std::isnan(value)) return "-";
  std::array<char, 64> buffer;
  std::snprintf(buffer.data(), buffer.size(), "%.*f", digits, value);
  return buffer.data();
}

std::string FormatThousands(double value) {
  std::string text = FormatFixed(value, 0);
  const size_t first_digit = text.starts_with('-') ? 1 : 0;
  for (size_t position = text.size(); position > first_digit + 3;) {
    position -= 3;
    text.insert(position, 1, ',');
  }
  return text;
}

std::string FormatDuration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  const auto total = static_cast<int64_t>(std::llround(seconds));
  std::array<char, 32> buffer;
  if (total >= 3600) {
    std::snprintf(buffer.data(), buffer.size(), "%lld:%02d:%02d",
                  static_cast<long long>(total / 3600), static_cast<int>(total / 60 % 60),
                  static_cast<int>(total % 60));
  } else {
    std::snprintf(buffer.data(), buffer.size(), "%d:%02d", static_cast<int>(total / 60),
                  static_cast<int>(total % 60));
  }
  return buffer.data();
}

}  // namespace aah
