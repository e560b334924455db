#ifndef AAH_IO_JSON_H_
#define AAH_IO_JSON_H_

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace aah {

using Json = nlohmann::json;

inline constexpr int kMaxJsonDepth = 128;

// Parses one JSON text (RFC 8259, UTF-8). `name` says in messages where the text came from. Throws
// aah::Error(kBadInput) with line and column on anything malformed, on a key given twice in one
// object, on nesting deeper than kMaxJsonDepth and on numbers out of range.
Json ParseJson(std::string_view text, std::string_view name);

// Reads and parses a file of at most `max_bytes`.
Json ReadJsonFile(const std::filesystem::path& path, int64_t max_bytes = int64_t{1} << 30);

// The member `key` of `object` as T: Json itself, bool, int64_t (no fraction, in range), double
// (any number), std::string. Throws aah::Error(kBadInput) that names `name`, the key, what was
// expected and what came.
template <typename T>
T JsonMember(const Json& object, std::string_view key, std::string_view name);

// The same, or `fallback` where the key is absent or null.
template <typename T>
T JsonMemberOr(const Json& object, std::string_view key, T fallback, std::string_view name);

// The member itself, without a copy.
const Json& JsonAt(const Json& object, std::string_view key, std::string_view name);

// The kind of a value for messages: "an object", "a list", "the text 'abc'", "3.5".
std::string DescribeJson(const Json& value);

// Whether `text` is valid UTF-8: what JSON can hold.
bool IsUtf8(std::string_view text);

}  // namespace aah

#endif  // AAH_IO_JSON_H_
