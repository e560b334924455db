#ifndef AAH_IO_CONFIG_H_
#define AAH_IO_CONFIG_H_

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "aah/error.h"

namespace aah {

namespace internal {
struct ConfigNode;
struct ConfigDocument;
}  // namespace internal

// What stands under a key of a config.
enum class ConfigKind { kAbsent, kNull, kScalar, kList, kSection };

// Bounds of a number, both included; of each number where a list is read.
struct ConfigRange {
  double min = -1e300;
  double max = 1e300;
};
inline constexpr ConfigRange kAnyNumber = {};
inline constexpr ConfigRange kAtLeastZero = {.min = 0};
inline constexpr ConfigRange kAtLeastOne = {.min = 1};

// A typed reader of one section of a YAML config. Keys of nested sections are separated by dots:
//
//   ConfigReader config = ConfigReader::FromFile("recipe.yaml", {"training.steps=200"});
//   ConfigReader training = config.Section("training");
//   const int64_t steps = training.Get<int64_t>("steps", 1000, kAtLeastOne);
//   const double rate = training.Get<double>("learning_rate", 3e-4, {.min = 0, .max = 1});
//   config.Finish();                        // refuses every key that nothing asked for
//   WriteFileAtomically(path, config.ToYaml());  // every value as resolved, defaults included
//
// Errors are aah::Error(kBadInput), one line: where (file and line, or the override), which key,
// what was expected, what came. Refused while parsing: malformed YAML, a key given twice, anchors
// and aliases, tags, several documents, nesting deeper than 32, more than 200'000 values or 4 MiB,
// bytes that are not UTF-8, control characters other than tab and line ends (as escapes in quotes
// all but zero are allowed).
//
// A reader is a light handle; all handles of a document share it, and it lives as long as they do.
// Not thread-safe.
class ConfigReader {
 public:
  // Overrides have the form `key.sub=value`, the value in YAML: `3`, `text`, `[1, 2]`, `{a: 1}`. A
  // number in a key picks the item of a list: `arms.0.name=x`. Later ones win.
  static ConfigReader FromFile(const std::filesystem::path& path,
                               std::span<const std::string> overrides = {});
  // `name` stands for the file in messages.
  static ConfigReader FromText(std::string_view text, std::string_view name,
                               std::span<const std::string> overrides = {});

  // T is bool, int32_t, int64_t, uint64_t, double, std::string, or a std::vector (also of vectors)
  // of these. Get returns `fallback` where the key is absent; Require refuses that; Find gives
  // nothing. Text in quotes is never a number or a bool; numbers must be finite.
  template <typename T>
  T Get(std::string_view key, std::type_identity_t<T> fallback, ConfigRange range = kAnyNumber);
  template <typename T>
  T Require(std::string_view key, ConfigRange range = kAnyNumber);
  template <typename T>
  std::optional<T> Find(std::string_view key, ConfigRange range = kAnyNumber);

  // A word out of `names`; an unknown one is refused with the nearest.
  std::string GetChoice(std::string_view key, std::string_view fallback,
                        std::span<const std::string> names);
  // The same for an enum: {{"learned", Position::kLearned}, ...}.
  template <typename E, size_t kCount>
  E GetEnum(std::string_view key, E fallback,
            const std::array<std::pair<std::string_view, E>, kCount>& names);

  // The section under `key`; an absent one reads as empty, so that every value is its default.
  ConfigReader Section(std::string_view key);
  // The sections of a list under `key`; absent: none.
  std::vector<ConfigReader> List(std::string_view key);
  // The keys that are given here, in their order: for sections whose keys are names of the user's.
  std::vector<std::string> Keys() const;

  // What is given under `key`, for settings that may be a word or a section. Makes the key known
  // for hints, but does not count as reading it.
  ConfigKind KindOf(std::string_view key);
  bool Has(std::string_view key) { return KindOf(key) != ConfigKind::kAbsent; }

  // "recipe.yaml:12: training.steps", to begin a message about a value that was read.
  std::string Where(std::string_view key) const;
  // Throws unless `condition` holds: Where(key), ": ", the parts.
  template <typename... Parts>
  void Check(bool condition, std::string_view key, const Parts&... parts) const {
    if (!condition) ThrowError(ErrorKind::kBadInput, Where(key), ": ", parts...);
  }

  // A new document: this section with the keys of `over` put over it, sections merged key by key,
  // everything else replaced. Both count as read in their own documents.
  ConfigReader MergedWith(const ConfigReader& over) const;
  // A new document of this section with overrides put over it. Counts as read in its own.
  ConfigReader WithOverrides(std::span<const std::string> overrides) const;

  // Refuses the first key of this section, at any depth, that no call asked for.
  void Finish() const;

  // This section as asked for and resolved: every value read through its handles, defaults
  // included, in the order of reading. FromText of the result resolves to the same; where it would
  // not read it, for its size as written out, this throws.
  std::string ToYaml() const;
  // The same as (dotted key, value in YAML), to compare two configs; list items are `key[0].sub`.
  std::vector<std::pair<std::string, std::string>> Flatten() const;

 private:
  using Node = internal::ConfigNode;

  ConfigReader(std::shared_ptr<internal::ConfigDocument> document, Node* given, Node* resolved,
               std::string path);

  // The given value under a key with dots, or null; all names on the way become known.
  Node* Ask(std::string_view key);
  // Stores a resolved value under the key.
  void Resolve(std::string_view key, Node value);
  template <typename T>
  T Convert(const Node& node, const std::string& path, ConfigRange range) const;
  std::string FullKey(std::string_view key) const;

  std::shared_ptr<internal::ConfigDocument> document_;
  Node* given_;     // null: the section is absent
  Node* resolved_;  // owned by the document
  std::string path_;
};

template <typename E, size_t kCount>
E ConfigReader::GetEnum(std::string_view key, E fallback,
                        const std::array<std::pair<std::string_view, E>, kCount>& names) {
  std::vector<std::string> words;
  std::string_view fallback_name;
  for (const auto& [word, value] : names) {
    words.emplace_back(word);
    if (value == fallback) fallback_name = word;
  }
  const std::string chosen = GetChoice(key, fallback_name, words);
  for (const auto& [word, value] : names) {
    if (word == chosen) return value;
  }
  return fallback;
}

}  // namespace aah

#endif  // AAH_IO_CONFIG_H_
