#include "base/status.h"

#include <mutex>
#include <utility>

#include "base/log.h"

namespace talaria {
namespace {

std::mutex g_text_mutex;
// Leaked on purpose: calls from static destructors and atexit handlers must still find it.
std::string& last_text() {
  static std::string* text = new std::string;
  return *text;
}

}  // namespace

Status fail_with_text(Code code, std::string text, CodePlace place) {
  log_text(LogLevel::kWarn, kLogAll, text, place);
  constexpr size_t kLongest = 1023;  // what clients keep room for
  if (text.size() > kLongest) text.resize(kLongest);
  restore_error_text(std::move(text));
  return Status(code);
}

void restore_error_text(std::string text) {
  std::lock_guard lock(g_text_mutex);
  last_text() = std::move(text);
}

const char* last_error_text() {
  thread_local std::string copy;
  std::lock_guard lock(g_text_mutex);
  copy = last_text();
  return copy.c_str();
}

const char* error_string(int code) {
  switch (code) {
    case 0: return "no error";
    case 1: return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case 2: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case 3: return "internal error - please report this issue to the NCCL developers";
    case 4: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case 5: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case 6: return "remote process exited or there was a network error";
    case 7: return "NCCL operation in progress";
    case 8: return "timeout";
    default: return "unknown result code";
  }
}

}  // namespace talaria
