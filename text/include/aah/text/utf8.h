#ifndef AAH_TEXT_UTF8_H_
#define AAH_TEXT_UTF8_H_

#include <cstddef>
#include <string_view>

namespace aah {

// The offset of the first byte that is not part of valid UTF-8 (RFC 3629: no overlong forms, no
// surrogates, nothing above U+10FFFF), or text.size() where all is valid. A character cut off by
// the end counts as invalid from its first byte on.
size_t FindInvalidUtf8(std::string_view text);

// Throws aah::Error, naming `origin` and the offset, unless `text` is valid UTF-8.
void CheckUtf8(std::string_view text, std::string_view origin);

// The length of `text` without a trailing character that is begun but not complete: what a
// streaming printer can show now. At most 3 bytes shorter than the text.
size_t CompleteUtf8Prefix(std::string_view text);

}  // namespace aah

#endif  // AAH_TEXT_UTF8_H_
