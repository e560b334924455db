#ifndef AAH_LAB_TABLE_H_
#define AAH_LAB_TABLE_H_

#include <string>
#include <vector>

namespace aah {

// A table for people: the first column is left-aligned, all others right-aligned, columns are as
// wide as their widest cell. Titles may hold one line break: the upper line is the quantity, the
// lower one its unit. Cells are UTF-8, one column per code point.
class Table {
 public:
  explicit Table(std::vector<std::string> titles);

  // REQUIRES: as many cells as titles.
  void AddRow(std::vector<std::string> cells);

  // Lines that end in '\n', the titles underlined.
  std::string ToText() const;

 private:
  std::vector<std::string> titles_;
  std::vector<std::vector<std::string>> rows_;
};

// `value` with `digits` decimals; "-" for NaN, which stands for "not measured" in tables.
std::string FormatFixed(double value, int digits);

// 1234567 -> "1,234,567"; "-" for NaN.
std::string FormatThousands(double value);

// 75 -> "1:15", 3700 -> "1:01:40".
std::string FormatDuration(double seconds);

}  // namespace aah

#endif  // AAH_LAB_TABLE_H_
