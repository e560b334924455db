#include "train/tensorboard.h"

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace aah {
namespace {

constexpr std::array<uint32_t, 256> MakeCrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value & 1U) != 0 ? (value >> 1U) ^ 0x82f63b78U : value >> 1U;
    }
    table[byte] = value;
  }
  return table;
}

template <typename Integer>
void AppendLittleEndian(Integer value, std::string& bytes) {
  for (size_t i = 0; i < sizeof(value); ++i) {
    bytes.push_back(static_cast<char>((value >> (8 * i)) & 0xffU));
  }
}

void AppendVarint(uint64_t value, std::string& bytes) {
  for (; value >= 0x80; value >>= 7U) bytes.push_back(static_cast<char>(value | 0x80U));
  bytes.push_back(static_cast<char>(value));
}

// Protocol buffer fields by wire type: 0 varint, 1 eight bytes, 2 length-delimited, 5 four bytes.
void AppendKey(uint32_t field, uint32_t wire_type, std::string& bytes) {
  AppendVarint(field << 3U | wire_type, bytes);
}
void AppendDouble(uint32_t field, double value, std::string& bytes) {
  AppendKey(field, 1, bytes);
  AppendLittleEndian(std::bit_cast<uint64_t>(value), bytes);
}
void AppendString(uint32_t field, std::string_view value, std::string& bytes) {
  AppendKey(field, 2, bytes);
  AppendVarint(value.size(), bytes);
  bytes.append(value);
}

uint32_t MaskedCrc(std::string_view bytes) { return std::rotr(Crc32c(bytes), 15) + 0xa282ead8U; }

std::string Frame(const std::string& event) {
  std::string record;
  AppendLittleEndian<uint64_t>(event.size(), record);
  AppendLittleEndian(MaskedCrc(record), record);
  record += event;
  AppendLittleEndian(MaskedCrc(event), record);
  return record;
}

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = MakeCrcTable();
  uint32_t crc = 0xffffffffU;
  for (const char byte : bytes) {
    crc = (crc >> 8U) ^ kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xffU];
  }
  return ~crc;
}

std::string TensorBoardHeader(double wall_time) {
  std::string event;
  AppendDouble(1, wall_time, event);
  AppendString(3, "brain.Event:2", event);
  return Frame(event);
}

std::string TensorBoardScalar(double wall_time, int64_t step, std::string_view tag, float value) {
  std::string scalar;
  AppendString(1, tag, scalar);
  AppendKey(2, 5, scalar);
  AppendLittleEndian(std::bit_cast<uint32_t>(value), scalar);
  std::string summary;
  AppendString(1, scalar, summary);
  std::string event;
  AppendDouble(1, wall_time, event);
  AppendKey(2, 0, event);
  AppendVarint(static_cast<uint64_t>(step), event);
  AppendString(5, summary, event);
  return Frame(event);
}

}  // namespace aah
