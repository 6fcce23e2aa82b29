#include "bootstrap/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <cstring>
#include <memory>
#include <string_view>

#include "base/text.h"
#include "bootstrap/address.h"

namespace talaria {
namespace {

bool is_bridge(std::string_view name) { return name.starts_with("docker") || name.starts_with("virbr"); }

// Lower is better. What the user named is not held against it, except that tunnels and link-local addresses lead to
// fewer peers whoever asked for them.
int reluctance(const Interface& interface, bool named_by_user) {
  const int narrow = is_link_local(interface.address) ? 1 : 0;
  if (!named_by_user && interface.loopback) return 6 + narrow;
  if (!named_by_user && is_bridge(interface.name)) return 4 + narrow;
  return (interface.tunnel ? 2 : 0) + narrow;
}

std::string describe(std::span<const Interface> found) {
  std::string text;
  for (const Interface& interface : found) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", interface.name, host_text(interface.address));
  }
  return text.empty() ? "none" : text;
}

}  // namespace

std::vector<Interface> list_interfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    constexpr unsigned kUsable = IFF_UP | IFF_RUNNING;
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & kUsable) != kUsable) continue;
    const sa_family_t family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const std::string_view name = entry->ifa_name;
    Interface interface{};
    interface.name = name;
    interface.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    interface.tunnel = (entry->ifa_flags & IFF_POINTOPOINT) != 0 || name.starts_with("ip6tnl");
    memcpy(&interface.address, entry->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    found.push_back(interface);
  }
  return found;
}

bool passes_filter(const std::string& name, const std::string& pattern) {
  std::string_view rest = pattern;
  const bool exclude = rest.starts_with('^');
  if (exclude) rest.remove_prefix(1);
  const bool exact = rest.starts_with('=');
  if (exact) rest.remove_prefix(1);
  const std::vector<std::string> words = split(rest, ',');
  if (words.empty()) return true;
  bool listed = false;
  for (const std::string& word : words) listed |= exact ? name == word : name.starts_with(word);
  return listed != exclude;
}

Result<Interface> choose_interface(std::span<const Interface> found, const Config& config) {
  const std::string& family = config.socket_family;
  if (!family.empty() && family != "AF_INET" && family != "AF_INET6") {
    return fail(Code::kInvalidUsage, "NCCL_SOCKET_FAMILY is '{}': expected AF_INET or AF_INET6", family);
  }
  // An exclusion names nobody: what is left follows the default preferences.
  const bool named = !config.socket_ifname.empty() && config.socket_ifname.front() != '^';
  const Interface* best = nullptr;
  for (const Interface& interface : found) {
    const bool v6 = interface.address.any.sa_family == AF_INET6;
    if (!family.empty() && v6 != (family == "AF_INET6")) continue;
    if (!passes_filter(interface.name, config.socket_ifname)) continue;
    if (best == nullptr || reluctance(interface, named) < reluctance(*best, named)) best = &interface;
  }
  if (best != nullptr) return *best;
  return fail(
      config.socket_ifname.empty() && family.empty() ? Code::kSystem : Code::kInvalidUsage,
      "Bootstrap : no socket interface found (NCCL_SOCKET_IFNAME={}, NCCL_SOCKET_FAMILY={}; this machine has: {})",
      config.socket_ifname.empty() ? "unset" : config.socket_ifname, family.empty() ? "unset" : family,
      describe(found));
}

}  // namespace talaria
