#include "byte_level.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace aah {
namespace {

constexpr bool StandsForItself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

// All characters lie below U+0144: 188 bytes stand for themselves, 68 follow U+0100.
constexpr size_t kCharacterEnd = 0x144;

struct Table {
  std::array<uint16_t, 256> character_of_byte{};
  std::array<int16_t, kCharacterEnd> byte_of_character{};
};

constexpr Table MakeTable() {
  Table table;
  table.byte_of_character.fill(-1);
  uint16_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const uint16_t character = StandsForItself(byte) ? static_cast<uint16_t>(byte) : next++;
    table.character_of_byte[byte] = character;
    table.byte_of_character[character] = static_cast<int16_t>(byte);
  }
  return table;
}

constexpr Table kTable = MakeTable();

}  // namespace

std::string BytesToByteLevel(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    const uint16_t character = kTable.character_of_byte[static_cast<unsigned char>(byte)];
    if (character < 0x80) {
      text += static_cast<char>(character);
    } else {
      text += static_cast<char>(0xc0 | character >> 6);
      text += static_cast<char>(0x80 | (character & 0x3f));
    }
  }
  return text;
}

std::optional<std::string> ByteLevelToBytes(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    uint32_t character = static_cast<unsigned char>(text[i]);
    if (character >= 0x80) {
      // Every character of the table takes at most two bytes.
      if (character < 0xc2 || character >= 0xe0 || ++i == text.size()) return std::nullopt;
      const uint32_t second = static_cast<unsigned char>(text[i]);
      if ((second & 0xc0U) != 0x80U) return std::nullopt;
      character = (character & 0x1fU) << 6U | (second & 0x3fU);
    }
    if (character >= kCharacterEnd || kTable.byte_of_character[character] < 0) return std::nullopt;
    bytes += static_cast<char>(kTable.byte_of_character[character]);
  }
  return bytes;
}

}  // namespace aah
