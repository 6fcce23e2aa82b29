// Ranks that die, abort or make another call than the others: everyone else gets an error that names them.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "bootstrap/lobby.h"
#include "support/ids.h"
#include "support/processes.h"
#include "support/threads.h"
#include "unit/bootstrap/meeting.h"
#include "unit/bootstrap/texts.h"

namespace talaria {
namespace {

using namespace test;

TEST(Faults, ADeadPeerIsNamedByEveryOtherRank) {
  constexpr int kRanks = 6, kDead = 2;
  const ForkedIds<UniqueId> ids(1, fresh_id);
  const UniqueId id = ids.one();
  // The victim is a process that joins and is gone; all others stay in one all-gather after the other until told.
  const pid_t victim = fork_rank([&] { return join(id, kDead, kRanks).ok() ? 0 : 1; });
  Texts texts;
  run_ranks(kRanks, [&](int rank) {
    if (rank == kDead) return;
    Result<std::unique_ptr<OutOfBand>> oob = join(id, rank, kRanks);
    // The news may come before this rank's own connections are complete.
    EXPECT_EQ((oob.ok() ? (*oob)->barrier() : oob.status()).code(), Code::kRemote);
    texts.add(last_error_text());
    if (oob.ok()) {
      EXPECT_EQ((*oob)->barrier().code(), Code::kRemote) << "a broken ring stays broken";
    }
  });
  EXPECT_EQ(wait_for_exit(victim), 0);
  EXPECT_TRUE(texts.all_mention("rank 2 died")) << texts.joined();
}

TEST(Faults, APeerThatDiesLaterIsNamed) {
  constexpr int kRanks = 4, kDead = 3;
  const UniqueId id = fresh_id();
  Texts texts;
  run_ranks(kRanks, [&](int rank) {
    Result<std::unique_ptr<OutOfBand>> oob = join(id, rank, kRanks);
    ASSERT_TRUE(oob.ok()) << last_error_text();
    for (int i = 0; i < 3; ++i) ASSERT_TRUE((*oob)->barrier().ok());
    // News of the death may overtake the last exchange that the victim took part in.
    const Status last_with_all = (*oob)->barrier();
    if (rank == kDead) return;
    std::vector<std::byte> all(size_t{kRanks} << 20);
    EXPECT_EQ((last_with_all.ok() ? (*oob)->all_gather(all) : last_with_all).code(), Code::kRemote);
    texts.add(last_error_text());
  });
  EXPECT_TRUE(texts.all_mention("rank 3 died")) << texts.joined();
}

// Listens until something is heard of `rank`.
Departure await_departure(OutOfBand& oob, uint32_t rank) {
  for (const double end = now_usec() + 10e6; now_usec() < end; std::this_thread::yield()) {
    oob.listen();
    if (oob.departure_of(rank) != Departure::kPresent) break;
  }
  return oob.departure_of(rank);
}

// Listens until all of `wanted` have come; false if they do not.
bool listen_until_all(OutOfBand& oob, std::atomic<int>& counter, int wanted) {
  ++counter;
  const double end = now_usec() + 10e6;
  for (; counter < wanted && now_usec() < end; std::this_thread::yield()) oob.listen();
  return counter >= wanted;
}

// Every rank joins; the rank `gone` then ends as `how` says, and the others see what they hear of it.
template <typename Check>
void hear_of(int nranks, int gone, Departure how, Check check) {
  const UniqueId id = fresh_id();
  std::atomic<int> joined{0}, heard{0};
  run_ranks(nranks, [&](int rank) {
    Result<std::unique_ptr<OutOfBand>> oob = join(id, rank, nranks);
    ASSERT_TRUE(oob.ok()) << last_error_text();
    ASSERT_TRUE(listen_until_all(**oob, joined, nranks));
    if (rank == gone) {
      if (how != Departure::kDied) (*oob)->say_goodbye(how);
      return;
    }
    EXPECT_EQ(await_departure(**oob, static_cast<uint32_t>(gone)), how) << "rank " << rank;
    // News travels through those who listen: nobody ends before all have heard.
    EXPECT_TRUE(listen_until_all(**oob, heard, nranks - 1));
    check(**oob);
  });
  EXPECT_EQ(heard, nranks - 1);
}

TEST(Faults, AGoodbyeIsHeardByAllAndIsNoFault) {
  for (int nranks : {2, 3, 5}) {
    hear_of(nranks, nranks / 2, Departure::kLeft, [](OutOfBand& oob) {
      EXPECT_FALSE(oob.fault());
      EXPECT_FALSE(oob.barrier().ok()) << "an exchange needs all ranks";
    });
  }
}

TEST(Faults, ADeathOrAbortIsHeardByAllWhoListen) {
  for (Departure how : {Departure::kDied, Departure::kAborted, Departure::kFailed}) {
    for (int nranks : {2, 3, 5}) {
      hear_of(nranks, 1, how, [&](OutOfBand& oob) {
        const auto fault = oob.fault();
        ASSERT_TRUE(fault);
        EXPECT_EQ(fault->rank, 1u);
        EXPECT_EQ(fault->how, how);
        EXPECT_EQ(oob.barrier().code(), Code::kRemote);
      });
    }
  }
}

TEST(Faults, ARankThatIsMissedIsNamedToAll) {
  constexpr int kRanks = 4;
  const UniqueId id = fresh_id();
  std::atomic<int> joined{0}, heard{0};
  run_ranks(kRanks, [&](int rank) {
    Result<std::unique_ptr<OutOfBand>> oob = join(id, rank, kRanks);
    ASSERT_TRUE(oob.ok()) << last_error_text();
    ASSERT_TRUE(listen_until_all(**oob, joined, kRanks));
    if (rank == 0) return (*oob)->say_goodbye(Departure::kLeft);
    const Departure first = await_departure(**oob, 0);
    EXPECT_TRUE(first == Departure::kLeft || (rank != 2 && first == Departure::kMissed)) << "rank " << rank;
    if (rank == 2) (*oob)->report({0, Departure::kMissed});
    for (const double end = now_usec() + 10e6; !(*oob)->fault() && now_usec() < end; std::this_thread::yield()) {
      (*oob)->listen();
    }
    EXPECT_TRUE(listen_until_all(**oob, heard, kRanks - 1));
    const auto fault = (*oob)->fault();
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault->rank, 0u);
    EXPECT_EQ(fault->how, Departure::kMissed);
  });
  EXPECT_EQ(heard, kRanks - 1);
}

TEST(Faults, ListeningLeavesTheDataOfAnExchangeAlone) {
  constexpr int kRanks = 3;
  const UniqueId id = fresh_id();
  run_ranks(kRanks, [&](int rank) {
    Result<std::unique_ptr<OutOfBand>> oob = join(id, rank, kRanks);
    ASSERT_TRUE(oob.ok()) << last_error_text();
    std::atomic<bool> done{false};
    std::thread listener([&] {
      while (!done) (*oob)->listen();
    });
    for (uint32_t i = 0; i < 50; ++i) {
      (*oob)->listen();
      auto all = (*oob)->all_gather_value(static_cast<uint32_t>(rank) + i);
      EXPECT_TRUE(all.ok() && *all == (std::vector<uint32_t>{i, 1 + i, 2 + i})) << last_error_text();
    }
    (*oob)->say_goodbye(Departure::kLeft);
    done = true;
    listener.join();
    EXPECT_FALSE((*oob)->fault());
  });
}

TEST(Faults, AProcessThatDiesBeforeAllHaveJoinedIsNamed) {
  RootLimits limits;
  limits.grace_usec = 50e3;
  Handover<UniqueId> id;
  const pid_t victim = fork_rank([&] {
    const Greeting greeting = make_greeting(Secret(id.take()), 1, 3);
    Stranger dying(id.take());
    dying.say(&greeting, sizeof(greeting));
    Proof welcome{};
    return dying.hear(welcome) ? 0 : 1;
  });
  TestRoot root(limits);
  id.give(root.id());
  EXPECT_EQ(wait_for_exit(victim), 0);
  for (int rank : {0, 2, 1}) {  // also who comes late
    EXPECT_EQ(join(root.id(), rank, 3).status().code(), Code::kRemote);
    EXPECT_TRUE(mentions(last_error_text(), "rank 1 (")) << last_error_text();
    EXPECT_TRUE(mentions(last_error_text(), fmt::format("process {}", victim))) << last_error_text();
    if (rank == 2) break;
  }
}

TEST(Faults, RanksThatDisagreeAboutTheirNumberAllGetTheReason) {
  RootLimits limits;
  limits.grace_usec = 50e3;
  TestRoot root(limits);
  Texts texts;
  run_ranks(3, [&](int rank) {
    EXPECT_EQ(join(root.id(), rank, rank == 1 ? 4 : 3).status().code(), Code::kInvalidUsage);
    texts.add(last_error_text());
  });
  EXPECT_TRUE(texts.all_mention("4 ranks")) << texts.joined();
  EXPECT_TRUE(texts.all_mention("rank 1 (")) << texts.joined();
  // Whoever was first set the number; a rank that was expected but never comes must not keep the root.
  while (true) {
    const Result<std::unique_ptr<OutOfBand>> late = join(root.id(), 2, 4);
    if (late.status().code() != Code::kInvalidUsage) break;
  }
}

// Aborts `wait` from another thread; the best of a few delays, because the machine may be busy.
template <typename Function>
double best_abort_msec(Function wait) {
  double best = std::numeric_limits<double>::infinity();
  for (int attempt = 0; attempt < 5; ++attempt) {
    StopFlag abort;
    std::atomic<bool> started{false};
    double set_at = 0, returned_at = 0;
    std::thread waiter([&] {
      const Code code = wait(abort, started).code();
      returned_at = now_usec();
      EXPECT_TRUE(code == Code::kInternal || code == Code::kRemote) << static_cast<int>(code);
    });
    while (!started) std::this_thread::yield();
    set_at = now_usec();
    abort.stop();
    waiter.join();
    best = std::min(best, (returned_at - set_at) / 1000);
  }
  return best;
}

TEST(Faults, AbortEndsARendezvousWithin100Msec) {
  EXPECT_LT(best_abort_msec([](const StopFlag& abort, std::atomic<bool>& started) {
              const UniqueId id = fresh_id();
              started = true;
              return join(id, 0, 2, abort).status();
            }), 100);
}

TEST(Faults, AbortEndsTheSearchForARootWithin100Msec) {
  UniqueId id = fresh_id();
  id.address = loopback();
  set_port(id.address, free_port());
  EXPECT_LT(best_abort_msec([&](const StopFlag& abort, std::atomic<bool>& started) {
              started = true;
              return join(id, 0, 2, abort).status();
            }), 100);
}

TEST(Faults, AbortEndsABarrierWithin100MsecAndThePeerNamesTheAborted) {
  EXPECT_LT(best_abort_msec([](const StopFlag& abort, std::atomic<bool>& started) {
              const UniqueId id = fresh_id();
              std::atomic<bool> done{false};
              std::thread peer([&] {
                Result<std::unique_ptr<OutOfBand>> oob = join(id, 1, 2);
                ASSERT_TRUE(oob.ok()) << last_error_text();
                while (!done) std::this_thread::yield();
                // Rank 0 had entered the first one, so that one may still succeed here.
                if ((*oob)->barrier().ok()) {
                  EXPECT_EQ((*oob)->barrier().code(), Code::kRemote);
                }
                EXPECT_TRUE(mentions(last_error_text(), "rank 0 aborted")) << last_error_text();
              });
              Result<std::unique_ptr<OutOfBand>> oob = join(id, 0, 2, abort);
              EXPECT_TRUE(oob.ok()) << last_error_text();
              started = true;
              const Status status = oob.ok() ? (*oob)->barrier() : oob.status();
              done = true;
              peer.join();
              return status;
            }), 100);
}

TEST(Faults, MismatchedExchangesAreAnErrorNotAHang) {
  const UniqueId id = fresh_id();
  run_ranks(3, [&](int rank) {
    Result<std::unique_ptr<OutOfBand>> oob = join(id, rank, 3);
    ASSERT_TRUE(oob.ok()) << last_error_text();
    std::vector<std::byte> all(rank == 1 ? 24 : 48);
    EXPECT_FALSE((*oob)->all_gather(all).ok());
    EXPECT_FALSE((*oob)->all_gather(std::span(all).first(24)).ok());
  });
}

TEST(Faults, ARootThatNobodyRunsIsNamedAfterTheRetries) {
  UniqueId id = fresh_id();
  id.address = loopback();
  set_port(id.address, free_port());
  EXPECT_EQ(join(id, 1, 2).status().code(), Code::kRemote);
  EXPECT_TRUE(mentions(last_error_text(), to_text(id.address))) << last_error_text();
}

TEST(Faults, ARootOfAnotherCommunicatorIsNotBelieved) {
  const UniqueId right = fresh_id(), wrong = fresh_id();
  UniqueId mixed = right;
  std::ranges::copy(wrong.secret, mixed.secret);
  EXPECT_EQ(join(mixed, 0, 2).status().code(), Code::kRemote);
}

TEST(Faults, AForkedChildThatForgetsARingDoesNotBreakIt) {
  const UniqueId id = fresh_id();
  run_ranks(2, [&](int rank) {
    Result<std::unique_ptr<OutOfBand>> oob = join(id, rank, 2);
    ASSERT_TRUE(oob.ok());
    if (rank == 0) {
      EXPECT_EQ(wait_for_exit(fork_rank([&] {
        delete (*oob).release();
        return 0;
      })), 0);
    }
    EXPECT_TRUE((*oob)->barrier().ok()) << last_error_text();
  });
}

}  // namespace
}  // namespace talaria
