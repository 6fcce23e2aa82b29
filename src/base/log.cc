#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "base/config.h"
#include "base/os.h"

namespace talaria {
namespace {

constexpr int kUnread = -1;
constexpr uint32_t kDefaultSubsystems = kLogInit | kLogBootstrap | kLogEnv;

struct SubsystemName {
  std::string_view name;
  uint32_t bit;
};
constexpr SubsystemName kSubsystemNames[] = {
    {"INIT", kLogInit},     {"COLL", kLogColl},   {"P2P", kLogP2p},     {"SHM", kLogShm},
    {"NET", kLogNet},       {"GRAPH", kLogGraph}, {"TUNING", kLogTuning}, {"ENV", kLogEnv},
    {"ALLOC", kLogAlloc},   {"CALL", kLogCall},   {"BOOTSTRAP", kLogBootstrap}, {"REG", kLogReg},
    {"ALL", kLogAll},
};

std::atomic<int> g_level{kUnread};
std::atomic<uint32_t> g_subsystems{0};
std::mutex g_mutex;
FILE* g_file = nullptr;

LogLevel parse_level(std::string_view text) {
  if (text == "VERSION") return LogLevel::kVersion;
  if (text == "WARN") return LogLevel::kWarn;
  if (text == "INFO") return LogLevel::kInfo;
  if (text == "TRACE") return LogLevel::kTrace;
  return LogLevel::kNone;
}

uint32_t parse_subsystems(std::string_view text) {
  if (text.empty()) return kDefaultSubsystems;
  const bool exclude = text.front() == '^';
  if (exclude) text.remove_prefix(1);
  uint32_t bits = 0;
  for (const std::string& word : split(text, ',')) {
    for (const SubsystemName& row : kSubsystemNames) {
      if (word == row.name) bits |= row.bit;
    }
  }
  return exclude ? ~bits : bits;
}

// Expands %h (host name) and %p (process id) in NCCL_DEBUG_FILE.
std::string expand_file_name(const std::string& pattern) {
  std::string name;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '%' && i + 1 < pattern.size() && pattern[i + 1] == 'h') name += host_name(), ++i;
    else if (pattern[i] == '%' && i + 1 < pattern.size() && pattern[i + 1] == 'p') name += std::to_string(getpid()), ++i;
    else name += pattern[i];
  }
  return name;
}

void read_settings() {
  std::lock_guard lock(g_mutex);
  if (g_level.load() != kUnread) return;
  const Config config = read_config();
  g_subsystems.store(parse_subsystems(config.debug_subsys));
  if (!config.debug_file.empty() && g_file == nullptr) g_file = fopen(expand_file_name(config.debug_file).c_str(), "a");
  g_level.store(static_cast<int>(parse_level(config.debug)));
}

}  // namespace

bool log_enabled(LogLevel level, uint32_t subsystem) {
  if (g_level.load(std::memory_order_relaxed) == kUnread) read_settings();
  if (static_cast<int>(level) > g_level.load(std::memory_order_relaxed)) return false;
  return level <= LogLevel::kWarn || (g_subsystems.load(std::memory_order_relaxed) & subsystem) != 0;
}

void log_text(LogLevel level, uint32_t subsystem, const std::string& text) {
  if (!log_enabled(level, subsystem)) return;
  const char* name = level == LogLevel::kWarn ? "WARN" : level == LogLevel::kInfo ? "INFO" : "TRACE";
  const std::string line = level == LogLevel::kVersion
                               ? text + "\n"
                               : fmt::format("{}{}:{}:{} NCCL {} {}\n", level == LogLevel::kWarn ? "\n" : "",
                                             host_name(), getpid(), thread_id(), name, text);
  std::lock_guard lock(g_mutex);
  FILE* out = g_file != nullptr ? g_file : stdout;
  fwrite(line.data(), 1, line.size(), out);
  fflush(out);
}

void log_reset() { g_level.store(kUnread); }

}  // namespace talaria
