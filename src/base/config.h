// Environment variables: one table of rows; parsing, the parameter API and docs/environment.md come from it.
//
// A value is the environment's, else the one in a configuration file (base/config_file.h), else the default. Values are
// read when read_config() is called (at communicator init), never at library load. Nothing here prints anything:
// base/config_report.h tells what is wrong with the variables.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/config_file.h"

namespace talaria {

struct Config {
  std::string debug, debug_subsys, debug_file, debug_timestamp_format, debug_timestamp_levels;
  int64_t warn_enable_debug_info;
  std::string conf_file;
  int64_t param_dump_all;
  std::string socket_ifname, socket_family, comm_id, host_id, port_range;
  int64_t socket_retry_count, socket_retry_sleep_msec, uid_stagger_threshold, uid_stagger_rate;
  int64_t init_timeout_sec, timeout_sec, enable_version_check, comm_blocking;
  std::string check_mode;
  int64_t shm_disable, socket_nthreads, nsocks_per_thread, socket_sndbuf, socket_rcvbuf, link_timeout_sec;
  int64_t multi_rank_gpu_enable, max_ctas, min_ctas, graph_mixing_support, fused, cross_memory;
  std::string algorithms, protocols;
  std::string device, fault;
};

// What the ranks of a communicator do about a variable: nothing, refuse different values, or take the least or most.
enum class Agreed : uint8_t { kNo, kEqual, kLeast, kMost };

// One environment variable. `field` says where its value lands and, by its type, how it is parsed.
struct ConfigRow {
  const char* name;
  std::variant<std::string Config::*, int64_t Config::*> field;
  const char* default_text;
  const char* help;
  Agreed agreed = Agreed::kNo;
};

std::span<const ConfigRow> config_rows();

// The row of a variable; null when there is none.
const ConfigRow* find_config_row(std::string_view name);

// The values as they are now. A number that does not parse counts as unset.
Config read_config();
// The same for given files, as read_config_files() returns them.
Config read_config(const ConfigFiles& files);

// A whole number as strtoll reads it with base 0; nothing for anything else.
std::optional<int64_t> parse_number(const std::string& text);

// The value that `row` has in `config`.
std::string text_of(const Config& config, const ConfigRow& row);

}  // namespace talaria
