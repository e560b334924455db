#include "aah/io/config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "aah/error.h"
#include "aah/io/file.h"
#include "aah/nearest_name.h"
#include "config_node.h"

namespace aah {
namespace {

using internal::ConfigDocument;
using internal::ConfigNode;

constexpr int64_t kMaxConfigBytes = int64_t{4} << 20;

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};

std::string NumberText(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr};
}

// The bound of a range, as the digits that an integer is given in.
template <typename T>
std::string BoundText(double bound) {
  const bool exact = std::abs(bound) <= 0x1p53 && bound == std::trunc(bound);
  return std::integral<T> && exact ? std::to_string(static_cast<int64_t>(bound))
                                   : NumberText(bound);
}

// "an integer of at least 1", "a number in 0..1".
template <typename T>
std::string ExpectedNumber(ConfigRange range) {
  std::string text = std::integral<T> ? "an integer" : "a number";
  const bool has_min = range.min > kAnyNumber.min;
  const bool has_max = range.max < kAnyNumber.max;
  if (has_min && has_max) {
    text += " in " + BoundText<T>(range.min) + ".." + BoundText<T>(range.max);
  } else if (has_min) {
    text += " of at least " + BoundText<T>(range.min);
  } else if (has_max) {
    text += " of at most " + BoundText<T>(range.max);
  } else if (std::unsigned_integral<T>) {
    text += " in 0.." + std::to_string(std::numeric_limits<T>::max());
  }
  return text;
}

[[noreturn]] void ThrowExpected(const ConfigNode& node, std::string_view path,
                                std::string_view expected) {
  ThrowError(ErrorKind::kBadInput, node.Location(), ": ", path, ": expected ", expected, ", got ",
             internal::DescribeConfig(node));
}

template <typename T>
T NumberOf(const ConfigNode& node, const std::string& path, ConfigRange range) {
  const auto refuse = [&] { ThrowExpected(node, path, ExpectedNumber<T>(range)); };
  if (node.kind != ConfigKind::kScalar || node.quoted) refuse();
  std::string_view text = node.text;
  if (text.starts_with('+')) text.remove_prefix(1);
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) refuse();
  if constexpr (std::floating_point<T>) {
    if (!std::isfinite(value)) refuse();
  }
  const auto number = static_cast<double>(value);
  if (number < range.min || number > range.max) refuse();
  return value;
}

ConfigNode Scalar(std::string text, bool quoted) {
  ConfigNode node;
  node.kind = ConfigKind::kScalar;
  node.text = std::move(text);
  node.quoted = quoted;
  return node;
}

template <typename T>
ConfigNode NodeOf(const T& value) {
  if constexpr (IsVector<T>::value) {
    ConfigNode node;
    node.kind = ConfigKind::kList;
    for (const auto& item : value) node.children.push_back(NodeOf(item));
    return node;
  } else if constexpr (std::same_as<T, std::string>) {
    return Scalar(value, true);
  } else if constexpr (std::same_as<T, bool>) {
    return Scalar(value ? "true" : "false", false);
  } else if constexpr (std::floating_point<T>) {
    return Scalar(NumberText(value), false);
  } else {
    return Scalar(std::to_string(value), false);
  }
}

// The first part of a key with dots; takes it off `key`.
std::string_view TakeName(std::string_view& key) {
  const size_t dot = key.find('.');
  const std::string_view name = key.substr(0, dot);
  key = dot == std::string_view::npos ? std::string_view() : key.substr(dot + 1);
  return name;
}

void FinishNode(const ConfigNode& node, const std::string& path) {
  if (node.read) return;
  int index = 0;
  for (const ConfigNode& child : node.children) {
    const bool in_list = node.kind == ConfigKind::kList;
    const std::string child_path = in_list ? path + "[" + std::to_string(index++) + "]"
                                           : (path.empty() ? "" : path + ".") + child.key;
    const bool known =
        in_list || std::find(node.asked.begin(), node.asked.end(), child.key) != node.asked.end();
    if (!known) {
      const std::string hint =
          node.asked.empty() ? ", there are no keys here" : NearestNameHint(child.key, node.asked);
      ThrowError(ErrorKind::kBadInput, child.Location(), ": unknown key '", child_path, "'", hint);
    }
    AAH_CHECK(child.read || child.entered, child.Location(), ": key '", child_path,
              "' has no effect together with the other settings, remove it");
    FinishNode(child, child_path);
  }
}

void FlattenNode(const ConfigNode& node, const std::string& path,
                 std::vector<std::pair<std::string, std::string>>& out) {
  const bool list_of_sections = node.kind == ConfigKind::kList && !node.children.empty() &&
                                node.children.front().kind == ConfigKind::kSection;
  if (node.kind != ConfigKind::kSection && !list_of_sections) {
    out.emplace_back(path, internal::ConfigFlowYaml(node));
    return;
  }
  int index = 0;
  for (const ConfigNode& child : node.children) {
    FlattenNode(child,
                list_of_sections ? path + "[" + std::to_string(index++) + "]"
                                 : (path.empty() ? "" : path + ".") + child.key,
                out);
  }
}

