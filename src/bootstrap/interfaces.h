// Which network interface the sockets of this process use: NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "bootstrap/unique_id.h"

namespace talaria {

// One address of one interface; an interface with several addresses appears once for each.
struct Interface {
  std::string name;
  SocketAddress address;  // port 0
  bool loopback;
  bool tunnel;
};

// Interfaces that are up, in the system's order.
std::vector<Interface> list_interfaces();

// Does `name` pass NCCL_SOCKET_IFNAME = `pattern`? "eth,ib" are prefixes, "=eth0" exact names, a leading ^ excludes.
bool passes_filter(const std::string& name, const std::string& pattern);

// The best interface that `config` allows: ordinary before link-local before tunnels; without NCCL_SOCKET_IFNAME,
// container bridges and loopback only when nothing else is there. The error lists what was found.
Result<Interface> choose_interface(std::span<const Interface> found, const Config& config);

}  // namespace talaria
