#include "aah/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace aah {
namespace {

size_t LevenshteinDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitution = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitution});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string NearestName(std::string_view name, std::span<const std::string> known) {
  size_t best_distance = name.size() / 2 + 2;
  std::string best;
  for (const std::string& candidate : known) {
    const size_t distance = LevenshteinDistance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string NearestNameHint(std::string_view name, std::span<const std::string> known) {
  const std::string nearest = NearestName(name, known);
  if (!nearest.empty()) return " (did you mean '" + nearest + "'?)";
  std::string hint = ", known: ";
  for (size_t i = 0; i < known.size(); ++i) hint += (i == 0 ? "" : ", ") + known[i];
  return hint;
}

}  // namespace aah
