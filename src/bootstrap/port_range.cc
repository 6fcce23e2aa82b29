#include "bootstrap/port_range.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/os.h"
#include "bootstrap/address.h"
#include "bootstrap/socket.h"

namespace talaria {
namespace {

// 0 for what is not a port.
uint16_t port_from(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() ? port : 0;
}

}  // namespace

Result<PortRange> parse_port_range(const std::string& text) {
  const std::string_view all = text;
  const size_t dash = all.find('-');
  const uint16_t first = port_from(all.substr(0, dash));
  const uint16_t last = dash == std::string_view::npos ? first : port_from(all.substr(dash + 1));
  if (first != 0 && last >= first) return PortRange{first, last};
  return fail(Code::kInvalidUsage, "TALARIA_PORT_RANGE is '{}': expected first-last, two ports from 1 to 65535", text);
}

Result<UniqueFd> listen_at_free_port(SocketAddress address, const Config& config) {
  UniqueFd listener;
  PortRange range{0, 0};
  if (!config.port_range.empty()) range = TRY(parse_port_range(config.port_range));
  // Many processes of a machine start at once: each begins somewhere else.
  const uint32_t size = uint32_t{range.last} - range.first + 1;
  const auto begin = static_cast<uint32_t>(random_u64() % size);
  int error = EADDRINUSE;
  for (uint32_t i = 0; i < size && error == EADDRINUSE; ++i) {
    set_port(address, static_cast<uint16_t>(range.first + (begin + i) % size));
    error = listen_at(address, listener);
  }
  if (error == 0) return listener;
  if (config.port_range.empty()) {
    return fail(Code::kSystem, "Bootstrap: cannot listen at {}: {}", host_text(address), strerror(error));
  }
  if (error == EADDRINUSE) {
    return fail(Code::kSystem, "Bootstrap: every port of TALARIA_PORT_RANGE={} is in use at {}", config.port_range,
                host_text(address));
  }
  return fail(Code::kSystem, "Bootstrap: cannot listen at {} (TALARIA_PORT_RANGE={}): {}", to_text(address),
              config.port_range, strerror(error));
}

}  // namespace talaria
