#ifndef AAH_MODEL_SRC_TRAIN_TENSORBOARD_H_
#define AAH_MODEL_SRC_TRAIN_TENSORBOARD_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace aah {

// Records of a TensorBoard events file (TFRecord framing around protocol buffers of type
// tensorflow.Event), as bytes to append to it.

// What an events file begins with.
std::string TensorBoardHeader(double wall_time);

// One scalar at one step. `wall_time` in seconds since 1970.
std::string TensorBoardScalar(double wall_time, int64_t step, std::string_view tag, float value);

// CRC-32C (Castagnoli), as RFC 3720 appendix B.4 defines it.
uint32_t Crc32c(std::string_view bytes);

}  // namespace aah

#endif  // AAH_MODEL_SRC_TRAIN_TENSORBOARD_H_
