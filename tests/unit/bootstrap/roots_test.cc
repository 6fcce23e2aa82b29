// Several unique ids, each with a root of its own; ranks that never come; other versions; too few descriptors.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bootstrap/lobby.h"
#include "support/threads.h"
#include "unit/bootstrap/meeting.h"
#include "unit/bootstrap/texts.h"

namespace talaria {
namespace {

using namespace test;

std::vector<UniqueId> fresh_ids(int count) {
  std::vector<UniqueId> ids;
  for (int i = 0; i < count; ++i) ids.push_back(fresh_id());
  return ids;
}

Result<std::unique_ptr<OutOfBand>> join_roots(const std::vector<UniqueId>& ids, int rank, int nranks,
                                              const Config& config = quiet_config()) {
  return rendezvous(ids, static_cast<uint32_t>(rank), static_cast<uint32_t>(nranks), config, kNever);
}

// A rank that left at once would look dead to those who are still connecting.
bool meets(const std::vector<UniqueId>& ids, int rank, int nranks, const Config& config) {
  Result<std::unique_ptr<OutOfBand>> oob = join_roots(ids, rank, nranks, config);
  return oob.ok() && (*oob)->barrier().ok();
}

TEST(Roots, SharesAreEvenAndCoverAllRanks) {
  for (uint32_t nranks : {1u, 2u, 3u, 7u, 16u, 17u, 1000u, 10007u}) {
    for (uint32_t nroots : {1u, 2u, 3u, 5u, 16u, 17u, 100u, nranks}) {
      if (nroots > nranks) continue;
      uint32_t next = 0;
      for (uint32_t root = 0; root < nroots; ++root) {
        const RootShare share = share_of(root, nranks, nroots);
        EXPECT_EQ(share.first, next);
        EXPECT_GE(share.size(), nranks / nroots);
        EXPECT_LE(share.size(), (nranks + nroots - 1) / nroots);
        for (uint32_t rank = share.first; rank < share.end; ++rank) EXPECT_EQ(root_of(rank, nranks, nroots), root);
        next = share.end;
      }
      EXPECT_EQ(next, nranks);
    }
  }
}

TEST(Roots, AnyNumberOfThemBringsTheRanksTogether) {
  for (int nranks : {1, 2, 3, 5, 8, 13}) {
    for (int nroots = 1; nroots <= nranks; nroots += nranks > 5 ? 3 : 1) {
      const std::vector<UniqueId> ids = fresh_ids(nroots);
      std::atomic<int> met{0};
      run_ranks(nranks, [&](int rank) {
        Result<std::unique_ptr<OutOfBand>> oob = join_roots(ids, rank, nranks);
        ASSERT_TRUE(oob.ok()) << last_error_text();
        Result<std::vector<int>> ranks = (*oob)->all_gather_value(rank);
        ASSERT_TRUE(ranks.ok()) << last_error_text();
        for (int r = 0; r < nranks; ++r) EXPECT_EQ((*ranks)[r], r);
        ++met;
      });
      EXPECT_EQ(met, nranks) << nroots << " roots";
    }
  }
}

TEST(Roots, AsManyAsRanks) {
  const std::vector<UniqueId> ids = fresh_ids(6);
  run_ranks(6, [&](int rank) {
    Result<std::unique_ptr<OutOfBand>> oob = join_roots(ids, rank, 6);
    ASSERT_TRUE(oob.ok()) << last_error_text();
    EXPECT_TRUE((*oob)->barrier().ok());
  });
}

TEST(Roots, ListsThatCannotBeMeantAreRefused) {
  const std::vector<UniqueId> three = fresh_ids(3);
  EXPECT_EQ(join_roots({}, 0, 2).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(join_roots(three, 0, 2).status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(mentions(last_error_text(), "3 unique ids for 2 ranks")) << last_error_text();
  EXPECT_EQ(join_roots({three[0], three[1], three[0]}, 0, 4).status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(mentions(last_error_text(), "given twice")) << last_error_text();
  Config config = quiet_config();
  config.comm_id = "127.0.0.1:23456";
  const UniqueId named = *create_unique_id(config);
  EXPECT_EQ(join_roots({named, three[0]}, 0, 4).status().code(), Code::kInvalidUsage);
  EXPECT_TRUE(mentions(last_error_text(), "NCCL_COMM_ID")) << last_error_text();
  for (const UniqueId& id : three) EXPECT_TRUE(join(id, 0, 1).ok());  // ends their roots
}

TEST(Roots, ListsInDifferentOrderAreNoticed) {
  RootLimits limits;
  limits.grace_usec = 100e6;
  TestRoot root(limits);
  const auto come = [&](uint32_t rank, uint32_t as_root) {
    Greeting greeting = make_greeting(Secret(root.id()), rank, 4);
    greeting.root = as_root;
    greeting.nroots = 2;
    Stranger guest(root.id());
    guest.say(&greeting, sizeof(greeting));
    Proof welcome{};
    EXPECT_TRUE(guest.hear(welcome));
    return guest;
  };
  Stranger first = come(1, 0), second = come(2, 1);
  Reply reply{};
  ASSERT_TRUE(second.hear(reply));
  EXPECT_EQ(reply.code, static_cast<int>(Code::kInvalidUsage));
  EXPECT_TRUE(mentions(reply.text, "rank 2 (") && mentions(reply.text, "number 1 of 2")) << reply.text;
  EXPECT_TRUE(mentions(reply.text, "rank 1 (") && mentions(reply.text, "number 0 of 2")) << reply.text;
  first.leave();
  std::vector<Stranger> share;  // the ranks 0 and 1 and their visitor, now in one order
  for (uint32_t rank : {0u, 1u, 2u}) share.push_back(come(rank, 0));
  for (Stranger& guest : share) EXPECT_TRUE(guest.hear(reply) && reply.code == 0) << reply.text;
}

Config impatient_config() {
  Config config = quiet_config();
  config.init_timeout_sec = 1;
  return config;
}

TEST(Roots, RanksThatNeverComeAreNamed) {
  const UniqueId id = fresh_id();
  Texts texts;
  run_ranks(9, [&](int rank) {
    if (rank == 2 || (rank >= 5 && rank <= 7)) return;
    EXPECT_EQ(join_roots({id}, rank, 9, impatient_config()).status().code(), Code::kRemote);
    texts.add(last_error_text());
  });
  EXPECT_TRUE(texts.all_mention("4 of 9 ranks have not come within 1 s (TALARIA_INIT_TIMEOUT): rank 2, 5-7"))
      << texts.joined();
  // The root still tells those who come late.
  EXPECT_EQ(join_roots({id}, 2, 9).status().code(), Code::kRemote);
  for (int rank : {5, 6, 7}) EXPECT_FALSE(join_roots({id}, rank, 9).ok());
}

TEST(Roots, OneImpatientRankIsEnough) {
  const UniqueId id = fresh_id();
  Texts texts;
  run_ranks(3, [&](int rank) {
    if (rank == 1) return;
    EXPECT_EQ(join_roots({id}, rank, 3, rank == 0 ? impatient_config() : quiet_config()).status().code(),
              Code::kRemote);
    texts.add(last_error_text());
  });
  EXPECT_TRUE(texts.all_mention("rank 1")) << texts.joined();
  EXPECT_FALSE(join_roots({id}, 1, 3).ok());
}

TEST(Roots, RanksOfOtherRootsHearOfAnAbsentOne) {
  constexpr int kRanks = 8, kRoots = 4, kAbsent = 5;
  const std::vector<UniqueId> ids = fresh_ids(kRoots);
  Texts texts;
  run_ranks(kRanks, [&](int rank) {
    if (rank == kAbsent) return;
    Result<std::unique_ptr<OutOfBand>> oob = join_roots(ids, rank, kRanks, impatient_config());
    EXPECT_EQ((oob.ok() ? (*oob)->barrier() : oob.status()).code(), Code::kRemote);
    texts.add(last_error_text());
  });
  EXPECT_TRUE(texts.all_mention(fmt::format("rank {}", kAbsent))) << texts.joined();
  EXPECT_FALSE(join_roots(ids, kAbsent, kRanks, impatient_config()).ok());
}

TEST(Roots, ARankThatStopsAfterTheMeetingIsNamed) {
  // Rank 0 greets the root, and never does anything again.
  const UniqueId id = fresh_id();
  UniqueFd listener;
  ASSERT_EQ(listen_at(loopback(), listener), 0);
  Greeting greeting = make_greeting(Secret(id), 0, 3);
  greeting.listener = local_address(listener.get());
  Stranger stopped(id);
  stopped.say(&greeting, sizeof(greeting));
  Texts texts;
  run_ranks(3, [&](int rank) {
    if (rank == 0) return;
    Result<std::unique_ptr<OutOfBand>> oob = join_roots({id}, rank, 3, impatient_config());
    EXPECT_EQ((oob.ok() ? (*oob)->barrier() : oob.status()).code(), Code::kRemote);
    texts.add(last_error_text());
  });
  EXPECT_TRUE(texts.all_mention("rank 0")) << texts.joined();
  EXPECT_TRUE(texts.all_mention("TALARIA_INIT_TIMEOUT")) << texts.joined();
}

TEST(Roots, AnotherVersionIsToldToAllRanks) {
  RootLimits limits;
  limits.grace_usec = 50e3;
  TestRoot root(limits);
  Texts texts;
  run_ranks(4, [&](int rank) {
    if (rank == 2) {
      Greeting greeting = make_greeting(Secret(root.id()), 2, 4);
      greeting.version = Greeting::kVersion + 1;
      Stranger other(root.id());
      other.say(&greeting, sizeof(greeting));
      Proof welcome{};
      Reply reply{};
      EXPECT_TRUE(other.hear(welcome) && other.hear(reply));
      EXPECT_EQ(reply.code, static_cast<int>(Code::kInvalidUsage));
      return texts.add(reply.text);
    }
    EXPECT_EQ(join(root.id(), rank, 4).status().code(), Code::kInvalidUsage);
    texts.add(last_error_text());
  });
  EXPECT_TRUE(texts.all_mention("Mismatched NCCL version detected : rank 2")) << texts.joined();
}

TEST(Roots, MoreRanksThanDescriptorsAreRefusedAtOnce) {
  RootLimits limits;
  limits.seats = 4;
  TestRoot root(limits);
  EXPECT_EQ(join(root.id(), 0, 100).status().code(), Code::kSystem);
  EXPECT_TRUE(mentions(last_error_text(), "ulimit -n")) << last_error_text();
  EXPECT_TRUE(mentions(last_error_text(), "34 ids")) << last_error_text();
  run_ranks(4, [&](int rank) { EXPECT_TRUE(meets({root.id()}, rank, 4, quiet_config())) << last_error_text(); });
}

TEST(Roots, ManyRanksOfOneRootComeOneAfterAnother) {
  Config config = quiet_config();
  config.uid_stagger_threshold = 2;
  config.uid_stagger_rate = 20;
  const UniqueId id = fresh_id();
  const double start = now_usec();
  run_ranks(3, [&](int rank) { EXPECT_TRUE(meets({id}, rank, 3, config)) << last_error_text(); });
  EXPECT_GE(now_usec() - start, 100e3) << "rank 2 comes after 2/20 s";
}

TEST(Roots, ListsOfRanksAreShort) {
  EXPECT_EQ(list_ranks({3}, 100), "3");
  EXPECT_EQ(list_ranks({3, 5, 6, 7, 9}, 100), "3, 5-7, 9");
  std::vector<uint32_t> odd;
  for (uint32_t i = 0; i < 10000; ++i) odd.push_back(2 * i + 1);
  EXPECT_LT(list_ranks(odd, 100).size(), 120u);
}

}  // namespace
}  // namespace talaria
