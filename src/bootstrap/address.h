// Socket addresses as text and back.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "base/status.h"
#include "bootstrap/unique_id.h"

namespace talaria {

// Bytes of the sockaddr in use; 0 for a family that is not an internet one.
socklen_t length_of(const SocketAddress& address);
uint16_t port_of(const SocketAddress& address);
void set_port(SocketAddress& address, uint16_t port);
// Interface index of an IPv6 link-local address; 0 for every other address.
uint32_t link_local_scope(const SocketAddress& address);
bool is_link_local(const SocketAddress& address);

// "192.0.2.1:5000" or "[fe80::1%eth0]:5000".
std::string to_text(const SocketAddress& address);
// The same without the port: "192.0.2.1", "fe80::1%eth0".
std::string host_text(const SocketAddress& address);

// The parts of "host:port" and "[v6]:port"; kInvalidArgument naming `text`.
struct Endpoint {
  std::string host;
  uint16_t port;
  bool bracketed;
};
Result<Endpoint> split_endpoint(const std::string& text);
// Reads "host:port", "[v6]:port" or "[v6%interface]:port"; names are resolved. kInvalidArgument naming `text`.
Result<SocketAddress> parse_endpoint(const std::string& text);

}  // namespace talaria
