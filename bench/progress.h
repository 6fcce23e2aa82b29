// Progress: one line on a terminal that says what runs now. Nothing where standard error is no terminal.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

namespace talaria::bench {

class Progress {
 public:
  ~Progress() { clear(); }
  void show(const std::string& text) {
    if (!terminal_) return;
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
    std::fflush(stderr);
    shown_ = true;
  }
  // Before anything else is printed: standard output may be the same terminal.
  void clear() {
    if (!shown_) return;
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
    shown_ = false;
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
};

}  // namespace talaria::bench
