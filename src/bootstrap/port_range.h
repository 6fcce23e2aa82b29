// Listening sockets, at the ports that TALARIA_PORT_RANGE allows.
#pragma once

#include <cstdint>
#include <string>

#include "base/config.h"
#include "base/status.h"
#include "base/unique.h"
#include "bootstrap/unique_id.h"

namespace talaria {

struct PortRange {
  uint16_t first, last;
};

// Reads "first-last" or a single port. kInvalidUsage naming the variable and `text`.
Result<PortRange> parse_port_range(const std::string& text);

// Listens at `address` at a free port, inside TALARIA_PORT_RANGE if that is set. The error names the address and the
// range.
Result<UniqueFd> listen_at_free_port(SocketAddress address, const Config& config);

}  // namespace talaria
