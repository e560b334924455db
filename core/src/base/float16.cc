#include "aah/float16.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace aah {

float ToFloat(Bfloat16 value) { return std::bit_cast<float>(uint32_t{value.bits} << 16); }

Bfloat16 ToBfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  // A NaN whose payload lies in the dropped half must not round to infinity.
  if (std::isnan(value)) return {static_cast<uint16_t>((bits >> 16) | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)};
}

float ToFloat(Float16 value) {
  const uint32_t sign = uint32_t{value.bits & 0x8000u} << 16;
  const uint32_t exponent = (value.bits >> 10) & 0x1F;
  const uint32_t fraction = value.bits & 0x3FF;
  if (exponent == 0) {  // zero and subnormals: fraction * 2^-24, exact in float
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t wide_exponent = exponent == 0x1F ? 0xFF : exponent + (127 - 15);
  return std::bit_cast<float>(sign | (wide_exponent << 23) | (fraction << 13));
}

Float16 ToFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) {
    return {static_cast<uint16_t>(sign | 0x7E00 | ((magnitude >> 13) & 0x3FF))};
  }
  uint32_t result;
  if (magnitude >= 0x47800000) {  // 65536 and above, infinity
    result = 0x7C00;
  } else if (magnitude < 0x38800000) {  // below 2^-14: counts units of 2^-24
    // Adding 0.5 lines the float's last place up with 2^-24, so the addition rounds as wanted.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    result = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f);
  } else {
    const uint32_t rebased = magnitude - ((127u - 15u) << 23);
    result = (rebased + 0xFFF + ((rebased >> 13) & 1)) >> 13;
  }
  return {static_cast<uint16_t>(sign | result)};
}

}  // namespace aah
