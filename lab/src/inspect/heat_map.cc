#include "inspect/heat_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "aah/lab/window_history.h"

namespace aah {
namespace {

constexpr std::string_view kSymbols = "0123456789abcdefghijklmnopqrstuvwxyz";
constexpr size_t kLabelColumns = 7;  // "layer" and what parts it from the cells

// Pale yellow over green and blue to dark purple, numbers of the 256-colour palette; digits are
// black on the light ones and white on the dark ones.
struct Shade {
  int background;
  int foreground;
};
constexpr std::array<Shade, 8> kShades = {
    {{229, 16}, {191, 16}, {149, 16}, {78, 16}, {37, 16}, {31, 231}, {61, 231}, {54, 231}}};

std::string Right(std::string_view text, size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + std::string(text);
}

double ShadeOf(int value, const HeatMapStyle& style) {
  const auto place = [&](int x) { return style.logarithmic ? std::log(1.0 + x) : 1.0 * x; };
  const double low = place(style.low);
  const double high = place(style.high);
  return high > low ? (place(value) - low) / (high - low) : 0;
}

std::vector<int> DifferentValues(const HeadMap& values) {
  std::vector<int> different;
  for (const std::vector<int>& row : values) {
    different.insert(different.end(), row.begin(), row.end());
  }
  std::sort(different.begin(), different.end());
  different.erase(std::unique(different.begin(), different.end()), different.end());
  return different;
}

// The symbol of each of `different`, ascending.
std::vector<size_t> SymbolOf(const std::vector<int>& different) {
  std::vector<size_t> symbols;
  const double low = std::log1p(different.front());
  const double span = std::log1p(different.back()) - low;
  for (size_t i = 0; i < different.size(); ++i) {
    const double place = span > 0 ? (std::log1p(different[i]) - low) / span : 0;
    symbols.push_back(different.size() <= kSymbols.size()
                          ? i
                          : static_cast<size_t>(place * (kSymbols.size() - 1)));
  }
  return symbols;
}

class HeatMap {
 public:
  HeatMap(const HeadMap& values, const HeatMapStyle& style)
      : values_(values),
        style_(style),
        different_(DifferentValues(values)),
        symbols_(SymbolOf(different_)) {
    const size_t room = kTerminalColumns - 1 - kLabelColumns;
    const size_t heads = values.front().size();
    const size_t digits =
        std::max(std::to_string(different_.back()).size(), std::to_string(heads - 1).size());
    numbers_ = heads * (digits + 1) <= room;
    cell_ = numbers_ ? digits + 1 : heads * 2 <= room ? 2 : 1;
    strip_ = std::min(heads, room / cell_);
  }

  std::string Text() const {
    std::string text;
    for (size_t first = 0; first < values_.front().size(); first += strip_) {
      const size_t end = std::min(first + strip_, values_.front().size());
      text += Titles(first, end);
      for (size_t layer = 0; layer < values_.size(); ++layer) {
        text += Right(std::to_string(layer), kLabelColumns - 2) + "  ";
        for (size_t head = first; head < end; ++head) text += Cell(values_[layer][head]);
        text += "\n";
      }
    }
    if (!numbers_) text += Legend();
    return text;
  }

 private:
  // Heads by number; where cells are narrow, every fifth.
  std::string Titles(size_t first, size_t end) const {
    std::string line = Right("layer", kLabelColumns - 2) + "  ";
    if (numbers_) {
      for (size_t head = first; head < end; ++head) line += Right(std::to_string(head), cell_);
    } else {
      std::string marks((end - first) * cell_ + 4, ' ');
      for (size_t head = first; head < end; head += 5) {
        const std::string number = std::to_string(head);
        marks.replace((head - first) * cell_ + cell_ - 1, number.size(), number);
      }
      line += marks.substr(0, kTerminalColumns - 1 - kLabelColumns);
      line.erase(line.find_last_not_of(' ') + 1);
    }
    return line + "\n";
  }

  size_t Place(int value) const {
    return static_cast<size_t>(std::lower_bound(different_.begin(), different_.end(), value) -
                               different_.begin());
  }

  std::string Cell(int value) const {
    const std::string text =
        numbers_ ? std::to_string(value) : std::string(1, kSymbols[symbols_[Place(value)]]);
    const std::string cell = Right(text, cell_);
    return style_.colour ? Shaded(cell, ShadeOf(value, style_)) : cell;
  }

  // "0 = 256  1 = 512", broken into lines; a symbol of several values with the first and the last.
  std::string Legend() const {
    std::string text;
    std::string line = std::string(kLabelColumns, ' ');
    size_t columns = kLabelColumns;
    for (size_t first = 0; first < different_.size();) {
      size_t last = first;
      while (last + 1 < different_.size() && symbols_[last + 1] == symbols_[first]) ++last;
      std::string meaning = " = " + std::to_string(different_[first]);
      if (last != first) meaning += " to " + std::to_string(different_[last]);
      const size_t width = 1 + meaning.size() + 2;
      if (columns + width > kTerminalColumns - 1) {
        text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
        line = std::string(kLabelColumns, ' ');
        columns = kLabelColumns;
      }
      const std::string symbol(1, kSymbols[symbols_[first]]);
      line += (style_.colour ? Shaded(symbol, ShadeOf(different_[first], style_)) : symbol) +
              meaning + "  ";
      columns += width;
      first = last + 1;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return text + line + "\n";
  }

  const HeadMap& values_;
  const HeatMapStyle style_;
  const std::vector<int> different_;
  const std::vector<size_t> symbols_;
  bool numbers_;
  size_t cell_;   // columns of a cell
  size_t strip_;  // heads beside each other
};

}  // namespace

std::string Title(std::string_view text, bool colour) {
  return colour ? "\x1b[1m" + std::string(text) + "\x1b[0m" : std::string(text);
}

std::string Shaded(std::string_view text, double shade) {
  const auto steps = static_cast<double>(kShades.size());
  const auto place = static_cast<size_t>(std::clamp(shade * steps, 0.0, steps - 1));
  return "\x1b[48;5;" + std::to_string(kShades[place].background) + ";38;5;" +
         std::to_string(kShades[place].foreground) + "m" + std::string(text) + "\x1b[0m";
}

std::string HeatMapText(const HeadMap& values, const HeatMapStyle& style) {
  if (values.empty() || values.front().empty()) return "";
  return HeatMap(values, style).Text();
}

}  // namespace aah
