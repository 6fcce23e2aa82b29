#include "base/log.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <ctime>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/config.h"
#include "base/os.h"
#include "base/text.h"

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
std::atomic<bool> g_info_after_warn{false};
// When to write the time and how; replaced as a whole and never freed, because another thread may be reading it.
struct TimeStamps {
  std::string format;
  uint32_t levels;  // bit: LogLevel
};
std::atomic<const TimeStamps*> g_time_stamps{nullptr};
thread_local int t_device = -1;

// Leaked on purpose, like everything that calls from static destructors must still find.
std::set<std::string>& said() {
  static std::set<std::string>* texts = new std::set<std::string>;
  return *texts;
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

uint32_t parse_levels(std::string_view text) {
  const bool exclude = text.starts_with('^');
  if (exclude) text.remove_prefix(1);
  uint32_t bits = 0;
  for (const std::string& word : split(text, ',')) {
    if (equal_ignoring_case(word, "ALL")) bits = ~0u;
    else bits |= 1u << static_cast<int>(parse_level(word));
  }
  return exclude ? ~bits : bits;
}

const TimeStamps* keep(TimeStamps stamps) {
  static std::deque<TimeStamps>* all = new std::deque<TimeStamps>;
  for (const TimeStamps& known : *all) {
    if (known.format == stamps.format && known.levels == stamps.levels) return &known;
  }
  return &all->emplace_back(std::move(stamps));
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
  g_info_after_warn.store(config.warn_enable_debug_info != 0);
  g_time_stamps.store(keep({config.debug_timestamp_format, parse_levels(config.debug_timestamp_levels)}));
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

// `format` with each %Nf replaced by the first N digits of the second's fraction.
std::string with_fraction(const std::string& format, int64_t nanoseconds) {
  const std::string digits = fmt::format("{:09}", nanoseconds);
  std::string result;
  for (size_t i = 0; i < format.size(); ++i) {
    const bool fraction = format[i] == '%' && i + 2 < format.size() && format[i + 1] >= '1' && format[i + 1] <= '9' &&
                          format[i + 2] == 'f';
    if (fraction) {
      result += digits.substr(0, static_cast<size_t>(format[i + 1] - '0'));
      i += 2;
    } else {
      result += format[i];
      if (format[i] == '%' && i + 1 < format.size()) result += format[++i];
    }
  }
  return result;
}

std::string time_stamp(const std::string& format) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  localtime_r(&now.tv_sec, &parts);
  char text[256];
  return std::string(text, strftime(text, sizeof(text), with_fraction(format, now.tv_nsec).c_str(), &parts));
}

// Paths differ from one build machine to the next; what follows the source folder does not.
std::string_view short_path(std::string_view file) {
  const size_t folder = file.rfind("src/");
  return folder == std::string_view::npos ? file.substr(file.rfind('/') + 1) : file.substr(folder + 4);
}

std::string format_line(LogLevel level, const std::string& text, CodePlace place) {
  if (level == LogLevel::kVersion) return text + "\n";
  const bool warns = level == LogLevel::kWarn;
  std::string line = warns ? "\n" : "";
  const TimeStamps* stamps = g_time_stamps.load();
  if (stamps != nullptr && (stamps->levels >> static_cast<int>(level) & 1) != 0) line += time_stamp(stamps->format);
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
  if (level == LogLevel::kWarn && g_info_after_warn.load()) {
    int warn = static_cast<int>(LogLevel::kWarn);
    g_level.compare_exchange_strong(warn, static_cast<int>(LogLevel::kInfo));
  }
}

void log_once(LogLevel level, uint32_t subsystem, const std::string& text) {
  if (!log_enabled(level, subsystem)) return;
  {
    std::lock_guard lock(g_mutex);
    if (!said().insert(text).second) return;
  }
  log_text(level, subsystem, text);
}

void log_set_device(int device) { t_device = device; }

void log_reset() {
  std::lock_guard lock(g_mutex);
  said().clear();
  g_level.store(kUnread);
}

}  // namespace talaria
