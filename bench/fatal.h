// How a benchmark program ends when it cannot go on: one line that says why, then the process is gone.
#pragma once

#include <fmt/core.h>
#include <nccl.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>

namespace talaria::bench {

inline constexpr int kExitWrong = 1;    // wrong results, or a call failed
inline constexpr int kExitUsage = 2;    // the options make no sense
inline constexpr int kExitTimeout = 3;  // --timeout has passed

// Other threads may be anywhere inside the library, so nothing is torn down.
[[noreturn]] inline void end_process(int exit_code, const std::string& text) {
  std::fflush(stdout);
  const std::string line = fmt::format("# Error (pid {}): {}\n", getpid(), text);
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
  _exit(exit_code);
}

template <typename... Args>
[[noreturn]] void fatal(fmt::format_string<Args...> format, Args&&... args) {
  end_process(kExitWrong, fmt::format(format, std::forward<Args>(args)...));
}

// Ends the process unless `result` is success. `what` names the call.
inline void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  fatal("{} failed: {} ({})", what, ncclGetErrorString(result), ncclGetLastError(nullptr));
}

}  // namespace talaria::bench
