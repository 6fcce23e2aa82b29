// ncclCommSplit of non-blocking communicators: the child is there at once, and parent and child are polled.
#include <cstring>
#include <thread>
#include <vector>

#include "api/nonblocking.h"
#include "support/threads.h"

namespace talaria::test {
namespace {

using NonBlockingSplit = HostRanks;

ncclComm_t not_null() { return reinterpret_cast<ncclComm_t>(0x10); }

bool last_error_has(const char* part) { return strstr(ncclGetLastError(nullptr), part) != nullptr; }

// B-39
TEST_F(NonBlockingSplit, TheChildIsThereAtOnceAndTheParentIsPolled) {
  NonBlockingClique clique(5);
  std::vector<ncclComm_t> children(5, not_null());
  for (int rank = 0; rank < 5; ++rank) {
    ncclComm_t& child = children[static_cast<size_t>(rank)];
    const int color = rank == 4 ? NCCL_SPLIT_NOCOLOR : rank % 2;
    EXPECT_EQ(ncclCommSplit(clique[rank], color, -rank, &child, nullptr), ncclInProgress);
    EXPECT_EQ(child == nullptr, rank == 4);
  }
  for (int rank = 0; rank < 5; ++rank) EXPECT_EQ(settled(clique[rank]), ncclSuccess) << ncclGetLastError(nullptr);
  run_ranks(5, [&](int rank) { EXPECT_EQ(sum_over(clique[rank], 1 << rank), 0b11111) << "the parent goes on"; });
  run_ranks(4, [&](int rank) {
    ncclComm_t child = children[static_cast<size_t>(rank)];
    EXPECT_EQ(settled(child), ncclSuccess);
    int place = -1, count = -1;
    EXPECT_EQ(ncclCommUserRank(child, &place), ncclSuccess);
    EXPECT_EQ(ncclCommCount(child, &count), ncclSuccess);
    EXPECT_EQ(place, rank < 2 ? 1 : 0) << "by key";
    EXPECT_EQ(count, 2);
    EXPECT_EQ(sum_over(child, 1 << rank), rank % 2 == 0 ? 0b0101 : 0b1010);
  });
  EXPECT_EQ(children[4], nullptr);
  for (int rank = 0; rank < 5; ++rank) clique.abort(rank);
  run_ranks(4, [&](int rank) {
    ncclComm_t child = children[static_cast<size_t>(rank)];
    EXPECT_EQ(sum_over(child, 1), 2) << "children outlive their parent";
    EXPECT_EQ(finished(ncclCommFinalize(child), child), ncclSuccess) << "non-blocking as the parent";
    EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
  });
}

// One thread for all ranks; two splits of each parent, which take turns. Then a split of a split.
TEST_F(NonBlockingSplit, SplitsInAGroup) {
  NonBlockingClique clique(3);
  std::vector<ncclComm_t> first(3, not_null()), second(3, not_null()), third(3, not_null());
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int r = 0; r < 3; ++r) {
    const auto at = static_cast<size_t>(r);
    EXPECT_EQ(ncclCommSplit(clique[r], 0, -r, &first[at], nullptr), ncclSuccess);
    EXPECT_EQ(ncclCommSplit(clique[r], r == 2 ? NCCL_SPLIT_NOCOLOR : 0, 0, &second[at], nullptr), ncclSuccess);
    EXPECT_EQ(first[at], nullptr) << "written at the end of the group";
  }
  ASSERT_EQ(ncclGroupEnd(), ncclInProgress);
  for (int r = 0; r < 3; ++r) EXPECT_EQ(settled(clique[r]), ncclSuccess);
  EXPECT_EQ(second[2], nullptr);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (size_t r = 0; r < 3; ++r) {
    EXPECT_EQ(state_of(first[r]), ncclSuccess);
    EXPECT_EQ(ncclCommSplit(first[r], 7, 0, &third[r], nullptr), ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclInProgress);
  for (ncclComm_t comm : first) EXPECT_EQ(settled(comm), ncclSuccess);
  for (auto* comms : {&first, &second, &third}) {
    for (ncclComm_t comm : *comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  }
}

TEST_F(NonBlockingSplit, BothAreInProgressUntilAllRanksHaveCome) {
  NonBlockingClique clique(2);
  ncclComm_t children[2] = {};
  ASSERT_EQ(ncclCommSplit(clique[0], 0, 0, &children[0], nullptr), ncclInProgress);
  EXPECT_EQ(settled(clique[0], 0.1), ncclInProgress);
  EXPECT_EQ(state_of(children[0]), ncclInProgress);
  int value = 0;
  EXPECT_EQ(ncclCommCount(children[0], &value), ncclInvalidArgument);
  EXPECT_EQ(ncclCommCount(clique[0], &value), ncclInvalidArgument);
  ASSERT_EQ(ncclCommSplit(clique[1], 0, 0, &children[1], nullptr), ncclInProgress);
  for (int rank : {0, 1}) EXPECT_EQ(settled(clique[rank]), ncclSuccess);
  for (ncclComm_t child : children) EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
}

TEST_F(NonBlockingSplit, AbortOfTheParentThenOfTheChild) {
  NonBlockingClique clique(2);
  ncclComm_t child = nullptr;
  ASSERT_EQ(ncclCommSplit(clique[0], 0, 0, &child, nullptr), ncclInProgress);
  const auto start = Clock::now();
  clique.abort(0);
  EXPECT_NE(settled(child), ncclSuccess);
  EXPECT_EQ(ncclCommAbort(child), ncclSuccess);
  EXPECT_LT(seconds_since(start), 2);
  EXPECT_EQ(threads_named("talaria-init"), 0);
}

TEST_F(NonBlockingSplit, AbortOfTheChildThenOfTheParent) {
  NonBlockingClique clique(2);
  ncclComm_t child = nullptr;
  ASSERT_EQ(ncclCommSplit(clique[0], 0, 0, &child, nullptr), ncclInProgress);
  const auto start = Clock::now();
  EXPECT_EQ(ncclCommAbort(child), ncclSuccess);
  EXPECT_EQ(state_of(clique[0]), ncclInProgress) << "its other ranks may still come";
  clique.abort(0);
  EXPECT_LT(seconds_since(start), 2);
  EXPECT_EQ(threads_named("talaria-init"), 0);
}

TEST_F(NonBlockingSplit, AWrongColorIsToldToAll) {
  NonBlockingClique clique(3);
  std::vector<ncclComm_t> children(3);
  for (int rank = 0; rank < 3; ++rank) {
    ncclComm_t& child = children[static_cast<size_t>(rank)];
    EXPECT_EQ(ncclCommSplit(clique[rank], rank == 2 ? -7 : 0, 0, &child, nullptr), ncclInProgress);
  }
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(settled(clique[rank]), ncclInvalidArgument);
  EXPECT_TRUE(last_error_has("rank 2 gives color -7")) << ncclGetLastError(nullptr);
  for (ncclComm_t child : children) {
    EXPECT_EQ(settled(child), ncclInvalidArgument);
    EXPECT_EQ(ncclCommAbort(child), ncclSuccess);
  }
}

TEST_F(NonBlockingSplit, TheModeOfAChildIsItsOwn) {
  NonBlockingClique parent(1);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclComm_t child = nullptr, grandchild = nullptr;
  ASSERT_EQ(ncclCommSplit(parent[0], 0, 0, &child, &config), ncclInProgress);
  ASSERT_EQ(settled(parent[0]), ncclSuccess);
  ASSERT_EQ(settled(child), ncclSuccess);
  config.blocking = 0;
  ASSERT_EQ(ncclCommSplit(child, 0, 0, &grandchild, &config), ncclSuccess) << "the parent blocks";
  EXPECT_EQ(ncclCommFinalize(child), ncclSuccess);
  EXPECT_EQ(ncclCommFinalize(grandchild), ncclInProgress);
  EXPECT_EQ(ncclCommDestroy(child), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(grandchild), ncclSuccess);
}

}  // namespace
}  // namespace talaria::test
