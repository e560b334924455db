#ifndef AAH_LAB_INSPECT_HEAT_MAP_H_
#define AAH_LAB_INSPECT_HEAT_MAP_H_

#include <string>
#include <string_view>
#include <vector>

#include "aah/lab/window_history.h"

namespace aah {

// Columns a terminal is taken to have.
inline constexpr size_t kTerminalColumns = 80;

// `text` in bold where there is colour.
std::string Title(std::string_view text, bool colour);

// `text` on a background of the 256-colour palette: light for a shade of 0, dark for 1.
std::string Shaded(std::string_view text, double shade);

// What the cells of a heat map show. Numbers where all heads fit beside each other, else one symbol
// a cell: 0 to 9 and a to z for the values in order, with a legend; of more different values those
// that are near on a logarithmic scale share one.
struct HeatMapStyle {
  bool colour = false;
  bool logarithmic = true;
  int low = 1;   // shades run from here
  int high = 1;  // to here
};

// Rows of layers, columns of heads, titles and legend included; lines of at most
// kTerminalColumns - 1 columns that end in '\n'. REQUIRES: values >= 0.
std::string HeatMapText(const HeadMap& values, const HeatMapStyle& style);

}  // namespace aah

#endif  // AAH_LAB_INSPECT_HEAT_MAP_H_
