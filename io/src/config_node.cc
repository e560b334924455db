#include "config_node.h"

#include <algorithm>
#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "aah/error.h"
#include "aah/io/config.h"

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

// True where plain text would be taken for something else than text.
bool IsWordOfYaml(std::string_view text) {
  constexpr std::string_view kWords[] = {"true", "false", "null", "Null", "NULL", "yes", "no"};
  if (std::find(std::begin(kWords), std::end(kWords), text) != std::end(kWords)) return true;
  return (text.front() >= '0' && text.front() <= '9') || text.front() == '+';
}

std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (code < 0x20 || code == 0x7f) {
      quoted += "\\x";
      quoted += kHexDigits[code >> 4];
      quoted += kHexDigits[code & 15];
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string TextYaml(std::string_view text) {
  return IsPlain(text) && !IsWordOfYaml(text) ? std::string(text) : Quote(text);
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
  ConfigNode& target =
      NodeOfOverride(root, std::string_view(override_text).substr(0, equals), *source);
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
