#include "bootstrap/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>

#include <cstring>
#include <memory>

namespace talaria {

socklen_t length_of(const SocketAddress& address) {
  if (address.any.sa_family == AF_INET) return sizeof(sockaddr_in);
  return address.any.sa_family == AF_INET6 ? sizeof(sockaddr_in6) : 0;
}

uint16_t port_of(const SocketAddress& address) {
  return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

void set_port(SocketAddress& address, uint16_t port) {
  (address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port) = htons(port);
}

bool is_link_local(const SocketAddress& address) {
  return address.any.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&address.v6.sin6_addr);
}

uint32_t link_local_scope(const SocketAddress& address) {
  return is_link_local(address) ? address.v6.sin6_scope_id : 0;
}

std::string host_text(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = "unknown";
  if (address.any.sa_family == AF_INET) inet_ntop(AF_INET, &address.v4.sin_addr, text, sizeof(text));
  if (address.any.sa_family == AF_INET6) inet_ntop(AF_INET6, &address.v6.sin6_addr, text, sizeof(text));
  char interface[IF_NAMESIZE];
  const uint32_t scope = link_local_scope(address);
  if (scope == 0) return text;
  return std::string(text) + "%" + (if_indextoname(scope, interface) != nullptr ? interface : std::to_string(scope));
}

std::string to_text(const SocketAddress& address) {
  const bool v6 = address.any.sa_family == AF_INET6;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", host_text(address), v6 ? "]" : "", port_of(address));
}

Result<Endpoint> split_endpoint(const std::string& text) {
  const size_t colon = text.rfind(':');
  std::string host = colon == std::string::npos ? "" : text.substr(0, colon);
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  const bool numeric = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
  const int number = numeric ? std::stoi(port) : 0;
  if (host.empty() || number < 1 || number > 65535 || (!bracketed && host.find(':') != std::string::npos)) {
    return fail(Code::kInvalidArgument, "'{}' is not an address: expected host:port or [IPv6]:port", text);
  }
  return Endpoint{host, static_cast<uint16_t>(number), bracketed};
}

Result<SocketAddress> parse_endpoint(const std::string& text) {
  const Endpoint endpoint = TRY(split_endpoint(text));
  addrinfo hints{};
  hints.ai_family = endpoint.bracketed ? AF_INET6 : AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(endpoint.host.c_str(), nullptr, &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  if (error != 0) return fail(Code::kInvalidArgument, "cannot resolve '{}': {}", text, gai_strerror(error));
  SocketAddress address{};
  if (found->ai_addrlen > sizeof(address)) return fail(Code::kInvalidArgument, "'{}' is not an IP address", text);
  memcpy(&address, found->ai_addr, found->ai_addrlen);
  set_port(address, endpoint.port);
  return address;
}

}  // namespace talaria