std::shared_ptr<ConfigDocument> MakeDocument(std::string name, ConfigNode given,
                                             std::span<const std::string> overrides) {
  for (const std::string& text : overrides) internal::ApplyConfigOverride(given, text);
  if (given.kind == ConfigKind::kNull) given.kind = ConfigKind::kSection;
  AAH_CHECK(given.kind == ConfigKind::kSection, given.Location(),
            ": expected lines of the form `key: value`, got ", internal::DescribeConfig(given));
  auto document = std::make_shared<ConfigDocument>();
  document->name = std::move(name);
  document->given = std::move(given);
  document->resolved.kind = ConfigKind::kSection;
  return document;
}

}  // namespace

ConfigReader::ConfigReader(std::shared_ptr<ConfigDocument> document, Node* given, Node* resolved,
                           std::string path)
    : document_(std::move(document)), given_(given), resolved_(resolved), path_(std::move(path)) {
  if (given_ != nullptr) given_->entered = true;
}

ConfigReader ConfigReader::FromFile(const std::filesystem::path& path,
                                    std::span<const std::string> overrides) {
  return FromText(ReadFile(path, kMaxConfigBytes), path.string(), overrides);
}

ConfigReader ConfigReader::FromText(std::string_view text, std::string_view name,
                                    std::span<const std::string> overrides) {
  const auto source = std::make_shared<const std::string>(name);
  const auto document =
      MakeDocument(std::string(name), internal::ParseConfigYaml(text, source, true), overrides);
  return {document, &document->given, &document->resolved, ""};
}

