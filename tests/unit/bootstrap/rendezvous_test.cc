#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <span>
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

// The part of a rank: a window of one noise, shifted by rank, so that no two ranks have the same bytes.
class Noise {
 public:
  explicit Noise(uint64_t seed) : words_((size_t{1} << 17) + 512) {
    std::ranges::generate(words_, std::mt19937_64(seed));
  }
  const std::byte* part_of(size_t rank) const { return std::as_bytes(std::span(words_)).data() + rank * 131; }

 private:
  std::vector<uint64_t> words_;  // the largest part, 1 MB, and room for the shifts
};

bool gathers_correctly(OutOfBand& oob, size_t bytes, const Noise& noise) {
  std::vector<std::byte> all(bytes * oob.nranks());
  if (bytes != 0) memcpy(all.data() + oob.rank() * bytes, noise.part_of(oob.rank()), bytes);
  if (!oob.all_gather(all).ok()) return false;
  for (size_t rank = 0; rank < oob.nranks(); ++rank) {
    const std::byte* expected = noise.part_of(rank);
    if (bytes != 0 && memcmp(all.data() + rank * bytes, expected, bytes) != 0) return false;
  }
  return true;
}

TEST(Rendezvous, GathersAtEverySizeAndCount) {
  const uint64_t seed = random_u64();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  const Noise noise(seed);
  for (int nranks = 1; nranks <= 17; ++nranks) {
    const UniqueId id = fresh_id();
    const bool large = nranks == 2 || nranks == 5 || nranks == 17;
    std::atomic<int> passed{0};
    run_ranks(nranks, [&](int rank) {
      Result<std::unique_ptr<OutOfBand>> oob = join(id, rank, nranks);
      ASSERT_TRUE(oob.ok()) << last_error_text();
      EXPECT_EQ((*oob)->rank(), static_cast<uint32_t>(rank));
      EXPECT_EQ((*oob)->nranks(), static_cast<uint32_t>(nranks));
      for (size_t bytes : {size_t{0}, size_t{1}, size_t{3}, size_t{128}, size_t{4099}, large ? size_t{1} << 20 : 0}) {
        ASSERT_TRUE(gathers_correctly(**oob, bytes, noise))
            << nranks << " ranks, " << bytes << " bytes, seed " << seed;
      }
      ASSERT_TRUE((*oob)->barrier().ok());
      ++passed;
    });
    EXPECT_EQ(passed, nranks);
  }
}

TEST(Rendezvous, BarrierHoldsUntilTheLastRankComes) {
  constexpr int kRanks = 5, kRounds = 20;
  const UniqueId id = fresh_id();
  std::atomic<int> arrived{0};
  run_ranks(kRanks, [&](int rank) {
    Result<std::unique_ptr<OutOfBand>> oob = join(id, rank, kRanks);
    ASSERT_TRUE(oob.ok()) << last_error_text();
    for (int round = 1; round <= kRounds; ++round) {
      ++arrived;
      ASSERT_TRUE((*oob)->barrier().ok());
      EXPECT_GE(arrived.load(), kRanks * round);
    }
  });
  EXPECT_EQ(arrived, kRanks * kRounds);
}

TEST(Rendezvous, GathersValuesOfAStruct) {
  struct Card {
    int rank;
    char name[60];
  };
  const UniqueId id = fresh_id();
  run_ranks(3, [&](int rank) {
    Result<std::unique_ptr<OutOfBand>> oob = join(id, rank, 3);
    ASSERT_TRUE(oob.ok());
    Card mine{rank, {}};
    fmt::format_to_n(mine.name, sizeof(mine.name) - 1, "rank {}", rank);
    Result<std::vector<Card>> cards = (*oob)->all_gather_value(mine);
    ASSERT_TRUE(cards.ok());
    for (int r = 0; r < 3; ++r) EXPECT_EQ((*cards)[r].name, fmt::format("rank {}", r));
  });
}

TEST(Rendezvous, ProcessesMeetQuickly) {
  constexpr int kRanks = 8;
  const ForkedIds<UniqueId> ids(5, fresh_id);
  const Noise noise(1);
  double best_msec = std::numeric_limits<double>::infinity();
  for (const UniqueId& id : ids.all()) {
    const double start = now_usec();
    const std::vector<int> exits = run_processes(kRanks, [&](int rank) {
      Result<std::unique_ptr<OutOfBand>> oob = join(id, rank, kRanks);
      return oob.ok() && gathers_correctly(**oob, 128, noise) && (*oob)->barrier().ok() ? 0 : 1;
    });
    best_msec = std::min(best_msec, (now_usec() - start) / 1000);
    EXPECT_EQ(exits, std::vector<int>(kRanks, 0));
  }
  RecordProperty("best_msec", std::to_string(best_msec));
  EXPECT_LT(best_msec, 1000);  // usually a few milliseconds; wide, because the machine may be busy
}

