#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>

#include "aah/error.h"
#include "pattern.h"
#include "unicode_additions.h"

namespace aah {
namespace {

// \p{Mn} and \p{Mc} alone are left out: a character changed from one to the other.
constexpr auto kCategories = std::to_array<std::string_view>(
    {"L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Me", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd",
     "Ps", "Pe", "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp"});
constexpr auto kScripts = std::to_array<std::string_view>(
    {"Arabic", "Armenian", "Bengali", "Cyrillic", "Devanagari", "Georgian", "Greek", "Han",
     "Hangul", "Hebrew", "Hiragana", "Katakana", "Latin", "Tamil", "Thai"});

// What PCRE2's tables may lack of a property, as it stands in a class.
std::string Additions(std::string_view property) {
  std::string characters;
  for (const UnicodeAddition& addition : kUnicodeAdditions) {
    const bool group = property.size() == 1 && addition.property.size() == 2 &&
                       addition.property.starts_with(property);
    if (group || addition.property == property) characters += addition.characters;
  }
  return characters;
}

bool IsAsciiLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Reads an Oniguruma expression from left to right and writes the PCRE2 one.
class Translator {
 public:
  Translator(std::string_view expression, std::string_view origin)
      : expression_(expression), origin_(origin) {}

  std::string Run() {
    while (!AtEnd()) Next();
    return std::move(out_);
  }

 private:
  [[noreturn]] void Refuse(std::string_view construct, size_t position) const {
    ThrowError(ErrorKind::kBadInput, origin_, ": the pre-tokenizer's pattern uses '", construct,
               "' at byte ", position, ", which is not supported: ", expression_);
  }

  bool AtEnd() const { return position_ == expression_.size(); }
  bool At(std::string_view text) const { return expression_.substr(position_).starts_with(text); }
  char Peek() const { return AtEnd() ? '\0' : expression_[position_]; }

  void Copy(size_t count) {
    out_ += expression_.substr(position_, count);
    position_ += count;
  }

  void Next() {
    switch (Peek()) {
      case '\\':
        Escape();
        Quantifier();
        break;
      case '[':
        Class();
        Quantifier();
        break;
      case '(':
        Group();
        break;
      case ')':
        Copy(1);
        Quantifier();
        break;
      case '|':
        Copy(1);
        break;
      case '.':  // in Ruby's syntax everything but a line feed; in PCRE2 that is a build option
        out_ += "[^\\n]";
        ++position_;
        Quantifier();
        break;
      case '^':
      case '$':
      case '*':
      case '+':
      case '?':
      case '{':
        Refuse(expression_.substr(position_, 1), position_);
      default:
        Character();
        Quantifier();
    }
  }

  // One whole character: a quantifier after it belongs to all its bytes.
  void Character() {
    size_t length = 1;
    while (position_ + length < expression_.size() &&
           (static_cast<unsigned char>(expression_[position_ + length]) & 0xc0U) == 0x80U) {
      ++length;
    }
    Copy(length);
  }

  void Group() {
    for (const std::string_view opening : {"(?:", "(?=", "(?!", "(?>"}) {
      if (At(opening)) return Copy(opening.size());
    }
    if (At("(?i:")) return CaseInsensitiveGroup();
    if (At("(?") || At("(*")) Refuse(expression_.substr(position_, 3), position_);
    Copy(1);
  }

  // Oniguruma also folds across characters ("ss" and sharp s, "st" and its ligature), PCRE2 does
  // not: only what both fold alike is let through.
  void CaseInsensitiveGroup() {
    const size_t begin = position_;
    const size_t end = expression_.find(')', begin);
    if (end == std::string_view::npos) Refuse("(?i:", begin);
    const std::string_view inside = expression_.substr(begin + 4, end - begin - 4);
    for (const char c : inside) {
      const bool plain = IsAsciiLetter(c) || c == '\'' || c == '|' || c == '[' || c == ']';
      if (!plain) Refuse(expression_.substr(begin, end + 1 - begin), begin);
    }
    bool in_class = false;
    for (size_t i = 0; i < inside.size(); ++i) {
      if (inside[i] == '[' && (in_class || inside.substr(i).starts_with("[]"))) Refuse("[", begin);
      if (inside[i] == '[' || inside[i] == ']') in_class = inside[i] == '[';
    }
    std::string lower;
    for (const char c : inside) lower += IsAsciiLetter(c) ? static_cast<char>(c | 0x20) : c;
    for (const std::string_view folded : {"ss", "ff", "fi", "fl", "st"}) {
      // Brackets set letters beside each other that the text has not; those are refused as well.
      if (lower.find(folded) != std::string::npos) {
        Refuse(expression_.substr(begin, end + 1 - begin), begin);
      }
    }
    Copy(end + 1 - begin);
    Quantifier();
  }

