#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "aah/error.h"
#include "aah/text/utf8.h"
#include "text/src/pattern.h"

// The input is an expression, a NUL, and a text to cut.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view expression = input.substr(0, input.find('\0'));
  if (aah::FindInvalidUtf8(input) != input.size()) return 0;
  try {
    const aah::Pattern pattern = aah::Pattern::FromRegex(expression, "input");
    aah::Pattern::Matcher matcher(pattern);
    std::string together;
    matcher.ForEachPiece(input, [&](std::string_view piece, bool) {
      if (piece.empty()) std::abort();
      together += piece;
    });
    if (together != input) std::abort();
  } catch (const aah::Error&) {
    // What a reader owes to bad input.
  }
  return 0;
}
