// Groups through the C API: what a failed call does to its group, and what one thread can drive.
#include <vector>

#include "api/host_ranks.h"

namespace talaria::test {
namespace {

class GroupApi : public HostRanks {
 protected:
  void SetUp() override { ASSERT_EQ(clique_.result(), ncclSuccess) << ncclGetLastError(nullptr); }

  // Sums rank + 1 over all ranks, one element each.
  void expect_working_all_reduce() {
    std::vector<int> values(static_cast<size_t>(clique_.size()));
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int rank = 0; rank < clique_.size(); ++rank) {
      values[rank] = rank + 1;
      EXPECT_EQ(ncclAllReduce(&values[rank], &values[rank], 1, ncclInt, ncclSum, clique_[rank], nullptr), ncclSuccess);
    }
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
    for (int value : values) EXPECT_EQ(value, clique_.size() * (clique_.size() + 1) / 2);
  }

  Clique clique_{3};
};

TEST_F(GroupApi, OneThreadDrivesAllRanks) { expect_working_all_reduce(); }

TEST_F(GroupApi, EndWithoutStart) {
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_STREQ(ncclGetLastError(nullptr), "ncclGroupEnd: not in a group call.");
  expect_working_all_reduce();
}

TEST_F(GroupApi, InnerEndRunsNothing) {
  std::vector<int> values = {1, 2, 3};
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(&values[rank], &values[rank], 1, ncclInt, ncclSum, clique_[rank], nullptr), ncclSuccess);
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    EXPECT_EQ(values[rank], rank + 1);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_EQ(values, (std::vector<int>{6, 6, 6}));
}

TEST_F(GroupApi, WrongArgumentFailsTheEndAndRunsNothing) {
  std::vector<int> values = {1, 2, 3};
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(ncclAllReduce(&values[rank], &values[rank], 1, ncclInt, ncclSum, clique_[rank], nullptr), ncclSuccess);
  }
  EXPECT_EQ(ncclBroadcast(&values[0], &values[0], 1, ncclInt, 99, clique_[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_EQ(values, (std::vector<int>{1, 2, 3}));
  expect_working_all_reduce();
}

TEST_F(GroupApi, UnsupportedCallFailsTheEnd) {
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclSignal(0, 0, 0, 0, clique_[0], nullptr), ncclInvalidUsage);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  expect_working_all_reduce();
}

TEST_F(GroupApi, FailedQuestionLeavesTheGroupAlone) {
  int value = 1;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclCommCount(nullptr, &value), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
}

TEST_F(GroupApi, WrongRankFailsAGroupOfInits) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ncclComm_t comms[2] = {};
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclCommInitRank(&comms[0], 2, id, 0), ncclSuccess);
  EXPECT_EQ(ncclCommInitRank(&comms[1], 2, id, 2), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_EQ(comms[0], nullptr);
  EXPECT_EQ(comms[1], nullptr);
  expect_working_all_reduce();
}

TEST_F(GroupApi, BroadcastNeedsInputAtTheRootOnly) {
  std::vector<int> values = {7, 0, 0};
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < 3; ++rank) {
    const void* input = rank == 0 ? &values[0] : nullptr;
    EXPECT_EQ(ncclBroadcast(input, &values[rank], 1, ncclInt, 0, clique_[rank], nullptr), ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
  EXPECT_EQ(values, (std::vector<int>{7, 7, 7}));
}

TEST_F(GroupApi, EveryPairExchanges) {
  int sent[3], received[3][3] = {};
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < 3; ++rank) {
    sent[rank] = 10 + rank;
    for (int peer = 0; peer < 3; ++peer) {
      EXPECT_EQ(ncclSend(&sent[rank], 1, ncclInt, peer, clique_[rank], nullptr), ncclSuccess);
      EXPECT_EQ(ncclRecv(&received[rank][peer], 1, ncclInt, peer, clique_[rank], nullptr), ncclSuccess);
    }
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
  for (auto& row : received) {
    for (int peer = 0; peer < 3; ++peer) EXPECT_EQ(row[peer], 10 + peer);
  }
}

}  // namespace
}  // namespace talaria::test