  void Quantifier() {
    if (Peek() == '{') return Interval();
    if (Peek() != '*' && Peek() != '+' && Peek() != '?') return;
    Copy(1);
    if (Peek() == '+' || Peek() == '?') Copy(1);  // possessive, lazy: alike in both
    RefuseQuantifier();
  }

  // {n}, {n,}, {n,m}. What may follow means different things: "{n,m}+" repeats in Ruby's syntax and
  // is possessive in PCRE2, "{n}?" makes optional there and lazy here.
  void Interval() {
    const size_t begin = position_;
    size_t end = begin + 1;
    const size_t first_digit = end;
    while (end < expression_.size() && IsDigit(expression_[end])) ++end;
    const size_t lower_end = end;
    const bool has_lower = end > first_digit;
    if (end < expression_.size() && expression_[end] == ',') {
      ++end;
      while (end < expression_.size() && IsDigit(expression_[end])) ++end;
    }
    if (!has_lower || end == expression_.size() || expression_[end] != '}') Refuse("{", begin);
    // Every try that fails goes over as many characters again. Two digits are enough for any
    // tokenizer, leading zeros are not needed.
    const std::string_view lower = expression_.substr(first_digit, lower_end - first_digit);
    if (lower.size() > 2) Refuse(expression_.substr(begin, end + 1 - begin), begin);
    Copy(end + 1 - begin);
    RefuseQuantifier();
  }

  void RefuseQuantifier() const {
    const char c = Peek();
    if (c == '*' || c == '+' || c == '?' || c == '{') {
      Refuse(expression_.substr(position_ - 1, 2), position_ - 1);
    }
  }

  // Returns whether the escape stands for a set of characters, not for one.
  bool Escape() {
    const size_t begin = position_;
    const char kind = begin + 1 < expression_.size() ? expression_[begin + 1] : '\0';
    const auto replace = [&](std::string_view text) {
      out_ += text;
      position_ += 2;
    };
    switch (kind) {
      // PCRE2's \s and \S differ from Unicode's White_Space in U+180E.
      case 's':
        replace("\\p{White_Space}");
        return true;
      case 'S':
        replace("\\P{White_Space}");
        return true;
      case 'd':
      case 'D':
        position_ += 2;
        WriteProperty("Nd", kind == 'D', begin);
        return true;
      case 'v':  // a single character in Ruby's syntax, a set in PCRE2
        replace("\\x0b");
        return false;
      case 'r':
      case 'n':
      case 't':
      case 'f':
        Copy(2);
        return false;
      case 'p':
      case 'P':
        Property(kind == 'P');
        return true;
      case 'u':
        CodePoint(begin + 2, 4, 0);
        return false;
      case 'x':
        HexadecimalEscape();
        return false;
      default:
        break;
    }
    const bool punctuation = std::ispunct(static_cast<unsigned char>(kind)) != 0 || kind == ' ';
    if (!punctuation) Refuse(expression_.substr(begin, 2), begin);
    Copy(2);
    return false;
  }

  void HexadecimalEscape() {
    const size_t begin = position_;
    if (At("\\x{")) {
      const size_t end = expression_.find('}', begin);
      if (end == std::string_view::npos || end - begin - 3 > 6) Refuse("\\x{", begin);
      return CodePoint(begin + 3, end - begin - 3, 1);
    }
    // Two digits are a byte in Oniguruma: the same as a character only in ASCII.
    if (begin + 2 < expression_.size() && expression_[begin + 2] >= '8') Refuse("\\x", begin);
    CodePoint(begin + 2, 2, 0);
  }

