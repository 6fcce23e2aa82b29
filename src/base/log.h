// The logger: silent unless NCCL_DEBUG asks. One of the few pieces of process-wide state; thread-safe.
//
// Levels and subsystems are NCCL's. Formatting happens only when the line will be written.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>

namespace talaria {

enum class LogLevel : int { kNone = 0, kVersion = 1, kWarn = 2, kInfo = 3, kTrace = 4 };

// Bits of NCCL_DEBUG_SUBSYS.
enum LogSubsystem : uint32_t {
  kLogInit = 1u << 0,
  kLogColl = 1u << 1,
  kLogP2p = 1u << 2,
  kLogShm = 1u << 3,
  kLogNet = 1u << 4,
  kLogGraph = 1u << 5,
  kLogTuning = 1u << 6,
  kLogEnv = 1u << 7,
  kLogAlloc = 1u << 8,
  kLogCall = 1u << 9,
  kLogBootstrap = 1u << 10,
  kLogReg = 1u << 11,
  kLogAll = ~0u,
};

// True when a line of this level and subsystem would be written. Cheap: two loads.
bool log_enabled(LogLevel level, uint32_t subsystem);

// Writes one line with NCCL's prefix (host:pid:tid NCCL LEVEL).
void log_text(LogLevel level, uint32_t subsystem, const std::string& text);

template <typename... Args>
void log_info(uint32_t subsystem, fmt::format_string<Args...> format, Args&&... args) {
  if (!log_enabled(LogLevel::kInfo, subsystem)) return;
  log_text(LogLevel::kInfo, subsystem, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
void log_warn(fmt::format_string<Args...> format, Args&&... args) {
  if (!log_enabled(LogLevel::kWarn, kLogAll)) return;
  log_text(LogLevel::kWarn, kLogAll, fmt::format(format, std::forward<Args>(args)...));
}

// Forgets what was read from the environment, so that the next line reads NCCL_DEBUG again (ncclResetDebugInit).
void log_reset();

}  // namespace talaria