std::string ConfigReader::FullKey(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

ConfigReader::Node* ConfigReader::Ask(std::string_view key) {
  Node* node = given_;
  std::string path = path_;
  while (!key.empty()) {
    if (node == nullptr || node->kind == ConfigKind::kNull) return nullptr;
    if (node->kind != ConfigKind::kSection) ThrowExpected(*node, path, "a section");
    node->entered = true;
    const std::string name(TakeName(key));
    path += (path.empty() ? "" : ".") + name;
    if (std::find(node->asked.begin(), node->asked.end(), name) == node->asked.end()) {
      node->asked.push_back(name);
    }
    node = node->Child(name);
  }
  return node;
}

void ConfigReader::Resolve(std::string_view key, Node value) {
  Node* node = resolved_;
  std::string_view name = TakeName(key);
  for (; !key.empty(); name = TakeName(key)) node = &node->ChildOrNew(name);
  value.key = name;
  node->ChildOrNew(name) = std::move(value);
}

template <typename T>
T ConfigReader::Convert(const Node& node, const std::string& path, ConfigRange range) const {
  if constexpr (IsVector<T>::value) {
    if (node.kind != ConfigKind::kList) ThrowExpected(node, path, "a list such as [1, 2]");
    T values;
    for (const Node& item : node.children) {
      values.push_back(Convert<typename T::value_type>(
          item, path + "[" + std::to_string(values.size()) + "]", range));
    }
    return values;
  } else if constexpr (std::same_as<T, std::string>) {
    if (node.kind != ConfigKind::kScalar) ThrowExpected(node, path, "a text");
    return node.text;
  } else if constexpr (std::same_as<T, bool>) {
    const bool is_bool = node.kind == ConfigKind::kScalar && !node.quoted &&
                         (node.text == "true" || node.text == "false");
    if (!is_bool) ThrowExpected(node, path, "true or false");
    return node.text == "true";
  } else {
    return NumberOf<T>(node, path, range);
  }
}

template <typename T>
std::optional<T> ConfigReader::Find(std::string_view key, ConfigRange range) {
  Node* node = Ask(key);
  if (node == nullptr) return std::nullopt;
  node->read = true;
  T value = Convert<T>(*node, FullKey(key), range);
  Resolve(key, NodeOf(value));
  return value;
}

template <typename T>
T ConfigReader::Get(std::string_view key, std::type_identity_t<T> fallback, ConfigRange range) {
  if (std::optional<T> value = Find<T>(key, range)) return *std::move(value);
  Resolve(key, NodeOf<T>(fallback));
  return fallback;
}

template <typename T>
T ConfigReader::Require(std::string_view key, ConfigRange range) {
  if (std::optional<T> value = Find<T>(key, range)) return *std::move(value);
  ThrowError(ErrorKind::kBadInput, Where(key), ": this key is required, add it");
}

#define AAH_INSTANTIATE(T)                                                                 \
  template std::optional<T> ConfigReader::Find<T>(std::string_view, ConfigRange);          \
  template T ConfigReader::Get<T>(std::string_view, std::type_identity_t<T>, ConfigRange); \
  template T ConfigReader::Require<T>(std::string_view, ConfigRange);
#define AAH_INSTANTIATE_LISTS(T)  \
  AAH_INSTANTIATE(T)              \
  AAH_INSTANTIATE(std::vector<T>) \
  AAH_INSTANTIATE(std::vector<std::vector<T>>)

AAH_INSTANTIATE_LISTS(bool)
AAH_INSTANTIATE_LISTS(int32_t)
AAH_INSTANTIATE_LISTS(int64_t)
AAH_INSTANTIATE_LISTS(uint64_t)
AAH_INSTANTIATE_LISTS(double)
AAH_INSTANTIATE_LISTS(std::string)

#undef AAH_INSTANTIATE_LISTS
#undef AAH_INSTANTIATE

std::string ConfigReader::GetChoice(std::string_view key, std::string_view fallback,
                                    std::span<const std::string> names) {
  std::string word = Get<std::string>(key, std::string(fallback));
  Check(std::find(names.begin(), names.end(), word) != names.end(), key, "unknown name '",
        word.substr(0, 40), "'", NearestNameHint(word.substr(0, 200), names));
  return word;
}

ConfigReader ConfigReader::Section(std::string_view key) {
  Node* node = Ask(key);
  if (node != nullptr && node->kind != ConfigKind::kSection && node->kind != ConfigKind::kNull) {
    ThrowExpected(*node, FullKey(key), "a section (lines `key: value`, indented)");
  }
  Node* resolved = resolved_;
  for (std::string_view rest = key; !rest.empty();)
    resolved = &resolved->ChildOrNew(TakeName(rest));
  resolved->kind = ConfigKind::kSection;
  return {document_, node, resolved, FullKey(key)};
}

std::vector<ConfigReader> ConfigReader::List(std::string_view key) {
  Node* node = Ask(key);
  Node* resolved = resolved_;
  for (std::string_view rest = key; !rest.empty();)
    resolved = &resolved->ChildOrNew(TakeName(rest));
  resolved->kind = ConfigKind::kList;
  std::vector<ConfigReader> sections;
  if (node == nullptr) return sections;
  if (node->kind != ConfigKind::kList) ThrowExpected(*node, FullKey(key), "a list of sections");
  node->entered = true;
  resolved->children.resize(node->children.size());
  auto resolved_item = resolved->children.begin();
  for (Node& item : node->children) {
    const std::string path = FullKey(key) + "[" + std::to_string(sections.size()) + "]";
    if (item.kind != ConfigKind::kSection) ThrowExpected(item, path, "a section");
    resolved_item->kind = ConfigKind::kSection;
    sections.push_back(ConfigReader(document_, &item, &*resolved_item, path));
    ++resolved_item;
  }
  return sections;
}

std::vector<std::string> ConfigReader::Keys() const {
  std::vector<std::string> keys;
  if (given_ == nullptr) return keys;
  for (const Node& child : given_->children) keys.push_back(child.key);
  return keys;
}

ConfigKind ConfigReader::KindOf(std::string_view key) {
  const Node* node = Ask(key);
  return node == nullptr ? ConfigKind::kAbsent : node->kind;
}

std::string ConfigReader::Where(std::string_view key) const {
  const Node* node = given_;
  for (std::string_view rest = key; node != nullptr && !rest.empty();) {
    node = std::as_const(*node).Child(TakeName(rest));
  }
  return (node == nullptr ? document_->name : node->Location()) + ": " + FullKey(key);
}

ConfigReader ConfigReader::MergedWith(const ConfigReader& over) const {
  Node merged = given_ == nullptr ? Node() : *given_;
  merged.kind = ConfigKind::kSection;
  merged.key.clear();
  if (given_ != nullptr) given_->read = true;
  if (over.given_ != nullptr) {
    over.given_->read = true;
    if (over.given_->kind == ConfigKind::kSection) internal::MergeConfig(merged, *over.given_);
  }
  internal::ForgetReading(merged);
  const auto document = MakeDocument(document_->name, std::move(merged), {});
  return {document, &document->given, &document->resolved, ""};
}

ConfigReader ConfigReader::WithOverrides(std::span<const std::string> overrides) const {
  Node copy = given_ == nullptr ? Node() : *given_;
  copy.key.clear();
  if (given_ != nullptr) given_->read = true;
  internal::ForgetReading(copy);
  const auto document = MakeDocument(document_->name, std::move(copy), overrides);
  return {document, &document->given, &document->resolved, ""};
}

void ConfigReader::Finish() const {
  if (given_ != nullptr) FinishNode(*given_, path_);
}

std::string ConfigReader::ToYaml() const {
  std::string yaml;
  internal::WriteConfigBlock(*resolved_, 0, yaml);
  // Escapes and defaults can take it over the bounds of what is read.
  internal::ParseConfigYaml(
      yaml, std::make_shared<const std::string>(document_->name + ", as resolved"), true);
  return yaml;
}

std::vector<std::pair<std::string, std::string>> ConfigReader::Flatten() const {
  std::vector<std::pair<std::string, std::string>> leaves;
  FlattenNode(*resolved_, "", leaves);
  return leaves;
}

}  // namespace aah
