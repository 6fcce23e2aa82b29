// The logger: silent unless NCCL_DEBUG asks. One of the few pieces of process-wide state; thread-safe.
//
// Levels and subsystems are NCCL's. Formatting happens only when the line will be written.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <utility>

#include "base/located.h"

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

// Writes one line in NCCL's form: "host:pid:tid [device] NCCL INFO text"; a WARN has an empty line before it and
// file:line in it; VERSION is the bare text. Levels of NCCL_DEBUG_TIMESTAMP_LEVELS begin with the time. One write per
// line, so lines of many processes do not mix.
void log_text(LogLevel level, uint32_t subsystem, const std::string& text, CodePlace place = {});

// The same, once in this process for each text (again after log_reset()).
void log_once(LogLevel level, uint32_t subsystem, const std::string& text);

// The CUDA device that lines of this thread name from now on; -1 for none.
void log_set_device(int device);

template <typename... Args>
void log_info(uint32_t subsystem, fmt::format_string<Args...> format, Args&&... args) {
  if (!log_enabled(LogLevel::kInfo, subsystem)) return;
  log_text(LogLevel::kInfo, subsystem, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
void log_warn(Located<Args...> text, Args&&... args) {
  if (!log_enabled(LogLevel::kWarn, kLogAll)) return;
  log_text(LogLevel::kWarn, kLogAll, fmt::format(text.format, std::forward<Args>(args)...), text.place);
}

// Forgets what was read from the environment, so that the next line reads NCCL_DEBUG again (ncclResetDebugInit).
// A log file given before stays open, because another thread may be writing to it.
void log_reset();

}  // namespace talaria
