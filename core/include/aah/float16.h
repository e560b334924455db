#ifndef AAH_FLOAT16_H_
#define AAH_FLOAT16_H_

#include <cstdint>

namespace aah {

// Storage formats only: arithmetic is always fp32. Same bits as torch's and Highway's types.
struct Bfloat16 {
  uint16_t bits;
};

struct Float16 {
  uint16_t bits;
};

// Round to nearest even; NaN stays NaN, overflow becomes infinity.
float ToFloat(Bfloat16 value);
float ToFloat(Float16 value);
Bfloat16 ToBfloat16(float value);
Float16 ToFloat16(float value);

}  // namespace aah

#endif  // AAH_FLOAT16_H_
