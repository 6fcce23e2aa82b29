// NCCL_COMM_ID: an address instead of an exchanged id; rank 0 listens there.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/processes.h"
#include "support/threads.h"
#include "unit/bootstrap/meeting.h"

namespace talaria {
namespace {

using namespace test;

Config config_at(const std::string& endpoint) {
  Config config = quiet_config();
  config.comm_id = endpoint;
  return config;
}

// What each rank does by itself: make the id from the text, join, meet.
bool meets(const std::string& endpoint, int rank, int nranks) {
  const Config config = config_at(endpoint);
  Result<UniqueId> id = create_unique_id(config);
  if (!id.ok()) return false;
  Result<std::unique_ptr<OutOfBand>> oob = rendezvous(*id, rank, nranks, config, kNever);
  return oob.ok() && (*oob)->barrier().ok();
}

TEST(CommId, IdsAreEqualForEqualTextOnly) {
  Result<UniqueId> a = create_unique_id(config_at("127.0.0.1:23456")),
                   b = create_unique_id(config_at("127.0.0.1:23456")),
                   c = create_unique_id(config_at("127.0.0.1:23457"));
  ASSERT_TRUE(a.ok() && b.ok() && c.ok());
  EXPECT_EQ(memcmp(&*a, &*b, sizeof(UniqueId)), 0);
  EXPECT_NE(memcmp(a->secret, c->secret, sizeof(a->secret)), 0);
}

// Forks, and starts threads in the children: stays ahead of the tests that leave threads to end by themselves, because
// the thread sanitizer allows it only while there are none.
// B-06, B-07
TEST(CommId, ProcessesMeetTwentyTimesBackToBackOnOnePort) {
  const std::string endpoint = fmt::format("127.0.0.1:{}", free_port());
  const std::vector<int> exits = run_processes(3, [&](int rank) {
    for (int i = 0; i < 20; ++i) {
      if (!meets(endpoint, rank, 3)) return 1 + i;
    }
    return 0;
  });
  EXPECT_EQ(exits, std::vector<int>(3, 0));
}

TEST(CommId, IdsMadeWithoutItDiffer) {
  const UniqueId a = fresh_id(), b = fresh_id();
  EXPECT_NE(memcmp(a.secret, b.secret, sizeof(UniqueId::secret)), 0);
  for (const UniqueId& id : {a, b}) EXPECT_TRUE(join(id, 0, 1).ok());  // ends their roots
}

TEST(CommId, ThreadsMeetTwentyTimesBackToBackOnOnePort) {
  const std::string endpoint = fmt::format("127.0.0.1:{}", free_port());
  run_ranks(4, [&](int rank) {
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(meets(endpoint, rank, 4)) << i << ": " << last_error_text();
  });
}

// B-06
TEST(CommId, MeetsOverIpv6) {
  SocketAddress v6{};
  v6.v6.sin6_family = AF_INET6;
  v6.v6.sin6_addr = IN6ADDR_LOOPBACK_INIT;
  UniqueFd listener;
  if (listen_at(v6, listener) != 0) GTEST_SKIP() << "no IPv6 on this machine";
  const uint16_t port = port_of(local_address(listener.get()));
  listener.reset();
  run_ranks(2, [&](int rank) { EXPECT_TRUE(meets(fmt::format("[::1]:{}", port), rank, 2)) << last_error_text(); });
}

// B-06
TEST(CommId, ABusyPortIsNamed) {
  UniqueFd listener;
  ASSERT_EQ(listen_at(loopback(), listener), 0);
  const uint16_t port = port_of(local_address(listener.get()));
  EXPECT_FALSE(meets(fmt::format("127.0.0.1:{}", port), 0, 2));
  EXPECT_TRUE(mentions(last_error_text(), fmt::format("port {}", port))) << last_error_text();
}

TEST(CommId, AnAddressOfAnotherMachineIsNamed) {
  EXPECT_FALSE(meets("203.0.113.77:23456", 0, 2));
  EXPECT_TRUE(mentions(last_error_text(), "203.0.113.77:23456")) << last_error_text();
}

TEST(CommId, ASingleRankNeedsNoPort) {
  UniqueFd listener;
  ASSERT_EQ(listen_at(loopback(), listener), 0);
  EXPECT_TRUE(meets(to_text(local_address(listener.get())), 0, 1)) << last_error_text();
}

TEST(CommId, NonsenseIsNamed) {
  EXPECT_EQ(create_unique_id(config_at("nonsense")).status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(mentions(last_error_text(), "nonsense")) << last_error_text();
}

}  // namespace
}  // namespace talaria
