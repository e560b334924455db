#include "config_node.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "aah/error.h"
#include "aah/io/config.h"
#include "aah/io/json.h"

namespace aah::internal {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

// True where YAML reads the text back as the same text without quotes, and a person would too.
bool IsPlain(std::string_view text) {
  if (text.empty() || text.front() == '-' || text.front() == '.') return false;
  const auto safe = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '/' || c == '-' || c == '+';
  };
  return std::all_of(text.begin(), text.end(), safe);
}

// True where plain text would be taken for something else than text, by us or by other readers.
bool IsWordOfYaml(std::string_view text) {
  constexpr std::string_view kWords[] = {"true", "false", "null", "yes", "no", "on", "off"};
  std::string word(text);
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords)) return true;
  return (text.front() >= '0' && text.front() <= '9') || text.front() == '+';
}

// Whether a person would not see the character, or YAML does not allow it or keep it as it is:
// control characters, breaks of lines, spaces and marks without ink, noncharacters.
bool NeedsEscape(uint32_t code) {
  struct Range {
    uint32_t first, last;
  };
  constexpr Range kRanges[] = {
      {0x0, 0x1f},      {0x7f, 0xa0},     {0xad, 0xad},     {0x2000, 0x200f}, {0x2028, 0x202f},
      {0x205f, 0x206f}, {0xfdd0, 0xfdef}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};
  return (code & 0xfffe) == 0xfffe ||
         std::any_of(std::begin(kRanges), std::end(kRanges),
                     [&](Range range) { return code >= range.first && code <= range.last; });
}

// The code point of one UTF-8 character.
uint32_t CodePoint(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  uint32_t code = character.size() == 1 ? first : first & (0x7fU >> character.size());
  for (const char c : character.substr(1))
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3f);
  return code;
}

// \x85, \u2028, \U0001ffff
std::string Escape(uint32_t code) {
  const int digits = code <= 0xff ? 2 : code <= 0xffff ? 4 : 8;
  std::string escape = digits == 2 ? "\\x" : digits == 4 ? "\\u" : "\\U";
  for (int i = digits - 1; i >= 0; --i) escape += kHexDigits[code >> (4 * i) & 15];
  return escape;
}

std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const std::string_view character = text.substr(0, CharacterBytes(text.front()));
    text.remove_prefix(character.size());
    if (character == "\"" || character == "\\") {
      quoted += '\\';
      quoted += character;
    } else if (const uint32_t code = CodePoint(character); NeedsEscape(code)) {
      quoted += Escape(code);
    } else {
      quoted += character;
    }
  }
  return quoted + '"';
}

std::string TextYaml(std::string_view text) {
  return IsPlain(text) && !IsWordOfYaml(text) ? std::string(text) : Quote(text);
}

// How many levels of lists and sections the node has; 0 for a scalar.
size_t DepthOf(const ConfigNode& node) {
  size_t depth = 0;
  for (const ConfigNode& child : node.children) depth = std::max(depth, DepthOf(child));
  return depth + (node.kind == ConfigKind::kList || node.kind == ConfigKind::kSection ? 1 : 0);
}

// Refuses a key, its names or their number where the result could not be written and read back.
void CheckOverrideKey(std::string_view key, const ConfigNode& value, const std::string& where) {
  AAH_CHECK(IsUtf8(key) && key.find('\0') == std::string_view::npos, where,
            ": expected a key in UTF-8, got other bytes");
  size_t longest = 0, names = 1, begin = 0;
  for (size_t dot; (dot = key.find('.', begin)) != std::string_view::npos; begin = dot + 1) {
    longest = std::max(longest, dot - begin);
    ++names;
  }
  longest = std::max(longest, key.size() - begin);
  AAH_CHECK(longest <= kMaxConfigKeyBytes, where, ": expected names of at most ",
            kMaxConfigKeyBytes, " bytes, got one of ", longest);
  AAH_CHECK(names + DepthOf(value) <= kMaxConfigDepth, where, ": nested deeper than ",
            kMaxConfigDepth, " levels, which no config needs");
}

// Walks the key of an override down to the node it names, making sections on the way.
ConfigNode& NodeOfOverride(ConfigNode& root, std::string_view key, const std::string& where) {
  ConfigNode* node = &root;
  while (true) {
    const size_t dot = key.find('.');
    const std::string_view name = key.substr(0, dot);
    AAH_CHECK(!name.empty(), where, ": expected the form key.sub=value");
    if (node->kind == ConfigKind::kNull) node->kind = ConfigKind::kSection;
    if (node->kind == ConfigKind::kList) {
      auto item = node->children.begin();
      size_t index = 0;
      while (item != node->children.end() && std::to_string(index) != name) ++item, ++index;
      AAH_CHECK(item != node->children.end(), where, ": '", name,
                "' must be the number of an item, below ", node->children.size());
      node = &*item;
    } else {
      AAH_CHECK(node->kind == ConfigKind::kSection, where, ": '", name, "' stands beneath ",
                DescribeConfig(*node), " (", node->Location(),
                "); to replace that by a section, write it as key={", name, ": ...}");
      node = &node->ChildOrNew(name);
    }
    if (dot == std::string_view::npos) return *node;
    key.remove_prefix(dot + 1);
  }
}

}  // namespace

