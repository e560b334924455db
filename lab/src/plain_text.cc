#include "aah/lab/plain_text.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace aah {

std::string PlainText(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  std::string plain;
  plain.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const bool ascii_control = byte(i) < 0x20 || byte(i) == 0x7f;
    const bool c1_control =
        byte(i) == 0xc2 && i + 1 < text.size() && byte(i + 1) >= 0x80 && byte(i + 1) <= 0x9f;
    plain += ascii_control || c1_control ? ' ' : text[i];
    if (c1_control) ++i;
  }
  return plain;
}

}  // namespace aah
