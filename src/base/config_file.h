// Configuration files: variables that are not set in the environment. /etc/nccl.conf is read first, then
// $NCCL_CONF_FILE or else ~/.nccl.conf, whose values win.
//
// A line is `NAME=value`, empty, or a comment that starts with `#`; blanks around name and value do not count. Other
// lines are skipped: they are complaints, never errors.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace talaria {

// A value and who set it: "environment", or file:line.
struct Setting {
  std::string value;
  std::string origin;
};

struct ConfigFiles {
  std::map<std::string, Setting, std::less<>> settings;
  std::vector<std::string> complaints;
};

void parse_config_text(const std::string& path, std::string_view text, ConfigFiles& files);

ConfigFiles read_config_files();

// What the environment says of a variable, else the files.
std::optional<Setting> find_setting(const ConfigFiles& files, const char* name);

}  // namespace talaria
