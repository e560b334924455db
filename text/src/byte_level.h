#ifndef AAH_TEXT_SRC_BYTE_LEVEL_H_
#define AAH_TEXT_SRC_BYTE_LEVEL_H_

#include <optional>
#include <string>
#include <string_view>

namespace aah {

// GPT-2's way of writing bytes as printable characters in vocabularies: '!'..'~', U+00A1..U+00AC
// and U+00AE..U+00FF stand for themselves, the other bytes for U+0100 onwards, in order.

std::string BytesToByteLevel(std::string_view bytes);

// Nothing where a character stands for no byte, or where the text is not UTF-8.
std::optional<std::string> ByteLevelToBytes(std::string_view text);

}  // namespace aah

#endif  // AAH_TEXT_SRC_BYTE_LEVEL_H_