ConfigNode* ConfigNode::Child(std::string_view name) {
  return const_cast<ConfigNode*>(std::as_const(*this).Child(name));
}

const ConfigNode* ConfigNode::Child(std::string_view name) const {
  if (kind != ConfigKind::kSection) return nullptr;
  for (const ConfigNode& child : children) {
    if (child.key == name) return &child;
  }
  return nullptr;
}

ConfigNode& ConfigNode::ChildOrNew(std::string_view name) {
  kind = ConfigKind::kSection;
  if (ConfigNode* child = Child(name)) return *child;
  ConfigNode& child = children.emplace_back();
  child.key = name;
  child.source = source;
  return child;
}

std::string ConfigNode::Location() const {
  std::string location = source == nullptr ? "config" : *source;
  if (line > 0) location += ":" + std::to_string(line);
  return location;
}

void ApplyConfigOverride(ConfigNode& root, const std::string& override_text) {
  constexpr size_t kShown = 80;
  const std::string shown =
      override_text.size() <= kShown ? override_text : override_text.substr(0, kShown) + "...";
  const auto source = std::make_shared<const std::string>("override '" + shown + "'");
  const size_t equals = override_text.find('=');
  AAH_CHECK(equals != std::string::npos && equals > 0, *source,
            ": expected the form key.sub=value");
  ConfigNode value =
      ParseConfigYaml(std::string_view(override_text).substr(equals + 1), source, false);
  const std::string_view key = std::string_view(override_text).substr(0, equals);
  CheckOverrideKey(key, value, *source);
  ConfigNode& target = NodeOfOverride(root, key, *source);
  value.key = target.key;
  target = std::move(value);
}

void MergeConfig(ConfigNode& base, const ConfigNode& over) {
  if (base.kind != ConfigKind::kSection || over.kind != ConfigKind::kSection) {
    const std::string key = base.key;
    base = over;
    base.key = key;
    return;
  }
  for (const ConfigNode& child : over.children) MergeConfig(base.ChildOrNew(child.key), child);
}

void ForgetReading(ConfigNode& node) {
  node.read = false;
  node.entered = false;
  node.asked.clear();
  for (ConfigNode& child : node.children) ForgetReading(child);
}

std::string ConfigFlowYaml(const ConfigNode& node) {
  const bool is_list = node.kind == ConfigKind::kList;
  switch (node.kind) {
    case ConfigKind::kAbsent:
    case ConfigKind::kNull:
      return "null";
    case ConfigKind::kScalar:
      return node.quoted ? TextYaml(node.text) : node.text;
    case ConfigKind::kList:
    case ConfigKind::kSection:
      break;
  }
  std::string yaml = is_list ? "[" : "{";
  for (const ConfigNode& child : node.children) {
    if (&child != &node.children.front()) yaml += ", ";
    if (!is_list) yaml += TextYaml(child.key) + ": ";
    yaml += ConfigFlowYaml(child);
  }
  return yaml + (is_list ? "]" : "}");
}

void WriteConfigBlock(const ConfigNode& node, int indent, std::string& out) {
  const std::string margin(static_cast<size_t>(indent), ' ');
  for (const ConfigNode& child : node.children) {
    out += margin + (node.kind == ConfigKind::kList ? "-" : TextYaml(child.key) + ":");
    const bool list_of_sections = child.kind == ConfigKind::kList && !child.children.empty() &&
                                  child.children.front().kind == ConfigKind::kSection;
    if ((child.kind == ConfigKind::kSection && !child.children.empty()) || list_of_sections) {
      out += "\n";
      WriteConfigBlock(child, indent + 2, out);
    } else {
      out += " " + ConfigFlowYaml(child) + "\n";
    }
  }
}

std::string DescribeConfig(const ConfigNode& node) {
  constexpr size_t kShown = 40;
  switch (node.kind) {
    case ConfigKind::kAbsent:
    case ConfigKind::kNull:
      return "nothing";
    case ConfigKind::kList:
      return "a list";
    case ConfigKind::kSection:
      return "a section";
    case ConfigKind::kScalar:
      break;
  }
  std::string shown = node.text.substr(0, kShown);
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  if (node.text.size() > kShown) shown += "...";
  return (node.quoted ? "the text '" : "'") + shown + "'";
}

}  // namespace aah::internal
