#ifndef AAH_MODEL_SRC_TRAIN_CONFIG_FIELDS_H_
#define AAH_MODEL_SRC_TRAIN_CONFIG_FIELDS_H_

#include <array>
#include <charconv>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "aah/io/config.h"

namespace aah {

inline constexpr ConfigRange kFraction = {.min = 0, .max = 0.999999999};
inline constexpr ConfigRange kCount = {.min = 1, .max = 1e9};
inline constexpr ConfigRange kCountOrZero = {.min = 0, .max = 1e9};
// Far above any model, so that products of sizes stay in range.
inline constexpr ConfigRange kBlocks = {.min = 1, .max = 4096};
inline constexpr ConfigRange kSize = {.min = 1, .max = 1 << 24};
inline constexpr ConfigRange kSizeOrZero = {.min = 0, .max = 1 << 24};

// The double that a recipe writes for a float: 0.1 for 0.1f, not 0.10000000149.
inline double ShortestDouble(float value) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  double shortest = 0;
  std::from_chars(text.data(), end, shortest);
  return shortest;
}

// The two ways VisitRunConfig goes over a config: fields from a reader, fields into JSON.
class FieldReader {
 public:
  explicit FieldReader(ConfigReader reader) : reader_(std::move(reader)) {}
  FieldReader Section(std::string_view key) { return FieldReader(reader_.Section(key)); }
  template <typename T>
  void Value(std::string_view key, T& field, ConfigRange range = kAnyNumber) {
    if constexpr (std::is_same_v<T, float>) {
      field = static_cast<float>(reader_.Get<double>(key, ShortestDouble(field), range));
    } else {
      field = reader_.Get<T>(key, field, range);
    }
  }
  template <typename E, size_t kCount>
  void Enum(std::string_view key, E& field,
            const std::array<std::pair<std::string_view, E>, kCount>& names) {
    field = reader_.GetEnum(key, field, names);
  }

 private:
  ConfigReader reader_;
};

class FieldWriter {
 public:
  explicit FieldWriter(nlohmann::ordered_json* json) : json_(json) {}
  FieldWriter Section(std::string_view key) { return FieldWriter(&(*json_)[std::string(key)]); }
  template <typename T>
  void Value(std::string_view key, const T& field, ConfigRange /*range*/ = kAnyNumber) {
    if constexpr (std::is_same_v<T, float>) {
      (*json_)[std::string(key)] = ShortestDouble(field);
    } else {
      (*json_)[std::string(key)] = field;
    }
  }
  template <typename E, size_t kCount>
  void Enum(std::string_view key, E field,
            const std::array<std::pair<std::string_view, E>, kCount>& names) {
    for (const auto& [name, value] : names) {
      if (value == field) (*json_)[std::string(key)] = std::string(name);
    }
  }

 private:
  nlohmann::ordered_json* json_;
};

}  // namespace aah

#endif  // AAH_MODEL_SRC_TRAIN_CONFIG_FIELDS_H_
