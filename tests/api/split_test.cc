// ncclCommSplit on CPU ranks that are threads of this process.
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "api/children.h"

namespace talaria::test {
namespace {

using SplitApi = HostRanks;

TEST_F(SplitApi, RanksOfOneColorFormACommunicator) {
  Clique clique(5);
  ASSERT_EQ(clique.result(), ncclSuccess) << ncclGetLastError(nullptr);
  on_every_rank(clique, [](int rank, ncclComm_t comm) {
    ncclComm_t child = nullptr;
    ASSERT_EQ(ncclCommSplit(comm, rank % 2, 0, &child, nullptr), ncclSuccess) << ncclGetLastError(nullptr);
    EXPECT_EQ(place_in(child), (Place{rank / 2, rank % 2 == 0 ? 3 : 2}));
    EXPECT_EQ(sum_over(child, 1 << rank), rank % 2 == 0 ? 0b10101 : 0b01010);
    EXPECT_EQ(sum_over(comm, 1 << rank), 0b11111) << "the parent goes on";
    EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
  });
}

TEST_F(SplitApi, KeysGiveTheOrderAndOldRanksBreakTies) {
  Clique clique(5);
  constexpr int keys[] = {7, -3, 7, 0, -3};
  constexpr int places[] = {3, 0, 4, 2, 1};
  on_every_rank(clique, [&](int rank, ncclComm_t comm) {
    ncclComm_t child = nullptr;
    ASSERT_EQ(ncclCommSplit(comm, 4, keys[rank], &child, nullptr), ncclSuccess) << ncclGetLastError(nullptr);
    EXPECT_EQ(place_in(child), (Place{places[rank], 5}));
    EXPECT_EQ(sum_over(child, 1 << rank), 0b11111);
    EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
  });
}

TEST_F(SplitApi, WithoutColorSucceedsWithNoCommunicator) {
  Clique clique(3);
  on_every_rank(clique, [](int rank, ncclComm_t comm) {
    ncclComm_t child = not_null();
    const bool outside = rank == 0;
    ASSERT_EQ(ncclCommSplit(comm, outside ? NCCL_SPLIT_NOCOLOR : 0, 0, &child, nullptr), ncclSuccess);
    EXPECT_EQ(child == nullptr, outside);
    if (!outside) {
      EXPECT_EQ(place_in(child), (Place{rank - 1, 2}));
    }
    EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
  });
}

TEST_F(SplitApi, ChildrenOfOneRankAndChildrenOfChildren) {
  Clique clique(4);
  on_every_rank(clique, [](int rank, ncclComm_t comm) {
    ncclComm_t half = nullptr, alone = nullptr;
    ASSERT_EQ(ncclCommSplit(comm, rank / 2, 0, &half, nullptr), ncclSuccess) << ncclGetLastError(nullptr);
    ASSERT_EQ(ncclCommSplit(half, rank, 0, &alone, nullptr), ncclSuccess) << ncclGetLastError(nullptr);
    EXPECT_EQ(place_in(alone), (Place{0, 1}));
    EXPECT_EQ(sum_over(half, 1 << rank), rank < 2 ? 0b0011 : 0b1100);
    EXPECT_EQ(sum_over(alone, 5), 5);
    EXPECT_EQ(ncclCommDestroy(half), ncclSuccess);
    EXPECT_EQ(sum_over(alone, 6), 6);
    EXPECT_EQ(ncclCommDestroy(alone), ncclSuccess);
  });
}

TEST_F(SplitApi, ChildrenOutliveTheirParent) {
  std::vector<ncclComm_t> children(3);
  {
    Clique clique(3);
    on_every_rank(clique, [&](int rank, ncclComm_t comm) {
      ASSERT_EQ(ncclCommSplit(comm, 0, 0, &children[static_cast<size_t>(rank)], nullptr), ncclSuccess);
    });
  }
  std::vector<std::thread> threads;
  for (size_t r = 0; r < children.size(); ++r) {
    threads.emplace_back([&, r] {
      EXPECT_EQ(sum_over(children[r], 1 << r), 0b111);
      EXPECT_EQ(ncclCommDestroy(children[r]), ncclSuccess);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// One thread for all ranks; two splits of each parent, which take turns.
TEST_F(SplitApi, SplitsInAGroup) {
  Clique clique(3);
  std::vector<ncclComm_t> first(3, not_null()), second(3, not_null());
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int r = 0; r < 3; ++r) {
    const auto at = static_cast<size_t>(r);
    EXPECT_EQ(ncclCommSplit(clique[r], r == 1 ? 1 : 0, -r, &first[at], nullptr), ncclSuccess);
    EXPECT_EQ(ncclCommSplit(clique[r], r == 2 ? NCCL_SPLIT_NOCOLOR : 0, 0, &second[at], nullptr), ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
  EXPECT_EQ(place_in(first[0]), (Place{1, 2}));
  EXPECT_EQ(place_in(first[1]), (Place{0, 1}));
  EXPECT_EQ(place_in(first[2]), (Place{0, 2}));
  EXPECT_EQ(place_in(second[0]), (Place{0, 2}));
  EXPECT_EQ(place_in(second[1]), (Place{1, 2}));
  EXPECT_EQ(second[2], nullptr);
  for (ncclComm_t comm : first) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  for (ncclComm_t comm : second) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST_F(SplitApi, AWrongColorFailsOnAllRanksByName) {
  Clique clique(3);
  on_every_rank(clique, [](int rank, ncclComm_t comm) {
    ncclComm_t child = not_null();
    EXPECT_EQ(ncclCommSplit(comm, rank == 2 ? -7 : 0, 0, &child, nullptr), ncclInvalidArgument);
    EXPECT_EQ(child, nullptr);
    EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("rank 2 gives color -7"), std::string::npos);
    EXPECT_EQ(sum_over(comm, 1), 3) << "the parent goes on";
  });
}

TEST_F(SplitApi, WrongArguments) {
  Clique clique(1);
  EXPECT_EQ(ncclCommSplit(clique[0], 0, 0, nullptr, nullptr), ncclInvalidArgument);
  ncclComm_t child = not_null();
  EXPECT_EQ(ncclCommSplit(nullptr, 0, 0, &child, nullptr), ncclInvalidArgument);
  EXPECT_EQ(child, nullptr);
  ncclConfig_t config;
  memset(&config, 0, sizeof(config));
  child = not_null();
  EXPECT_EQ(ncclCommSplit(clique[0], 0, 0, &child, &config), ncclInvalidArgument);
  EXPECT_EQ(child, nullptr);
}

TEST_F(SplitApi, ConfigOfTheChildIsAccepted) {
  Clique clique(1);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.splitShare = 1;
  config.maxCTAs = 2;
  ncclComm_t child = nullptr;
  ASSERT_EQ(ncclCommSplit(clique[0], 0, 0, &child, &config), ncclSuccess) << ncclGetLastError(nullptr);
  EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
}

// Rank 1 never comes: an abort of the parent ends the split of rank 0.
TEST_F(SplitApi, AbortOfTheParentEndsASplit) {
  ncclComm_t comms[2];
  ASSERT_EQ(ncclCommInitAll(comms, 2, nullptr), ncclSuccess);
  ncclComm_t child = not_null();
  ncclResult_t result = ncclSuccess;
  std::thread splitting([&] { result = ncclCommSplit(comms[0], 0, 0, &child, nullptr); });
  EXPECT_EQ(ncclCommAbort(comms[0]), ncclSuccess);
  splitting.join();
  EXPECT_NE(result, ncclSuccess);
  EXPECT_EQ(child, nullptr);
  EXPECT_EQ(ncclCommAbort(comms[1]), ncclSuccess);
}

}  // namespace
}  // namespace talaria::test
