#ifndef AAH_LAB_PLAIN_TEXT_H_
#define AAH_LAB_PLAIN_TEXT_H_

#include <string>
#include <string_view>

namespace aah {

// `text` on one line that cannot steer a terminal: a space for every control character, be it ASCII
// or one of U+0080 to U+009F in UTF-8. For what files and arguments hold.
std::string PlainText(std::string_view text);

}  // namespace aah

#endif  // AAH_LAB_PLAIN_TEXT_H_
