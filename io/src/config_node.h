#ifndef AAH_IO_SRC_CONFIG_NODE_H_
#define AAH_IO_SRC_CONFIG_NODE_H_

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "aah/io/config.h"

namespace aah::internal {

// What no config needs, and what could not be read back: more levels of lists and sections, longer
// keys.
inline constexpr size_t kMaxConfigDepth = 32;
inline constexpr size_t kMaxConfigKeyBytes = 200;

// The length of the UTF-8 character that begins with this byte; 1 for a byte that begins none.
inline size_t CharacterBytes(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

// One value of a config. Children live in a list, since readers keep pointers to sections that
// still grow.
struct ConfigNode {
  ConfigKind kind = ConfigKind::kNull;
  std::string key;      // its name in the section above; empty for items of lists
  std::string text;     // of a scalar
  bool quoted = false;  // then the text is never a number, a bool or null
  std::list<ConfigNode> children;

  std::shared_ptr<const std::string> source;  // a file's name, or "override 'a=1'"
  int line = 0;                               // from 1; 0: the source has none

  bool read = false;               // taken whole: nothing beneath is unknown
  bool entered = false;            // read as a section or a list of them: its keys are checked
  std::vector<std::string> asked;  // the names a reader knows in this section

  ConfigNode* Child(std::string_view name);
  const ConfigNode* Child(std::string_view name) const;
  ConfigNode& ChildOrNew(std::string_view name);
  // "recipe.yaml:12" or "override 'a=1'".
  std::string Location() const;
};

struct ConfigDocument {
  std::string name;
  ConfigNode given;
  ConfigNode resolved;
};

// Parses one YAML document of any kind. `source` names it in messages; lines are recorded only
// where `with_lines` holds.
ConfigNode ParseConfigYaml(std::string_view text, const std::shared_ptr<const std::string>& source,
                           bool with_lines);

// Puts one `key.sub=value` over the tree.
void ApplyConfigOverride(ConfigNode& root, const std::string& override_text);

// Puts `over` over `base`, sections key by key.
void MergeConfig(ConfigNode& base, const ConfigNode& over);

// Forgets what was read and asked.
void ForgetReading(ConfigNode& node);

// YAML of a node: in one line, or as a block of lines indented by `indent` spaces.
std::string ConfigFlowYaml(const ConfigNode& node);
void WriteConfigBlock(const ConfigNode& node, int indent, std::string& out);

// For messages: "the text 'abc'", "a list", "a section", "nothing"; long texts are cut.
std::string DescribeConfig(const ConfigNode& node);

}  // namespace aah::internal

#endif  // AAH_IO_SRC_CONFIG_NODE_H_
