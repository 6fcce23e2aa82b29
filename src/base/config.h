// Environment variables: one table of rows; parsing, the dump and docs/environment.md come from it.
//
// Values are read when read_config() is called (at communicator init), never at library load.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>

namespace talaria {

struct Config {
  std::string debug, debug_subsys, debug_file;
  std::string socket_ifname, socket_family, comm_id, host_id, port_range;
  int64_t socket_retry_count, socket_retry_sleep_msec, uid_stagger_threshold, uid_stagger_rate;
  int64_t init_timeout_sec, enable_version_check;
  int64_t multi_rank_gpu_enable, max_ctas, min_ctas, graph_mixing_support, fused;
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

// The environment as it is now. A number that does not parse counts as unset.
Config read_config();

// The value that `row` has in `config`.
std::string text_of(const Config& config, const ConfigRow& row);

}  // namespace talaria
