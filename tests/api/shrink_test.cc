// ncclCommShrink on CPU ranks that are threads of this process.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "api/children.h"
#include "api/variable.h"

namespace talaria::test {
namespace {

using ShrinkApi = HostRanks;
using Clock = std::chrono::steady_clock;

bool mentions(const std::string& text) { return last_error().find(text) != std::string::npos; }

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

ncclResult_t shrink(ncclComm_t comm, std::vector<int> excluded, ncclComm_t* child, int flags = NCCL_SHRINK_DEFAULT) {
  return ncclCommShrink(comm, excluded.data(), static_cast<int>(excluded.size()), child, nullptr, flags);
}

TEST_F(ShrinkApi, TheRemainingRanksKeepTheirOrder) {
  Clique clique(5);
  ASSERT_EQ(clique.result(), ncclSuccess) << last_error();
  on_ranks(clique, {0, 2, 4}, [](int rank, ncclComm_t comm) {
    ncclComm_t child = nullptr;
    ASSERT_EQ(shrink(comm, {1, 3}, &child), ncclSuccess) << last_error();
    EXPECT_EQ(place_in(child), (Place{rank / 2, 3}));
    EXPECT_EQ(sum_over(child, 1 << rank), 0b10101);
    EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
  });
  on_every_rank(clique, [](int rank, ncclComm_t comm) {
    EXPECT_EQ(sum_over(comm, 1 << rank), 0b11111) << "the parent goes on";
  });
}

// Ranks that were excluded before have made fewer calls than the others.
TEST_F(ShrinkApi, SeveralChildrenOfOneParent) {
  Clique clique(4);
  on_every_rank(clique, [](int rank, ncclComm_t comm) {
    for (const int excluded : {3, 0, 0, 2, 1}) {
      if (rank == excluded) continue;
      ncclComm_t child = nullptr;
      ASSERT_EQ(shrink(comm, {excluded}, &child), ncclSuccess) << last_error();
      EXPECT_EQ(place_in(child), (Place{rank - (rank > excluded ? 1 : 0), 3}));
      EXPECT_EQ(sum_over(child, 1 << rank), 0b1111 - (1 << excluded));
      EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
    }
  });
}

TEST_F(ShrinkApi, DownToOneRank) {
  Clique clique(6);
  on_every_rank(clique, [](int rank, ncclComm_t parent) {
    ncclComm_t comm = parent;
    for (int left = 6, me = rank; left > 1; --left, --me) {
      if (me == 0) break;  // the first is excluded each time
      ncclComm_t child = nullptr;
      ASSERT_EQ(shrink(comm, {0}, &child), ncclSuccess) << last_error();
      EXPECT_EQ(place_in(child), (Place{me - 1, left - 1}));
      EXPECT_EQ(sum_over(child, 1), left - 1);
      if (comm != parent) {
        EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
      }
      comm = child;
    }
    if (comm != parent) {
      EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    }
  });
}

TEST_F(ShrinkApi, ChildrenOutliveTheirParent) {
  std::vector<ncclComm_t> children(3);
  {
    Clique clique(4);
    on_ranks(clique, {1, 2, 3}, [&](int rank, ncclComm_t comm) {
      ASSERT_EQ(shrink(comm, {0}, &children[static_cast<size_t>(rank - 1)]), ncclSuccess) << last_error();
    });
  }
  std::vector<std::thread> threads;
  for (ncclComm_t child : children) {
    threads.emplace_back([child] {
      EXPECT_EQ(sum_over(child, 1), 3);
      EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// One thread for all ranks; two children of each parent, which take turns.
TEST_F(ShrinkApi, InAGroup) {
  Clique clique(4);
  std::vector<ncclComm_t> first(4, nullptr), second(4, nullptr);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int r = 0; r < 4; ++r) {
    const auto at = static_cast<size_t>(r);
    if (r != 1) {
      EXPECT_EQ(shrink(clique[r], {1}, &first[at]), ncclSuccess);
    }
    if (r < 2) {
      EXPECT_EQ(shrink(clique[r], {2, 3}, &second[at]), ncclSuccess);
    }
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << last_error();
  EXPECT_EQ(place_in(first[0]), (Place{0, 3}));
  EXPECT_EQ(place_in(first[2]), (Place{1, 3}));
  EXPECT_EQ(place_in(first[3]), (Place{2, 3}));
  EXPECT_EQ(place_in(second[0]), (Place{0, 2}));
  EXPECT_EQ(place_in(second[1]), (Place{1, 2}));
  for (ncclComm_t comm : first) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  for (ncclComm_t comm : second) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

// Ranks 0 and 1 wait for rank 2 in an operation; a watchdog thread of each shrinks.
TEST_F(ShrinkApi, AbortEndsWhatHangs) {
  Clique clique(3);
  on_ranks(clique, {0, 1}, [](int rank, ncclComm_t comm) {
    std::atomic<bool> started{false};
    ncclResult_t result = ncclSuccess;
    std::thread waiting([&] {
      int value = 1;
      started = true;
      result = ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr);
    });
    while (!started) std::this_thread::yield();
    ncclComm_t child = nullptr;
    ASSERT_EQ(shrink(comm, {2}, &child, NCCL_SHRINK_ABORT), ncclSuccess) << last_error();
    waiting.join();
    EXPECT_NE(result, ncclSuccess);
    EXPECT_EQ(sum_over(child, 1 << rank), 0b11);
    EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
    int value = 1;
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr), ncclInvalidUsage);
    EXPECT_NE(last_error().find("revoked"), std::string::npos) << last_error();
  });
}

TEST_F(ShrinkApi, AfterRevoke) {
  Clique clique(3);
  on_every_rank(clique, [](int rank, ncclComm_t comm) {
    EXPECT_EQ(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT), ncclSuccess);
    ncclComm_t child = nullptr;
    ASSERT_EQ(ncclCommSplit(comm, 0, -rank, &child, nullptr), ncclSuccess) << last_error();
    EXPECT_EQ(place_in(child), (Place{2 - rank, 3}));
    EXPECT_EQ(sum_over(child, 1 << rank), 0b111);
    EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
    if (rank == 2) return;
    for (const int flags : {NCCL_SHRINK_DEFAULT, NCCL_SHRINK_ABORT}) {
      ASSERT_EQ(shrink(comm, {2}, &child, flags), ncclSuccess) << last_error();
      EXPECT_EQ(sum_over(child, 1 << rank), 0b11);
      EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
    }
  });
}

// Whoever of the remaining ranks does not come: also the one at which the others meet.
TEST_F(ShrinkApi, ARankThatDoesNotComeIsNamedInTime) {
  const Variable bound("TALARIA_INIT_TIMEOUT", "1");
  for (const int absent : {1, 2, 3}) {
    Clique clique(4);
    std::vector<int> coming;
    for (int r = 1; r < 4; ++r) {
      if (r != absent) coming.push_back(r);
    }
    const auto begin = Clock::now();
    on_ranks(clique, coming, [&](int, ncclComm_t comm) {
      ncclComm_t child = not_null();
      EXPECT_EQ(shrink(comm, {0}, &child), ncclRemoteError);
      EXPECT_EQ(child, nullptr);
      EXPECT_NE(last_error().find("rank " + std::to_string(absent) + " of the parent communicator"), std::string::npos)
          << last_error();
    });
    EXPECT_LT(seconds_since(begin), 4);
    on_every_rank(clique, [](int rank, ncclComm_t comm) {
      EXPECT_EQ(sum_over(comm, 1 << rank), 0b1111) << "the parent goes on";
      if (rank == 0) return;
      ncclComm_t child = nullptr;
      ASSERT_EQ(shrink(comm, {0}, &child), ncclSuccess) << "they may try again: " << last_error();
      EXPECT_EQ(sum_over(child, 1 << rank), 0b1110);
      EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
    });
  }
}

TEST_F(ShrinkApi, ARankThatHasLeftIsNamedAtOnce) {
  for (const int gone : {0, 1, 2}) {
    ncclComm_t comms[4];
    ASSERT_EQ(ncclCommInitAll(comms, 4, nullptr), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comms[gone]), ncclSuccess);
    const auto begin = Clock::now();
    std::vector<std::thread> threads;
    for (int r = 0; r < 3; ++r) {
      if (r == gone) continue;
      threads.emplace_back([&, r] {
        ncclComm_t child = not_null();
        EXPECT_EQ(shrink(comms[r], {3}, &child), ncclRemoteError);
        EXPECT_EQ(child, nullptr);
        const std::string name = "rank " + std::to_string(gone);
        EXPECT_TRUE(mentions(name + " left") || mentions(name + " of the parent communicator")) << last_error();
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_LT(seconds_since(begin), 2);
    for (int r = 0; r < 4; ++r) {
      EXPECT_EQ(r == gone ? ncclSuccess : ncclCommDestroy(comms[r]), ncclSuccess);
    }
  }
}

TEST_F(ShrinkApi, AbortOfTheParentEndsIt) {
  ncclComm_t comms[3];
  ASSERT_EQ(ncclCommInitAll(comms, 3, nullptr), ncclSuccess);
  for (int r = 0; r < 2; ++r) {
    ncclComm_t child = not_null();
    ncclResult_t result = ncclSuccess;
    std::thread shrinking([&] { result = shrink(comms[r], {2}, &child); });
    EXPECT_EQ(ncclCommAbort(comms[r]), ncclSuccess);
    shrinking.join();
    EXPECT_NE(result, ncclSuccess);
    EXPECT_EQ(child, nullptr);
  }
  EXPECT_EQ(ncclCommAbort(comms[2]), ncclSuccess);
}

TEST_F(ShrinkApi, WrongArguments) {
  Clique clique(3);
  const auto expect = [](ncclResult_t got, const std::string& text) {
    EXPECT_EQ(got, ncclInvalidArgument) << text;
    EXPECT_EQ(last_error(), text);
  };
  int list[] = {1, 2};
  ncclComm_t child = not_null();
  expect(ncclCommShrink(clique[0], list, 1, nullptr, nullptr, 0), "CommShrink : newcomm argument is NULL");
  expect(ncclCommShrink(nullptr, list, 1, &child, nullptr, 0), "CommShrink : comm argument is NULL");
  EXPECT_EQ(child, nullptr);
  expect(ncclCommShrink(clique[0], nullptr, 1, &child, nullptr, 0), "CommShrink : excludeRanksList argument is NULL");
  const std::string counts = " of 3 ranks; expected at least one, and one left";
  for (int count : {-1, 0, 3, 1 << 30}) {
    expect(ncclCommShrink(clique[0], list, count, &child, nullptr, 0),
           "CommShrink : excludeRanksCount is " + std::to_string(count) + counts);
  }
  expect(ncclCommShrink(clique[0], list, 1, &child, nullptr, 2),
         "CommShrink : shrinkFlags is 2; expected NCCL_SHRINK_DEFAULT (0) or NCCL_SHRINK_ABORT (1)");
  const std::string name = "CommShrink : excludeRanksList";
  expect(shrink(clique[0], {-1}, &child), name + "[0] is -1 (it should be in the 0..2 range)");
  expect(shrink(clique[0], {1, 3}, &child), name + "[1] is 3 (it should be in the 0..2 range)");
  expect(shrink(clique[0], {1, 1}, &child), name + "[1] is 1 after 1: expected each rank once, in ascending order");
  expect(shrink(clique[0], {2, 1}, &child), name + "[1] is 1 after 2: expected each rank once, in ascending order");
  expect(shrink(clique[1], {1}, &child), name + "[0] is 1, the caller: only ranks that remain call");
  ncclConfig_t config = {};
  EXPECT_EQ(ncclCommShrink(clique[0], list, 1, &child, &config, 0), ncclInvalidArgument);
  ncclComm_t gone = nullptr;
  ASSERT_EQ(ncclCommInitAll(&gone, 1, nullptr), ncclSuccess);
  ASSERT_EQ(ncclCommDestroy(gone), ncclSuccess);
  EXPECT_EQ(shrink(gone, {1}, &child), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(shrink(clique[0], {0}, &child), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument) << "the group fails with it";
}

}  // namespace
}  // namespace talaria::test
