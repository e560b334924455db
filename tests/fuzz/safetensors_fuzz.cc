// Any bytes read as a safetensors file: refused with aah::Error, or tensors that lie in the data.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "aah/error.h"
#include "aah/io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const aah::SafetensorsFile file(std::as_bytes(std::span(data, size)), "fuzz");
    size_t total = 0;
    unsigned sum = 0;
    for (const aah::StoredTensor& tensor : file.tensors()) {
      if (&file.Get(tensor.name, tensor.dtype, tensor.shape) != &tensor) std::abort();
      total += tensor.bytes.size();
      for (const std::byte value : tensor.bytes) sum += std::to_integer<unsigned>(value);
    }
    if (total > size || sum > 255 * total) std::abort();
  } catch (const aah::Error&) {
  }
  return 0;
}
