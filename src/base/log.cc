#include "base/log.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <string>
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
// Names of parts that this library does not have (PROXY, NVLS, ...) are accepted and select nothing.
constexpr SubsystemName kSubsystemNames[] = {
    {"INIT", kLogInit},     {"COLL", kLogColl},   {"P2P", kLogP2p},     {"SHM", kLogShm},
    {"NET", kLogNet},       {"GRAPH", kLogGraph}, {"TUNING", kLogTuning}, {"ENV", kLogEnv},
    {"ALLOC", kLogAlloc},   {"CALL", kLogCall},   {"BOOTSTRAP", kLogBootstrap}, {"REG", kLogReg},
    {"ALL", kLogAll},
};

std::atomic<int> g_level{kUnread};
std::atomic<uint32_t> g_subsystems{0};
std::mutex g_mutex;
std::atomic<FILE*> g_file{nullptr};  // null: stdout
thread_local int t_device = -1;

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return toupper(x) == toupper(y); });
}

LogLevel parse_level(std::string_view text) {
  if (equal_ignoring_case(text, "VERSION")) return LogLevel::kVersion;
  if (equal_ignoring_case(text, "WARN")) return LogLevel::kWarn;
  if (equal_ignoring_case(text, "INFO")) return LogLevel::kInfo;
  if (equal_ignoring_case(text, "TRACE")) return LogLevel::kTrace;
  return LogLevel::kNone;
}

uint32_t parse_subsystems(std::string_view text) {
  if (text.empty()) return kDefaultSubsystems;
  const bool exclude = text.front() == '^';
  if (exclude) text.remove_prefix(1);
  uint32_t bits = 0;
  for (const std::string& word : split(text, ',')) {
    for (const SubsystemName& row : kSubsystemNames) {
      if (equal_ignoring_case(word, row.name)) bits |= row.bit;
    }
  }
  return exclude ? ~bits : bits;
}

// The host's name up to its first dot, as NCCL's log has it.
std::string_view short_host_name() {
  const std::string_view name = host_name();
  return name.substr(0, name.find('.'));
}

// Expands %h (host name), %p (process id) and %% in NCCL_DEBUG_FILE.
std::string expand_file_name(std::string_view pattern) {
  std::string name;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char directive = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (directive == 'h') name += short_host_name();
    else if (directive == 'p') name += std::to_string(getpid());
    else if (directive == '%') name += '%';
    else name += pattern[i];
    if (directive == 'h' || directive == 'p' || directive == '%') ++i;
  }
  return name;
}

void read_settings() {
  std::lock_guard lock(g_mutex);
  if (g_level.load() != kUnread) return;
  const Config config = read_config();
  const LogLevel level = parse_level(config.debug);
  g_subsystems.store(parse_subsystems(config.debug_subsys));
  // Appended to, because several processes may share a name without %p. A file that cannot be opened means stdout.
  FILE* file = nullptr;
  if (level != LogLevel::kNone && !config.debug_file.empty()) {
    file = fopen(expand_file_name(config.debug_file).c_str(), "ae");
  }
  g_file.store(file);
  g_level.store(static_cast<int>(level));
}

const char* level_name(LogLevel level) {
  return level == LogLevel::kWarn ? "WARN" : level == LogLevel::kInfo ? "INFO" : "TRACE";
}

std::string local_time() {
  const time_t now = time(nullptr);
  tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  return std::string(text, strftime(text, sizeof(text), "%F %T", &parts));
}

// Paths differ from one build machine to the next; what follows the source folder does not.
std::string_view short_path(std::string_view file) {
  const size_t folder = file.rfind("src/");
  return folder == std::string_view::npos ? file.substr(file.rfind('/') + 1) : file.substr(folder + 4);
}

std::string format_line(LogLevel level, const std::string& text, CodePlace place) {
  if (level == LogLevel::kVersion) return text + "\n";
  const bool warns = level == LogLevel::kWarn;
  std::string line = warns ? fmt::format("\n[{}] ", local_time()) : "";
  line += fmt::format("{}:{}:{} ", short_host_name(), getpid(), thread_id());
  if (t_device >= 0) line += fmt::format("[{}] ", t_device);
  if (warns && place.line != 0) line += fmt::format("{}:{} ", short_path(place.file), place.line);
  return line + fmt::format("NCCL {} {}\n", level_name(level), text);
}

}  // namespace

bool log_enabled(LogLevel level, uint32_t subsystem) {
  if (g_level.load(std::memory_order_acquire) == kUnread) read_settings();
  if (static_cast<int>(level) > g_level.load(std::memory_order_relaxed)) return false;
  return level <= LogLevel::kWarn || (g_subsystems.load(std::memory_order_relaxed) & subsystem) != 0;
}

void log_text(LogLevel level, uint32_t subsystem, const std::string& text, CodePlace place) {
  if (!log_enabled(level, subsystem)) return;
  const std::string line = format_line(level, text, place);
  // No lock of ours here: a child forked meanwhile could never take it, while stdio repairs its own.
  FILE* file = g_file.load();
  FILE* out = file != nullptr ? file : stdout;
  fwrite(line.data(), 1, line.size(), out);
  fflush(out);
}

void log_set_device(int device) { t_device = device; }

void log_reset() { g_level.store(kUnread); }

}  // namespace talaria
