#include "base/config_report.h"

#include <set>
#include <string>

#include "base/known_variables.h"
#include "base/log.h"
#include "base/os.h"

namespace talaria {
namespace {

void warn_once(const std::string& text) { log_once(LogLevel::kWarn, kLogEnv, text); }
void inform_once(const std::string& text) { log_once(LogLevel::kInfo, kLogEnv, text); }

bool is_ours(std::string_view name) { return name.starts_with("NCCL_") || name.starts_with("TALARIA_"); }

void report_row(const ConfigRow& row, const Setting& setting) {
  const bool number = std::holds_alternative<int64_t Config::*>(row.field);
  if (number && !parse_number(setting.value)) {
    warn_once(fmt::format("{}={} (set by {}) is not a whole number, decimal or 0x...; the default {} is used", row.name,
                          setting.value, setting.origin, row.default_text));
  } else {
    inform_once(fmt::format("{} set by {} to {}", row.name, setting.origin, setting.value));
  }
}

void report_other(const std::string& name, const Setting& setting) {
  if (is_known_variable(name)) {
    inform_once(fmt::format("{} set by {} to {}, which has no effect in this library", name, setting.origin,
                            setting.value));
    return;
  }
  const std::string nearest = nearest_variable(name);
  const std::string hint = nearest.empty() ? std::string() : fmt::format("; did you mean {}?", nearest);
  warn_once(fmt::format("{} (set by {}) is not a variable of this library{}", name, setting.origin, hint));
}

}  // namespace

Config read_reported_config() {
  const ConfigFiles files = read_config_files();
  if (!log_enabled(LogLevel::kWarn, kLogEnv)) return read_config(files);
  for (const std::string& complaint : files.complaints) warn_once(complaint);
  std::set<std::string> names;
  for (const auto& [name, setting] : files.settings) names.insert(name);
  for (std::string& name : environment_names()) names.insert(std::move(name));
  for (const std::string& name : names) {
    const std::optional<Setting> setting = is_ours(name) ? find_setting(files, name.c_str()) : std::nullopt;
    if (!setting) continue;
    const ConfigRow* row = find_config_row(name);
    if (row != nullptr) report_row(*row, *setting);
    else report_other(name, *setting);
  }
  return read_config(files);
}

}  // namespace talaria
