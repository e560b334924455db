#ifndef AAH_CLI_TERMINAL_H_
#define AAH_CLI_TERMINAL_H_

#include <cstdio>
#include <string>
#include <string_view>

namespace aah {

// Whether `stream` is a terminal that understands control sequences.
bool IsTerminal(FILE* stream);

// Whether `stream` is to get colours: a terminal, and NO_COLOR is not set.
bool UsesColour(FILE* stream);

// `text` in bold where `stream` is a terminal and NO_COLOR is not set.
std::string Bold(FILE* stream, std::string_view text);

// The one line at the bottom of a terminal that changes in place, on stderr. Where stderr is no
// terminal it shows nothing: callers print whole lines from time to time instead. Not thread-safe.
class LiveLine {
 public:
  LiveLine() : live_(IsTerminal(stderr)) {}
  ~LiveLine() { Clear(); }
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  bool live() const { return live_; }

  // Replaces the line, cut to the terminal's width.
  void Show(const std::string& text);
  // Prints a line that stays, above the live one.
  void Print(const std::string& text);
  void Clear();

 private:
  bool live_;
  std::string shown_;
};

}  // namespace aah

#endif  // AAH_CLI_TERMINAL_H_
