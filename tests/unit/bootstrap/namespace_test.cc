// A machine with nothing but IPv6, as network namespaces of our own make one.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "bootstrap/interfaces.h"
#include "support/ids.h"
#include "support/processes.h"
#include "support/threads.h"
#include "unit/bootstrap/meeting.h"

namespace talaria {
namespace {

using namespace test;

// As <linux/ipv6.h>, which cannot be included beside <netinet/in.h>.
struct Ipv6Assignment {
  in6_addr address;
  uint32_t prefix_bits;
  int interface;
};

bool assign(const char* interface, const char* address) {
  Ipv6Assignment assignment{};
  assignment.prefix_bits = 64;
  assignment.interface = static_cast<int>(if_nametoindex(interface));
  const UniqueFd socket(::socket(AF_INET6, SOCK_DGRAM, 0));
  return inet_pton(AF_INET6, address, &assignment.address) == 1 && ioctl(socket.get(), SIOCSIFADDR, &assignment) == 0;
}

bool bring_up(const char* interface) {
  ifreq request{};
  strncpy(request.ifr_name, interface, sizeof(request.ifr_name) - 1);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const UniqueFd socket(::socket(AF_INET6, SOCK_DGRAM, 0));
  return ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
}

// Takes the loopback's IPv4 address away.
bool forget_ipv4() {
  ifreq request{};
  strncpy(request.ifr_name, "lo", sizeof(request.ifr_name) - 1);
  request.ifr_addr.sa_family = AF_INET;  // 0.0.0.0
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM, 0));
  return ioctl(socket.get(), SIOCSIFADDR, &request) == 0;
}

constexpr int kSkipped = 77;

// The verdict of `check` in a network namespace of its own, whose only addresses are those of IPv6.
template <typename Check>
int in_ipv6_namespace(Check check) {
  return wait_for_exit(fork_rank([&] {
    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return kSkipped;
    if (!bring_up("lo") || !forget_ipv4() || !assign("lo", "fe80::17")) return kSkipped;
    return check();
  }));
}

bool rank_meets(const UniqueId& id, int rank, int nranks, const Config& config) {
  Result<std::unique_ptr<OutOfBand>> oob =
      rendezvous(id, static_cast<uint32_t>(rank), static_cast<uint32_t>(nranks), config, kNever);
  if (oob.ok() && (*oob)->barrier().ok()) return true;
  fprintf(stderr, "rank %d: %s\n", rank, last_error_text());
  return false;
}

// One process makes the id, three processes meet.
int meet(const Config& config, bool link_local) {
  const ForkedIds<UniqueId> ids(1, [&] {
    Result<UniqueId> id = create_unique_id(config);
    if (!id.ok()) fprintf(stderr, "%s\n", last_error_text());
    return id.ok() ? *id : UniqueId{};
  });
  const UniqueId& id = ids.one();
  if (id.address.any.sa_family != AF_INET6 || is_link_local(id.address) != link_local) {
    fprintf(stderr, "the id's address is %s\n", to_text(id.address).c_str());
    return 2;
  }
  const std::vector<int> exits = run_processes(3, [&](int rank) { return rank_meets(id, rank, 3, config) ? 0 : 1; });
  return exits == std::vector<int>(3, 0) ? 0 : 1;
}

Config ipv6_config() {
  Config config = quiet_config();
  config.socket_family = "AF_INET6";
  config.init_timeout_sec = 20;
  return config;
}

// B-03
TEST(Namespace, ProcessesMeetWhereThereIsOnlyIpv6) {
  const int verdict = in_ipv6_namespace([] { return meet(ipv6_config(), false); });
  if (verdict == kSkipped) GTEST_SKIP() << "no network namespace of our own here";
  EXPECT_EQ(verdict, 0);
}

TEST(Namespace, ProcessesMeetAtALinkLocalAddress) {
  const int verdict = in_ipv6_namespace([] {
    // The one address that is not link-local goes.
    for (const Interface& found : list_interfaces()) {
      if (is_link_local(found.address) || found.address.any.sa_family != AF_INET6) continue;
      Ipv6Assignment assignment{found.address.v6.sin6_addr, 128, static_cast<int>(if_nametoindex("lo"))};
      const UniqueFd socket(::socket(AF_INET6, SOCK_DGRAM, 0));
      if (ioctl(socket.get(), SIOCDIFADDR, &assignment) != 0) return kSkipped;
    }
    // A new address may take a moment to become usable.
    UniqueFd listener;
    const SocketAddress address = choose_interface(list_interfaces(), ipv6_config())->address;
    for (const double end = now_usec() + 5e6; listen_at(address, listener) != 0 && now_usec() < end;) sched_yield();
    return meet(ipv6_config(), true);
  });
  if (verdict == kSkipped) GTEST_SKIP() << "no network namespace of our own here";
  EXPECT_EQ(verdict, 0);
}

TEST(Namespace, TheFamilyThatTheMachineLacksIsNamed) {
  const int verdict = in_ipv6_namespace([] {
    Config config = quiet_config();
    config.socket_family = "AF_INET";
    if (create_unique_id(config).ok()) return 1;
    return mentions(last_error_text(), "NCCL_SOCKET_FAMILY=AF_INET") && mentions(last_error_text(), "lo ::1") ? 0 : 2;
  });
  if (verdict == kSkipped) GTEST_SKIP() << "no network namespace of our own here";
  EXPECT_EQ(verdict, 0);
}

}  // namespace
}  // namespace talaria
