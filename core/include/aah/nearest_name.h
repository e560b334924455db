#ifndef AAH_NEAREST_NAME_H_
#define AAH_NEAREST_NAME_H_

#include <span>
#include <string>
#include <string_view>

namespace aah {

// The entry of `known` with the least Levenshtein distance to `name` (the first one on a tie), or
// an empty string where none is within half the length of `name` plus one.
std::string NearestName(std::string_view name, std::span<const std::string> known);

// " (did you mean 'X'?)" for the nearest name, or ", known: a, b, c" where none is near; ends an
// error message about an unknown name.
std::string NearestNameHint(std::string_view name, std::span<const std::string> known);

}  // namespace aah

#endif  // AAH_NEAREST_NAME_H_
