// Ten thousand ranks at a hundred roots: the real roots, and ranks that speak the real protocol, a root at a time so
// that the process needs few descriptors.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "bootstrap/lobby.h"
#include "unit/bootstrap/meeting.h"

namespace talaria {
namespace {

using namespace test;

constexpr uint32_t kRanks = 10000, kRoots = 100;

// Where a simulated rank claims to listen: an address that says which rank it is.
SocketAddress address_of(uint32_t rank) {
  SocketAddress address{};
  address.v4.sin_family = AF_INET;
  address.v4.sin_addr.s_addr = htonl(0x0a000000 + rank);
  address.v4.sin_port = htons(1000);
  return address;
}

struct Load {
  size_t connections = 0, messages = 0;
};

// All ranks that have to do with `root` come, in random order; what each of the share learns goes to `successors`.
void meet_at(uint32_t root, std::vector<SocketAddress>& successors, Load& worst, uint64_t seed) {
  TestRoot meeting(RootLimits{});
  const RootShare share = share_of(root, kRanks, kRoots);
  std::vector<uint32_t> ranks;
  for (uint32_t rank = share.first; rank < share.end; ++rank) ranks.push_back(rank);
  ranks.push_back(share.visitor);
  std::ranges::shuffle(ranks, std::mt19937_64(seed + root));
  std::vector<Stranger> present;
  Load load;
  for (const uint32_t rank : ranks) {
    Greeting greeting = make_greeting(Secret(meeting.id()), rank, kRanks);
    greeting.listener = address_of(rank);
    greeting.root = root;
    greeting.nroots = kRoots;
    present.emplace_back(meeting.id());
    present.back().say(&greeting, sizeof(greeting));
    ++load.connections;
  }
  for (size_t i = 0; i < ranks.size(); ++i) {
    Proof welcome{};
    Reply reply{};
    ASSERT_TRUE(present[i].hear(welcome) && present[i].hear(reply)) << "rank " << ranks[i];
    ASSERT_EQ(reply.code, 0) << reply.text;
    if (share.holds(ranks[i])) successors[ranks[i]] = reply.successor;
    load.messages += 3;
  }
  worst.connections = std::max(worst.connections, load.connections);
  worst.messages = std::max(worst.messages, load.messages);
}

long resident_kilobytes() {
  long pages = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == nullptr || fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
  if (file != nullptr) fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

TEST(Scale, TenThousandRanksLearnTheirNeighboursFromAHundredRoots) {
  const uint64_t seed = random_u64();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::vector<SocketAddress> successors(kRanks);
  Load worst;
  meet_at(0, successors, worst, seed);  // so that what is allocated once does not count
  const long before = resident_kilobytes();
  const double start = now_usec();
  for (uint32_t root = 0; root < kRoots && !HasFatalFailure(); ++root) meet_at(root, successors, worst, seed);
  RecordProperty("seconds", std::to_string((now_usec() - start) / 1e6));
  uint32_t wrong = 0;
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    wrong += to_text(successors[rank]) != to_text(address_of((rank + 1) % kRanks)) ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_LE(worst.connections, kRanks / kRoots + 1);
  EXPECT_LE(worst.messages, 3 * (kRanks / kRoots + 1));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(resident_kilobytes() - before, 8192) << "memory of ended roots must not add up";
#else
  (void)before;
#endif
}

// What one root holds for a large share: a seat per rank, found without looking at the others.
TEST(Scale, ARootOfAThousandRanksIsQuick) {
  constexpr uint32_t kShare = 1000;
  rlimit descriptors{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
  if (descriptors.rlim_cur < 2 * kShare + 200) GTEST_SKIP() << "only " << descriptors.rlim_cur << " descriptors";
  TestRoot meeting(RootLimits{});
  std::vector<Stranger> present;
  const double start = now_usec();
  for (uint32_t rank = 0; rank < kShare; ++rank) {
    Greeting greeting = make_greeting(Secret(meeting.id()), rank, kShare);
    greeting.listener = address_of(rank);
    present.emplace_back(meeting.id());
    present.back().say(&greeting, sizeof(greeting));
  }
  for (uint32_t rank = 0; rank < kShare; ++rank) {
    Proof welcome{};
    Reply reply{};
    ASSERT_TRUE(present[rank].hear(welcome) && present[rank].hear(reply));
    EXPECT_EQ(to_text(reply.successor), to_text(address_of((rank + 1) % kShare)));
  }
  EXPECT_LT(now_usec() - start, 60e6) << "did not hang";
}

}  // namespace
}  // namespace talaria
