#ifndef AAH_CONTROL_NAMED_CHOICE_H_
#define AAH_CONTROL_NAMED_CHOICE_H_

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aah/error.h"
#include "aah/nearest_name.h"

namespace aah {

// The value that `table` gives `name`; throws aah::Error with the nearest known name. `what` is the
// noun of the message: "unknown <what> 'name' ...".
template <typename Name, typename Value, size_t N>
Value ParseChoice(const char* what, std::string_view name,
                  const std::array<std::pair<Name, Value>, N>& table) {
  std::vector<std::string> known;
  for (const auto& [known_name, value] : table) {
    if (name == known_name) return value;
    known.emplace_back(known_name);
  }
  ThrowError(ErrorKind::kBadInput, "unknown ", what, " '", name, "'", NearestNameHint(name, known));
}

}  // namespace aah

#endif  // AAH_CONTROL_NAMED_CHOICE_H_