  // `count` hexadecimal digits at `first`, followed by `closing` characters.
  void CodePoint(size_t first, size_t count, size_t closing) {
    const std::string_view digits = expression_.substr(std::min(first, expression_.size()), count);
    const bool valid =
        !digits.empty() && digits.size() == count &&
        std::ranges::all_of(digits, [](unsigned char c) { return std::isxdigit(c) != 0; });
    if (!valid) Refuse(expression_.substr(position_, 2), position_);
    out_ += "\\x{";
    out_ += digits;
    out_ += '}';
    position_ = first + count + closing;
  }

  void Property(bool negated) {
    const size_t begin = position_;
    const size_t end = expression_.find('}', begin);
    if (end == std::string_view::npos || begin + 2 >= end || expression_[begin + 2] != '{') {
      Refuse(expression_.substr(begin, 2), begin);
    }
    std::string_view name = expression_.substr(begin + 3, end - begin - 3);
    if (name.starts_with('^')) {
      name.remove_prefix(1);
      negated = !negated;
    }
    const bool category = std::ranges::find(kCategories, name) != kCategories.end();
    const bool script = std::ranges::find(kScripts, name) != kScripts.end();
    if (!category && !script) Refuse(expression_.substr(begin, end + 1 - begin), begin);
    position_ = end + 1;
    WriteProperty(name, negated, begin);
  }

  void WriteProperty(std::string_view name, bool negated, size_t begin) {
    const bool script = std::ranges::find(kScripts, name) != kScripts.end();
    std::string property(script ? "sc:" : "");  // PCRE2 takes a bare name for Script_Extensions
    property += name;
    const std::string additions = Additions(name);
    if (in_class_) {
      // A set less some characters cannot be said inside a class.
      if (negated && !additions.empty()) {
        Refuse(expression_.substr(begin, position_ - begin), begin);
      }
      out_ += (negated ? "\\P{" : "\\p{") + property + "}" + additions;
      return;
    }
    out_ += (negated ? "[^\\p{" : "[\\p{") + property + "}" + additions + "]";
  }

  void Class() {
    const size_t begin = position_;
    in_class_ = true;
    Copy(1);
    if (Peek() == '^') Copy(1);
    if (Peek() == ']') Refuse("[]", begin);
    bool after_set = false;
    bool first = true;
    while (Peek() != ']') {
      if (AtEnd()) Refuse("[", begin);
      if (Peek() == '[') Refuse("[ inside [ ]", position_);
      if (At("&&")) Refuse("&&", position_);
      if (Peek() == '-') {
        Hyphen(first, after_set);
        after_set = false;
      } else if (Peek() == '\\') {
        after_set = Escape();
      } else {
        Character();
        after_set = false;
      }
      first = false;
    }
    Copy(1);
    in_class_ = false;
  }

  // A range between two characters, or a plain hyphen at either end of the class.
  void Hyphen(bool first, bool after_set) {
    const size_t next = position_ + 1;
    const bool last = next < expression_.size() && expression_[next] == ']';
    if (first || last) {
      out_ += "\\-";
      ++position_;
      return;
    }
    const bool set_follows =
        next + 1 < expression_.size() && expression_[next] == '\\' &&
        std::string_view("sSdDpP").find(expression_[next + 1]) != std::string_view::npos;
    if (after_set || set_follows || At("--")) Refuse("-", position_);
    Copy(1);
    // The range's other end, so that "a-b-c" is not read as a range again.
    if (Peek() == '\\') {
      Escape();
    } else if (Peek() == '[' || AtEnd()) {
      Refuse("-", position_ - 1);
    } else {
      Character();
    }
    if (Peek() == '-' && !At("-]")) Refuse("-", position_);
  }

  std::string_view expression_;
  std::string_view origin_;
  size_t position_ = 0;
  bool in_class_ = false;
  std::string out_;
};

}  // namespace

std::string TranslatePattern(std::string_view expression, std::string_view origin) {
  return Translator(expression, origin).Run();
}

}  // namespace aah
