#include "base/config_file.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/os.h"
#include "base/text.h"

namespace talaria {
namespace {

// Null bytes would cut values short for whoever reads them as C text.
bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::none_of(text, [](char c) { return is_blank(c) || c == '\0'; });
}

void parse_line(const std::string& place, std::string_view line, ConfigFiles& files) {
  line = trimmed(line);
  if (line.empty() || line.front() == '#') return;
  const size_t equals = line.find('=');
  const std::string_view name = trimmed(line.substr(0, equals));
  if (equals == std::string_view::npos || !is_name(name) || line.find('\0') != std::string_view::npos) {
    const std::string_view shown = line.substr(0, 80);
    files.complaints.push_back(fmt::format("{}: \"{}\" is no NAME=value and is skipped", place, shown));
    return;
  }
  files.settings.insert_or_assign(std::string(name), Setting{std::string(trimmed(line.substr(equals + 1))), place});
}

// False when there is no such file, or none that can be read.
bool read_into(const std::string& path, ConfigFiles& files) {
  const std::optional<std::string> text = read_file(path);
  if (text) parse_config_text(path, *text, files);
  return text.has_value();
}

}  // namespace

void parse_config_text(const std::string& path, std::string_view text, ConfigFiles& files) {
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    parse_line(fmt::format("{}:{}", path, number), text.substr(0, end), files);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

ConfigFiles read_config_files() {
  ConfigFiles files;
  read_into(system_path("/etc/nccl.conf"), files);
  if (const auto path = environment("NCCL_CONF_FILE"); path && !path->empty()) {
    if (!read_into(*path, files)) files.complaints.push_back(fmt::format("NCCL_CONF_FILE={} cannot be read", *path));
  } else if (const auto home = environment("HOME"); home && !home->empty()) {
    read_into(*home + "/.nccl.conf", files);
  }
  return files;
}

std::optional<Setting> find_setting(const ConfigFiles& files, const char* name) {
  if (auto value = environment(name)) return Setting{std::move(*value), "environment"};
  const auto found = files.settings.find(name);
  return found == files.settings.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace talaria
