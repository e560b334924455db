#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aah/error.h"
#include "aah/io/config.h"
#include "aah/io/json.h"
#include "config_node.h"

namespace aah::internal {
namespace {

constexpr size_t kMaxBytes = size_t{4} << 20;
constexpr size_t kMaxNodes = 200'000;

// yaml-cpp 0.7 turns the escapes \N and \_ into the bytes 0x85 and 0xa0 alone, as if in Latin-1.
// All else is UTF-8, so that such a byte at the place of a first one is such an escape.
std::string RepairEscapes(const std::string& value) {
  std::string repaired;
  repaired.reserve(value.size());
  for (size_t i = 0; i < value.size(); i += CharacterBytes(value[i])) {
    if ((static_cast<unsigned char>(value[i]) & 0xc0) == 0x80) repaired += '\xc2';
    repaired.append(value, i, CharacterBytes(value[i]));
  }
  return repaired;
}

// The first control character that YAML knows only as an escape; yaml-cpp even takes the byte 4 for
// the end of the text.
size_t FindControl(std::string_view text) {
  const auto is_control = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r';
  };
  return static_cast<size_t>(std::find_if(text.begin(), text.end(), is_control) - text.begin());
}

// Builds our own tree from the parser's events: yaml-cpp's tree would expand aliases, keep
// duplicate keys and forget which scalars had quotes.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(std::shared_ptr<const std::string> source, bool with_lines)
      : source_(std::move(source)), with_lines_(with_lines) {
    root_.source = source_;
  }

  ConfigNode TakeRoot() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    AAH_CHECK(!seen_document_, Place(mark), "expected one YAML document, got a second one");
    seen_document_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    RefuseAnchor(mark, anchor);
    AAH_CHECK(!ExpectsKey(), Place(mark), "expected a key, got nothing");
    NewNode(mark, ConfigKind::kNull);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    ThrowError(ErrorKind::kBadInput, Place(mark), "aliases are not supported, write the value out");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    RefuseAnchor(mark, anchor);
    RefuseTag(mark, tag);
    // An escape makes it; the system would take the text before it for a whole path.
    AAH_CHECK(value.find('\0') == std::string::npos, Place(mark),
              "expected text, got text with a zero byte; remove the \\0");
    if (ExpectsKey()) {
      TakeKey(mark, RepairEscapes(value));
      return;
    }
    ConfigNode& node = NewNode(mark, ConfigKind::kScalar);
    node.text = RepairEscapes(value);
    node.quoted = tag == "!";
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, ConfigKind::kList);
  }
  void OnSequenceEnd() override { open_.pop_back(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, ConfigKind::kSection);
  }
  void OnMapEnd() override { open_.pop_back(); }

  std::string Place(const YAML::Mark& mark) const {
    const int line = LineOf(mark);
    return *source_ + (line > 0 ? ":" + std::to_string(line) : "") + ": ";
  }

 private:
  int LineOf(const YAML::Mark& mark) const {
    return with_lines_ && !mark.is_null() ? mark.line + 1 : 0;
  }

  struct OpenNode {
    ConfigNode* node;
    std::set<std::string> keys;
    bool has_key = false;  // a key was read, its value comes next
    std::string key;
    int key_line = 0;
  };

  bool ExpectsKey() const {
    return !open_.empty() && open_.back().node->kind == ConfigKind::kSection &&
           !open_.back().has_key;
  }

  void TakeKey(const YAML::Mark& mark, const std::string& key) {
    AAH_CHECK(
        !key.empty() && key.size() <= kMaxConfigKeyBytes && key.find('.') == std::string::npos,
        Place(mark), "expected a key of 1 to ", kMaxConfigKeyBytes, " bytes without dots, got '",
        key.substr(0, 40), "'");
    AAH_CHECK(open_.back().keys.insert(key).second, Place(mark), "key '", key,
              "' is given twice in one section, remove one");
    open_.back().key = key;
    open_.back().has_key = true;
    open_.back().key_line = LineOf(mark);
  }

  ConfigNode& NewNode(const YAML::Mark& mark, ConfigKind kind) {
    AAH_CHECK(++node_count_ <= kMaxNodes, Place(mark), "more than ", kMaxNodes,
              " values, which no config needs");
    ConfigNode& node = open_.empty() ? root_ : open_.back().node->children.emplace_back();
    node.line = LineOf(mark);
    if (!open_.empty() && open_.back().has_key) {
      // An empty value has the mark of whatever comes next.
      node.line = open_.back().key_line;
      node.key = std::move(open_.back().key);
      open_.back().has_key = false;
    }
    node.kind = kind;
    node.source = source_;
    return node;
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            ConfigKind kind) {
    RefuseAnchor(mark, anchor);
    RefuseTag(mark, tag);
    AAH_CHECK(!ExpectsKey(), Place(mark), "expected a word as key, got a list or section");
    AAH_CHECK(open_.size() < kMaxConfigDepth, Place(mark), "nested deeper than ", kMaxConfigDepth,
              " levels, which no config needs");
    open_.push_back({.node = &NewNode(mark, kind), .keys = {}, .key = {}});
  }

  void RefuseAnchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    AAH_CHECK(anchor == YAML::NullAnchor, Place(mark),
              "anchors are not supported, write the value out");
  }

  void RefuseTag(const YAML::Mark& mark, const std::string& tag) const {
    AAH_CHECK(tag.empty() || tag == "?" || tag == "!", Place(mark), "the tag ", tag.substr(0, 40),
              " is not supported, remove it");
  }

  std::shared_ptr<const std::string> source_;
  bool with_lines_;
  bool seen_document_ = false;
  size_t node_count_ = 0;
  ConfigNode root_;
  std::vector<OpenNode> open_;
};

}  // namespace

ConfigNode ParseConfigYaml(std::string_view text, const std::shared_ptr<const std::string>& source,
                           bool with_lines) {
  AAH_CHECK(text.size() <= kMaxBytes, *source, ": ", text.size(),
            " bytes, which no config needs; expected at most ", kMaxBytes);
  const size_t null_byte = text.find('\0');
  AAH_CHECK(null_byte == std::string_view::npos, *source, ": byte ", null_byte,
            " is zero: expected YAML text, got a binary file");
  const size_t control = FindControl(text);
  AAH_CHECK(control == text.size(), *source, ": byte ", control, " is the control character ",
            static_cast<int>(text[control]),
            ": expected YAML text; write it as an escape in quotes");
  // Else yaml-cpp would guess at other encodings, and the text could not be saved beside a run.
  AAH_CHECK(IsUtf8(text), *source, ": expected YAML text in UTF-8, got another encoding");
  TreeBuilder builder(source, with_lines);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    ThrowError(ErrorKind::kBadInput, builder.Place(error.mark), "not valid YAML: ", error.msg);
  }
  return builder.TakeRoot();
}

}  // namespace aah::internal
