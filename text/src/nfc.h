#ifndef AAH_TEXT_SRC_NFC_H_
#define AAH_TEXT_SRC_NFC_H_

#include <string>
#include <string_view>

namespace aah {

// Unicode's canonical composition (UAX 15) of valid UTF-8. Characters newer than the Unicode
// version of the tables in `tokenizers` are left as they are, as it leaves them.
std::string NormalizeNfc(std::string_view text);

}  // namespace aah

#endif  // AAH_TEXT_SRC_NFC_H_
