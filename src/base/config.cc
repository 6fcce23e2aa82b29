#include "base/config.h"

#include <cerrno>
#include <cstdlib>

#include "base/os.h"

namespace talaria {
namespace {

const ConfigRow kRows[] = {
    {"NCCL_DEBUG", &Config::debug, "", "VERSION, WARN, INFO or TRACE; unset is silent"},
    {"NCCL_DEBUG_SUBSYS", &Config::debug_subsys, "", "comma list of subsystems shown at INFO; ^ excludes"},
    {"NCCL_DEBUG_FILE", &Config::debug_file, "", "log file, %h host name, %p process id; default is stdout"},
    {"NCCL_DEBUG_TIMESTAMP_FORMAT", &Config::debug_timestamp_format, "[%F %T] ",
     "strftime pattern of the time in log lines; %Nf for N digits of a second"},
    {"NCCL_DEBUG_TIMESTAMP_LEVELS", &Config::debug_timestamp_levels, "WARN",
     "comma list of the levels whose lines have the time, or ALL; ^ excludes"},
    {"NCCL_WARN_ENABLE_DEBUG_INFO", &Config::warn_enable_debug_info, "0", "1 logs INFO lines from the first WARN on"},
    {"NCCL_CONF_FILE", &Config::conf_file, "", "configuration file to read in place of ~/.nccl.conf"},
    {"NCCL_PARAM_DUMP_ALL", &Config::param_dump_all, "0",
     "1 makes ncclParamDumpAll print the variables without effect, too"},
    {"NCCL_SOCKET_IFNAME", &Config::socket_ifname, "", "interfaces for sockets: prefix list, ^ excludes, = exact"},
    {"NCCL_SOCKET_FAMILY", &Config::socket_family, "", "AF_INET or AF_INET6"},
    {"NCCL_COMM_ID", &Config::comm_id, "", "host:port on which rank 0 listens, instead of an exchanged id"},
    {"NCCL_HOSTID", &Config::host_id, "", "overrides the identity of this machine"},
    {"NCCL_SOCKET_RETRY_CNT", &Config::socket_retry_count, "34", "connection attempts before giving up"},
    {"NCCL_SOCKET_RETRY_SLEEP_MSEC", &Config::socket_retry_sleep_msec, "100", "pause between attempts, grows linearly"},
    {"NCCL_COMM_BLOCKING", &Config::comm_blocking, "-1",
     "1 or 0 makes every communicator blocking or non-blocking, whatever its config says; -1 does not"},
    {"NCCL_UID_STAGGER_THRESHOLD", &Config::uid_stagger_threshold, "256",
     "with more ranks per root than this, they come to it one after another"},
    {"NCCL_UID_STAGGER_RATE", &Config::uid_stagger_rate, "7000", "how many of them per second"},
    {"NCCL_ENABLE_VERSION_CHECK", &Config::enable_version_check, "1",
     "0 only warns of a peer with other plans of another version; the bootstrap protocol must always be the same"},
    {"TALARIA_PORT_RANGE", &Config::port_range, "",
     "first-last: ports at which to listen, one for each rank of a communicator; NCCL_COMM_ID names its own"},
    {"TALARIA_INIT_TIMEOUT", &Config::init_timeout_sec, "0",
     "seconds after which init stops waiting and names the ranks that have not come; 0 waits for ever, and 120 s in "
     "ncclCommShrink"},
    {"TALARIA_TIMEOUT", &Config::timeout_sec, "0",
     "seconds without progress after which an operation of CPU ranks fails and logs what is pending; 0 waits for ever"},
    {"NCCL_CHECK_MODE", &Config::check_mode, "",
     "DEBUG_GLOBAL compares collectives of CPU ranks with those of the other ranks first; slow", Agreed::kEqual},
    {"NCCL_SHM_DISABLE", &Config::shm_disable, "0", "1: CPU ranks of other processes are reached over TCP only"},
    {"NCCL_SOCKET_NTHREADS", &Config::socket_nthreads, "1",
     "threads that serve the sockets of a CPU rank, the calling one included, at most 16"},
    {"NCCL_NSOCKS_PERTHREAD", &Config::nsocks_per_thread, "1",
     "sockets that each of them serves for a pair of ranks; at most 64 sockets in all"},
    {"NCCL_SOCKET_SNDBUF", &Config::socket_sndbuf, "0", "bytes in a data socket's send buffer; 0: the system decides"},
    {"NCCL_SOCKET_RCVBUF", &Config::socket_rcvbuf, "0", "the same for the receive buffer"},
    {"TALARIA_LINK_TIMEOUT", &Config::link_timeout_sec, "30",
     "seconds without an answer after which a host that is reached over TCP counts as lost"},
    {"NCCL_MULTI_RANK_GPU_ENABLE", &Config::multi_rank_gpu_enable, "0", "1 allows several ranks on one GPU"},
    {"NCCL_MAX_CTAS", &Config::max_ctas, "0", "most blocks of a rank per kernel; 0 leaves it to the library",
     Agreed::kLeast},
    {"NCCL_MIN_CTAS", &Config::min_ctas, "0", "fewest blocks asked for; met as far as NCCL_MAX_CTAS and the GPU allow",
     Agreed::kMost},
    {"NCCL_ALGO", &Config::algorithms, "",
     "algorithms to choose from: a list of ring, tree, one_shot, two_shot, pairwise and NCCL's names, ^ excludes; "
     "list;function:list;... for single functions",
     Agreed::kEqual},
    {"NCCL_PROTO", &Config::protocols, "",
     "protocols to choose from, in the same form: LL or packet, LL128, Simple or bulk", Agreed::kEqual},
    {"NCCL_GRAPH_MIXING_SUPPORT", &Config::graph_mixing_support, "1",
     "1 orders replays of a graph with eager calls and other graphs of the same communicator"},
    {"TALARIA_DEVICE", &Config::device, "", "host runs every rank on the CPU even where GPUs are visible"},
    {"TALARIA_FUSED", &Config::fused, "1", "0 interprets every plan on GPUs instead of using hand-fused kernel paths"},
    {"TALARIA_CROSS_MEMORY", &Config::cross_memory, "1",
     "0 on any CPU rank: large data goes through shared memory, not straight between the buffers of two processes"},
    {"TALARIA_FAULT", &Config::fault, "",
     "test hook: flip inverts one bit of every result of rank 0, stage denies direct access to odd CPU ranks,"
     " version claims other plans than the other ranks have"},
};

}  // namespace

std::span<const ConfigRow> config_rows() { return kRows; }

const ConfigRow* find_config_row(std::string_view name) {
  for (const ConfigRow& row : kRows) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

std::optional<int64_t> parse_number(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const int64_t value = strtoll(text.c_str(), &end, 0);
  if (errno == 0 && end != text.c_str() && *end == '\0') return value;
  return std::nullopt;
}

Config read_config() { return read_config(read_config_files()); }

Config read_config(const ConfigFiles& files) {
  Config config{};
  for (const ConfigRow& row : kRows) {
    const std::optional<Setting> setting = find_setting(files, row.name);
    const std::string text = setting ? setting->value : row.default_text;
    if (const auto* field = std::get_if<std::string Config::*>(&row.field)) config.*(*field) = text;
    else config.*std::get<int64_t Config::*>(row.field) =
        parse_number(text).value_or(parse_number(row.default_text).value_or(0));
  }
  return config;
}

std::string text_of(const Config& config, const ConfigRow& row) {
  if (const auto* field = std::get_if<std::string Config::*>(&row.field)) return config.*(*field);
  return std::to_string(config.*std::get<int64_t Config::*>(row.field));
}

}  // namespace talaria
