#include "nfc.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/stringpiece.h>
#include <unicode/uniset.h>

#include "aah/error.h"

namespace aah {
namespace {

void CheckStatus(UErrorCode status) {
  if (U_FAILURE(status)) {
    ThrowError(ErrorKind::kMachine, "ICU cannot normalise text: ", u_errorName(status));
  }
}

const icu::Normalizer2& Normalizer() {
  static const icu::FilteredNormalizer2* const normalizer = [] {
    UErrorCode status = U_ZERO_ERROR;
    const icu::Normalizer2* nfc = icu::Normalizer2::getNFCInstance(status);
    CheckStatus(status);
    // The tables of `tokenizers` are those of Unicode 9.
    // Never freed: a filtered normaliser refers to its set and may be used until the very end.
    auto* known = new icu::UnicodeSet(UNICODE_STRING_SIMPLE("[:age=9.0:]"), status);
    CheckStatus(status);
    known->freeze();
    return new icu::FilteredNormalizer2(*nfc, *known);
  }();
  return *normalizer;
}

}  // namespace

std::string NormalizeNfc(std::string_view text) {
  AAH_CHECK(text.size() <= INT32_MAX, "a text of ", text.size(),
            " bytes is too long to normalise; cut it into documents");
  std::string normalized;
  icu::StringByteSink<std::string> sink(&normalized);
  UErrorCode status = U_ZERO_ERROR;
  Normalizer().normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<int32_t>(text.size())),
                             sink, nullptr, status);
  CheckStatus(status);
  return normalized;
}

}  // namespace aah
