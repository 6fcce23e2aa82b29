// TALARIA_PORT_RANGE: where this process listens.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "bootstrap/port_range.h"
#include "support/threads.h"
#include "unit/bootstrap/meeting.h"

namespace talaria {
namespace {

using namespace test;

Config config_with(const std::string& range) {
  Config config = quiet_config();
  config.socket_ifname = "=lo";
  config.socket_family = "AF_INET";
  config.port_range = range;
  return config;
}

// Ports at which sockets of this process listen.
std::vector<uint16_t> listening_ports() {
  std::vector<uint16_t> ports;
  for (int fd = 3; fd < 4096; ++fd) {
    int listening = 0;
    socklen_t length = sizeof(listening);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) != 0 || listening == 0) continue;
    ports.push_back(port_of(local_address(fd)));
  }
  return ports;
}

TEST(Ports, RangesAreRead) {
  for (const auto& [text, first, last] : {std::tuple("5000-5010", 5000, 5010), std::tuple("5000", 5000, 5000),
                                          std::tuple("1-65535", 1, 65535), std::tuple("7-7", 7, 7)}) {
    Result<PortRange> range = parse_port_range(text);
    ASSERT_TRUE(range.ok()) << text;
    EXPECT_EQ(range->first, first);
    EXPECT_EQ(range->last, last);
  }
}

TEST(Ports, NonsenseIsNamed) {
  for (const char* text : {"-", "5000-", "-5000", "5010-5000", "0", "0-5", "65536", "1-65536", "a-b", "1-2-3", " 1-2",
                           "5000,5001", "99999999999999999999"}) {
    EXPECT_EQ(parse_port_range(text).status().code(), Code::kInvalidUsage) << text;
    EXPECT_TRUE(mentions(last_error_text(), "TALARIA_PORT_RANGE")) << last_error_text();
    EXPECT_TRUE(mentions(last_error_text(), fmt::format("'{}'", text))) << last_error_text();
  }
}

// A free range of some ports: nobody listened there a moment ago.
std::string free_range(uint16_t size) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const auto first = static_cast<uint16_t>(20000 + random_u64() % 10000);
    std::vector<UniqueFd> listeners(size);
    bool all_free = true;
    for (uint16_t i = 0; i < size && all_free; ++i) {
      SocketAddress address = loopback();
      set_port(address, static_cast<uint16_t>(first + i));
      all_free = listen_at(address, listeners[i]) == 0;
    }
    if (all_free) return fmt::format("{}-{}", first, first + size - 1);
  }
  return "";
}

TEST(Ports, EveryListeningSocketIsInTheRange) {
  const std::vector<uint16_t> before = listening_ports();
  const std::string text = free_range(10);
  const Config config = config_with(text);
  const PortRange range = *parse_port_range(text);
  Result<UniqueId> id = create_unique_id(config);
  ASSERT_TRUE(id.ok()) << last_error_text();
  std::vector<uint16_t> seen;
  run_ranks(2, [&](int rank) {
    if (rank == 1) {  // the other one listens by now, if it is ever going to
      for (const double end = now_usec() + 10e6; now_usec() < end; std::this_thread::yield()) {
        seen = listening_ports();
        if (seen.size() >= before.size() + 2) break;
      }
    }
    Result<std::unique_ptr<OutOfBand>> oob = rendezvous(*id, static_cast<uint32_t>(rank), 2, config, kNever);
    ASSERT_TRUE(oob.ok()) << last_error_text();
    EXPECT_TRUE((*oob)->barrier().ok());
  });
  EXPECT_GE(seen.size(), before.size() + 2) << "the root and rank 0";
  for (const uint16_t port : seen) {
    if (std::ranges::find(before, port) != before.end()) continue;
    EXPECT_TRUE(port >= range.first && port <= range.last) << port << " is outside of " << text;
  }
}

TEST(Ports, ABusyRangeIsNamed) {
  UniqueFd holder;
  ASSERT_EQ(listen_at(loopback(), holder), 0);
  const std::string text = std::to_string(port_of(local_address(holder.get())));
  EXPECT_EQ(create_unique_id(config_with(text)).status().code(), Code::kSystem);
  EXPECT_TRUE(mentions(last_error_text(), "TALARIA_PORT_RANGE=" + text)) << last_error_text();
  EXPECT_TRUE(mentions(last_error_text(), "in use")) << last_error_text();
}

TEST(Ports, ARangeIsUsedUpToItsLastPort) {
  const std::string text = free_range(4);
  const Config config = config_with(text);
  std::vector<UniqueFd> holders;
  for (int i = 0; i < 4; ++i) {
    Result<UniqueFd> listener = listen_at_free_port(loopback(), config);
    ASSERT_TRUE(listener.ok()) << last_error_text();
    holders.push_back(listener.value());
  }
  EXPECT_EQ(listen_at_free_port(loopback(), config).status().code(), Code::kSystem);
  EXPECT_TRUE(mentions(last_error_text(), text)) << last_error_text();
}

}  // namespace
}  // namespace talaria
