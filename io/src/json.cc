#include "aah/io/json.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aah/error.h"
#include "aah/io/file.h"

namespace aah {
namespace {

constexpr size_t kShown = 40;

// "line 3, column 7" of the byte at `offset`.
std::string LineAndColumn(std::string_view text, size_t offset) {
  size_t line = 1;
  size_t column = 1;
  for (size_t i = 0; i < offset && i < text.size(); ++i) {
    ++column;
    if (text[i] == '\n') {
      ++line;
      column = 1;
    }
  }
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// Builds the value from the parser's events, which lets it refuse what nlohmann's own builder
// accepts: repeated keys and any depth.
class ValueBuilder final : public nlohmann::json_sax<Json> {
 public:
  ValueBuilder(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Json TakeRoot() { return std::move(root_); }

  bool null() override { return Put(nullptr); }
  bool boolean(bool value) override { return Put(value); }
  bool number_integer(number_integer_t value) override { return Put(value); }
  bool number_unsigned(number_unsigned_t value) override { return Put(value); }
  bool number_float(number_float_t value, const string_t&) override { return Put(value); }
  bool string(string_t& value) override { return Put(std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(size_t) override { return Open(Json::object()); }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(Json::array()); }
  bool end_array() override { return Close(); }

  bool key(string_t& key) override {
    AAH_CHECK(!open_.back()->contains(key), name_, ": key '", key.substr(0, kShown),
              "' is given twice in one object, remove one");
    key_ = std::move(key);
    return true;
  }

  bool parse_error(size_t position, const std::string& last_token,
                   const nlohmann::detail::exception&) override {
    const size_t offset = position > 0 ? position - 1 : 0;
    std::string token = last_token.substr(0, kShown);
    for (char& c : token) {
      if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
    }
    const bool at_end = offset >= text_.size();
    ThrowError(ErrorKind::kBadInput, name_, ": not valid JSON at ", LineAndColumn(text_, offset),
               at_end ? ": the text ends too early" : ", near '" + token + "'");
  }

 private:
  template <typename T>
  bool Put(T&& value) {
    Place(Json(std::forward<T>(value)));
    return true;
  }

  Json* Place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[std::move(key_)] = std::move(value));
  }

  bool Open(Json empty) {
    AAH_CHECK(open_.size() < kMaxJsonDepth, name_, ": nested deeper than ", kMaxJsonDepth,
              " levels");
    open_.push_back(Place(std::move(empty)));
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  std::string_view name_;
  Json root_;
  std::vector<Json*> open_;  // a parent only grows once its open child is closed
  std::string key_;
};

[[noreturn]] void ThrowExpected(std::string_view name, std::string_view key,
                                std::string_view expected, const Json& value) {
  ThrowError(ErrorKind::kBadInput, name, ": '", key, "': expected ", expected, ", got ",
             DescribeJson(value));
}

template <typename T>
T As(const Json& value, std::string_view key, std::string_view name);

template <>
Json As<Json>(const Json& value, std::string_view, std::string_view) {
  return value;
}

template <>
bool As<bool>(const Json& value, std::string_view key, std::string_view name) {
  if (!value.is_boolean()) ThrowExpected(name, key, "true or false", value);
  return value.get<bool>();
}

template <>
int64_t As<int64_t>(const Json& value, std::string_view key, std::string_view name) {
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX);
  if (!fits) ThrowExpected(name, key, "an integer below 2^63", value);
  return value.get<int64_t>();
}

template <>
double As<double>(const Json& value, std::string_view key, std::string_view name) {
  if (!value.is_number()) ThrowExpected(name, key, "a number", value);
  return value.get<double>();
}

template <>
std::string As<std::string>(const Json& value, std::string_view key, std::string_view name) {
  if (!value.is_string()) ThrowExpected(name, key, "a text", value);
  return value.get<std::string>();
}

}  // namespace

Json ParseJson(std::string_view text, std::string_view name) {
  ValueBuilder builder(text, name);
  Json::sax_parse(text, &builder);
  return builder.TakeRoot();
}

Json ReadJsonFile(const std::filesystem::path& path, int64_t max_bytes) {
  return ParseJson(ReadFile(path, max_bytes), path.string());
}

const Json& JsonAt(const Json& object, std::string_view key, std::string_view name) {
  AAH_CHECK(object.is_object(), name, ": expected an object with the key '", key, "', got ",
            DescribeJson(object));
  const auto found = object.find(std::string(key));
  AAH_CHECK(found != object.end(), name, ": the key '", key, "' is missing");
  return *found;
}

template <typename T>
T JsonMember(const Json& object, std::string_view key, std::string_view name) {
  return As<T>(JsonAt(object, key, name), key, name);
}

template <typename T>
T JsonMemberOr(const Json& object, std::string_view key, T fallback, std::string_view name) {
  AAH_CHECK(object.is_object(), name, ": expected an object, got ", DescribeJson(object));
  const auto found = object.find(std::string(key));
  if (found == object.end() || found->is_null()) return fallback;
  return As<T>(*found, key, name);
}

#define AAH_INSTANTIATE(T)                                                          \
  template T JsonMember<T>(const Json& object, std::string_view, std::string_view); \
  template T JsonMemberOr<T>(const Json& object, std::string_view, T, std::string_view);

AAH_INSTANTIATE(Json)
AAH_INSTANTIATE(bool)
AAH_INSTANTIATE(int64_t)
AAH_INSTANTIATE(double)
AAH_INSTANTIATE(std::string)

#undef AAH_INSTANTIATE

std::string DescribeJson(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return "the text '" + text.substr(0, kShown) + (text.size() > kShown ? "...'" : "'");
  }
  return value.dump();
}

bool IsUtf8(std::string_view text) {
  try {
    (void)Json(text).dump();
  } catch (const Json::type_error&) {
    return false;
  }
  return true;
}

}  // namespace aah
