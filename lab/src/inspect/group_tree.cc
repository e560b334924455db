#include "inspect/group_tree.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aah/head_features.h"
#include "aah/model/run_folder.h"

namespace aah {
namespace {

constexpr size_t kTreeColumns = 17;
constexpr size_t kWindowColumns = 8;
constexpr size_t kFeatureColumns = 6;

struct FeatureTitle {
  const char* upper;
  const char* lower;
};
constexpr std::array<FeatureTitle, kFeatureCount> kTitles = {{{"mean", "|q|"},
                                                              {"std", "q"},
                                                              {"mean", "|k|"},
                                                              {"std", "k"},
                                                              {"mean", "|v|"},
                                                              {"std", "v"},
                                                              {"entr.", ""},
                                                              {"norm", ""},
                                                              {"usage", ""}}};

std::string Right(std::string_view text, size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + std::string(text);
}

std::string Figures(const GroupRecord& group) {
  std::string window = "-";
  if (group.window) {
    const bool cut = group.raw_index && group.index && *group.raw_index != *group.index;
    window = std::to_string(*group.window) + (cut ? "*" : " ");
  }
  std::string line = Right(window, kWindowColumns);
  for (const double feature : group.features) line += Right(Compact(feature), kFeatureColumns);
  return line;
}

class Tree {
 public:
  explicit Tree(const std::vector<GroupRecord>& groups) : groups_(groups) {}

  // `stem` leads the group's own line, `below` those of its children, both in columns of two.
  void Add(const GroupRecord& group, const std::string& stem, const std::string& below) {
    const size_t stem_columns = 3 * depth_;
    const std::string heads = Ranges(group.heads);
    const size_t room = kTreeColumns - std::min(stem_columns, kTreeColumns - 8);
    std::string_view rest = heads;
    std::string part = TakeLine(rest, room);
    text_ += stem + part + std::string(room - part.size(), ' ') + Figures(group) + "\n";
    while (!rest.empty()) text_ += below + TakeLine(rest, room) + "\n";
    std::vector<const GroupRecord*> children;
    for (const GroupRecord& other : groups_) {
      if (other.level + 1 == group.level && other.parent == group.group) {
        children.push_back(&other);
      }
    }
    ++depth_;
    for (size_t i = 0; i < children.size(); ++i) {
      const bool last = i + 1 == children.size();
      Add(*children[i], below + (last ? "└─ " : "├─ "), below + (last ? "   " : "│  "));
    }
    --depth_;
  }

  const std::string& text() const { return text_; }

 private:
  // Takes what fits into `room` columns, up to a comma.
  static std::string TakeLine(std::string_view& rest, size_t room) {
    size_t length = rest.size();
    if (length > room) {
      length = rest.rfind(',', room - 1);
      length = length == std::string_view::npos ? room : length + 1;
    }
    std::string line(rest.substr(0, length));
    rest.remove_prefix(length);
    return line;
  }

  const std::vector<GroupRecord>& groups_;
  std::string text_;
  size_t depth_ = 0;
};

}  // namespace

std::string GroupTreeTitles() {
  std::string upper =
      "heads" + std::string(kTreeColumns - 5, ' ') + Right("window ", kWindowColumns);
  std::string lower(kTreeColumns + kWindowColumns, ' ');
  for (const FeatureTitle& title : kTitles) {
    upper += Right(title.upper, kFeatureColumns);
    lower += Right(title.lower, kFeatureColumns);
  }
  lower.erase(lower.find_last_not_of(' ') + 1);
  return upper + "\n" + lower + "\n";
}

std::string GroupTreeText(const std::vector<GroupRecord>& groups) {
  Tree tree(groups);
  for (const GroupRecord& group : groups) {
    if (!group.parent) tree.Add(group, "", "");
  }
  return tree.text();
}

std::string Ranges(std::span<const int32_t> numbers) {
  std::string text;
  for (size_t first = 0; first < numbers.size();) {
    size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ",";
    text += std::to_string(numbers[first]);
    if (last > first) text += (last == first + 1 ? "," : "-") + std::to_string(numbers[last]);
    first = last + 1;
  }
  return text;
}

std::string Compact(double value) {
  if (std::isnan(value)) return "-";
  std::array<char, 32> buffer;
  const double size = std::abs(value);
  const char* format = "%.0e";
  if (size == 0 || (size >= 0.0005 && size < 9.9995)) {
    format = value < 0 ? "%.2f" : "%.3f";
  } else if (size >= 9.9995 && size < 99.995) {
    format = value < 0 ? "%.1f" : "%.2f";
  } else if (size >= 99.995 && size < 999.95) {
    format = value < 0 ? "%.0f" : "%.1f";
  } else if (size >= 999.95 && size < 9999.5) {
    format = "%.0f";
  }
  if (value >= 0.00005 && value < 0.00995) format = "%.4f";  // its leading 0 has no room
  std::snprintf(buffer.data(), buffer.size(), format, value);
  const std::string text = buffer.data();
  return text.size() == 6 && text.starts_with('0') ? text.substr(1) : text;
}

}  // namespace aah
