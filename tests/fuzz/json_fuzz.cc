// Any text read as JSON: refused with aah::Error, or a value that dumps and parses to itself.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "aah/error.h"
#include "aah/io/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const aah::Json value = aah::ParseJson(text, "fuzz");
    (void)aah::DescribeJson(value);
    if (aah::ParseJson(value.dump(), "dump") != value) std::abort();
  } catch (const aah::Error&) {
  }
  return 0;
}
