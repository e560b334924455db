#include "aah/text/utf8.h"

#include <cstdint>
#include <cstring>

#include "aah/error.h"

namespace aah {
namespace {

bool IsContinuation(unsigned char byte) { return (byte & 0xc0U) == 0x80U; }

// The length of the valid character that begins at `position`, 0 where there is none (RFC 3629,
// section 4).
size_t CharacterLength(std::string_view text, size_t position) {
  const auto byte = [&](size_t i) {
    return position + i < text.size() ? static_cast<unsigned char>(text[position + i])
                                      : static_cast<unsigned char>(0);
  };
  const unsigned char lead = byte(0);
  const unsigned char second = byte(1);
  if (lead < 0x80) return 1;
  if (lead < 0xc2) return 0;
  if (lead < 0xe0) return IsContinuation(second) ? 2 : 0;
  if (lead < 0xf0) {
    const unsigned char low = lead == 0xe0 ? 0xa0 : 0x80;
    const unsigned char high = lead == 0xed ? 0x9f : 0xbf;
    return second >= low && second <= high && IsContinuation(byte(2)) ? 3 : 0;
  }
  if (lead > 0xf4) return 0;
  const unsigned char low = lead == 0xf0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xf4 ? 0x8f : 0xbf;
  const bool valid =
      second >= low && second <= high && IsContinuation(byte(2)) && IsContinuation(byte(3));
  return valid ? 4 : 0;
}

bool EightAscii(const char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return (word & 0x8080808080808080U) == 0;
}

}  // namespace

size_t FindInvalidUtf8(std::string_view text) {
  size_t position = 0;
  while (position < text.size()) {
    if (text.size() - position >= 8 && EightAscii(text.data() + position)) {
      position += 8;
      continue;
    }
    const size_t length = CharacterLength(text, position);
    if (length == 0) return position;
    position += length;
  }
  return position;
}

void CheckUtf8(std::string_view text, std::string_view origin) {
  const size_t invalid = FindInvalidUtf8(text);
  AAH_CHECK(invalid == text.size(), origin, ": expected UTF-8 text, byte ", invalid,
            " does not continue it; convert the text (for instance with iconv)");
}

size_t CompleteUtf8Prefix(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (IsContinuation(byte)) continue;
    const size_t announced = byte >= 0xf0 ? 4U : byte >= 0xe0 ? 3U : byte >= 0xc0 ? 2U : 1U;
    return announced > back ? text.size() - back : text.size();
  }
  return text.size();
}

}  // namespace aah
