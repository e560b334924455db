#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace aah {
namespace {

size_t TerminalWidth() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

bool IsTerminal(FILE* stream) {
  const char* term = std::getenv("TERM");
  const bool dumb = term != nullptr && std::string_view(term) == "dumb";
  return isatty(fileno(stream)) == 1 && !dumb;
}

bool UsesColour(FILE* stream) {
  const char* no_colour = std::getenv("NO_COLOR");
  const bool plain = no_colour != nullptr && no_colour[0] != '\0';
  return !plain && IsTerminal(stream);
}

std::string Bold(FILE* stream, std::string_view text) {
  if (!UsesColour(stream)) return std::string(text);
  return "\x1b[1m" + std::string(text) + "\x1b[0m";
}

void LiveLine::Show(const std::string& text) {
  if (!live_) return;
  shown_ = text.substr(0, TerminalWidth() - 1);
  std::fprintf(stderr, "\r%s\x1b[K", shown_.c_str());
  std::fflush(stderr);
}

void LiveLine::Print(const std::string& text) {
  const std::string shown = shown_;
  Clear();
  std::fprintf(stderr, "%s\n", text.c_str());
  if (!shown.empty()) Show(shown);
}

void LiveLine::Clear() {
  if (shown_.empty()) return;
  std::fprintf(stderr, "\r\x1b[K");
  std::fflush(stderr);
  shown_.clear();
}

}  // namespace aah
