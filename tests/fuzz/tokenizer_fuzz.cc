#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "aah/error.h"
#include "aah/text/tokenizer.h"

namespace {

constexpr std::string_view kText =
    "The  beginning, the 123 \u00e9e\u0301 \xf0\x9f\x98\x80\r\n\t don't<eos> <eos>\n";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto tokenizer =
        aah::ParseTokenizerJson({reinterpret_cast<const char*>(data), size}, "input");
    const std::vector<int32_t> ids = tokenizer->Encode(kText);
    for (const int32_t id : ids) {
      if (id < 0 || id >= tokenizer->vocabulary_size()) std::abort();
    }
    tokenizer->Decode(ids);
    tokenizer->end_of_document();
  } catch (const aah::Error&) {
    // What a reader owes to bad input.
  }
  return 0;
}