TEST(Rendezvous, ManyCommunicatorsOfOneProcessAtOnce) {
  constexpr int kCommunicators = 8, kRounds = 50;
  std::vector<std::vector<UniqueId>> ids(kCommunicators, std::vector<UniqueId>(kRounds));
  for (auto& row : ids) std::ranges::generate(row, fresh_id);
  std::atomic<int> met{0};
  run_ranks(kCommunicators * 2, [&](int thread) {
    for (int round = 0; round < kRounds; ++round) {
      Result<std::unique_ptr<OutOfBand>> oob = join(ids[thread / 2][round], thread % 2, 2);
      ASSERT_TRUE(oob.ok()) << last_error_text();
      Result<std::vector<int>> threads = (*oob)->all_gather_value(thread);
      ASSERT_TRUE(threads.ok()) << last_error_text();
      EXPECT_EQ((*threads)[0] + 1, (*threads)[1]);
      ++met;
    }
  });
  EXPECT_EQ(met, kCommunicators * 2 * kRounds);
}

TEST(Rendezvous, DescriptorsAndThreadsStayFlat) {
  const auto cycle = [](int nranks) {
    const UniqueId id = fresh_id();
    run_ranks(nranks, [&](int rank) {
      Result<std::unique_ptr<OutOfBand>> oob = join(id, rank, nranks);
      ASSERT_TRUE(oob.ok()) << last_error_text();
      ASSERT_TRUE((*oob)->barrier().ok());
    });
  };
  cycle(3);
  ASSERT_TRUE(settles_at(descriptors(), threads()));
  const long before_descriptors = descriptors(), before_threads = threads();
  for (int i = 0; i < 100; ++i) cycle(1 + i % 3);
  EXPECT_TRUE(settles_at(before_descriptors, before_threads))
      << descriptors() - before_descriptors << " descriptors, " << threads() - before_threads << " threads more";
}

TEST(Rendezvous, DescriptorsCloseOnExec) {
  const UniqueId id = fresh_id();
  run_ranks(2, [&](int rank) {
    Result<std::unique_ptr<OutOfBand>> oob = join(id, rank, 2);
    ASSERT_TRUE(oob.ok());
    ASSERT_TRUE((*oob)->barrier().ok());
    if (rank == 0) {
      int sockets = 0;
      for (int fd = 3; fd < 1024; ++fd) {
        int type = 0;
        socklen_t length = sizeof(type);
        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0) continue;
        ++sockets;
        EXPECT_TRUE((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0) << fd;
      }
      EXPECT_GE(sockets, 4);  // two ring connections for each of the two ranks
    }
    ASSERT_TRUE((*oob)->barrier().ok());
  });
}

TEST(Rendezvous, MeetsOverIpv6) {
  Config config = quiet_config();
  config.socket_family = "AF_INET6";
  if (!choose_interface(list_interfaces(), config).ok()) GTEST_SKIP() << "no IPv6 address on this machine";
  Result<UniqueId> id = create_unique_id(config);
  ASSERT_TRUE(id.ok()) << last_error_text();
  EXPECT_EQ(id->address.any.sa_family, AF_INET6);
  run_ranks(3, [&](int rank) {
    Result<std::unique_ptr<OutOfBand>> oob = rendezvous(*id, rank, 3, config, kNever);
    ASSERT_TRUE(oob.ok()) << last_error_text();
    EXPECT_TRUE((*oob)->barrier().ok());
  });
}

TEST(Rendezvous, MeetsOverALinkLocalAddress) {
  for (const Interface& found : list_interfaces()) {
    if (!is_link_local(found.address)) continue;
    RootLimits limits;
    TestRoot root(limits, found.address);
    run_ranks(2, [&](int rank) {
      Result<std::unique_ptr<OutOfBand>> oob = join(root.id(), rank, 2);
      ASSERT_TRUE(oob.ok()) << last_error_text();
      EXPECT_TRUE((*oob)->barrier().ok());
    });
    return;
  }
  GTEST_SKIP() << "no link-local address on this machine";
}

TEST(Rendezvous, RefusesForeignIdsAndRanksOutOfRange) {
  UniqueId id{};
  EXPECT_EQ(join(id, 0, 2).status().code(), Code::kInvalidArgument);
  id.magic = UniqueId::kMagic;
  id.version = UniqueId::kVersion + 1;
  EXPECT_EQ(join(id, 0, 2).status().code(), Code::kInvalidArgument);
  id.version = UniqueId::kVersion;
  id.address = loopback();
  EXPECT_EQ(join(id, 2, 2).status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(mentions(last_error_text(), "Invalid rank requested : 2/2")) << last_error_text();
}

}  // namespace
}  // namespace talaria
