// Creating, questioning and ending communicators with right and wrong arguments.
#include <cstring>
#include <string>
#include <thread>

#include "api/host_ranks.h"

namespace talaria::test {
namespace {

using CommunicatorApi = HostRanks;

ncclComm_t not_null() { return reinterpret_cast<ncclComm_t>(0x10); }

TEST_F(CommunicatorApi, RankOutOfRange) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess) << ncclGetLastError(nullptr);
  for (auto [nranks, rank] : {std::pair(0, 0), std::pair(-1, 0), std::pair(2, 2), std::pair(2, -1), std::pair(1, 1)}) {
    ncclComm_t comm = not_null();
    EXPECT_EQ(ncclCommInitRank(&comm, nranks, id, rank), ncclInvalidArgument);
    EXPECT_EQ(comm, nullptr);
    EXPECT_EQ(ncclGetLastError(nullptr),
              "Invalid rank requested : " + std::to_string(rank) + "/" + std::to_string(nranks));
  }
}

TEST_F(CommunicatorApi, NullOutputs) {
  Clique clique(1);
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  EXPECT_EQ(ncclGetUniqueId(nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(nullptr, 1, id, 0), ncclInvalidArgument);
  EXPECT_STREQ(ncclGetLastError(nullptr), "CommInitRank : comm argument is NULL");
  EXPECT_EQ(ncclCommInitRankConfig(nullptr, 1, id, 0, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitAll(nullptr, 1, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommCount(clique[0], nullptr), ncclInvalidArgument);
  EXPECT_STREQ(ncclGetLastError(nullptr), "CommCount : count argument is NULL");
  EXPECT_EQ(ncclCommUserRank(clique[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommCuDevice(clique[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommGetAsyncError(clique[0], nullptr), ncclInvalidArgument);
}

TEST_F(CommunicatorApi, NullCommunicatorHasNoAnswers) {
  int value = 0;
  ncclResult_t error;
  EXPECT_EQ(ncclCommCount(nullptr, &value), ncclInvalidArgument);
  EXPECT_STREQ(ncclGetLastError(nullptr), "CommCount : comm argument is NULL");
  EXPECT_EQ(ncclCommUserRank(nullptr, &value), ncclInvalidArgument);
  EXPECT_EQ(ncclCommCuDevice(nullptr, &value), ncclInvalidArgument);
  EXPECT_EQ(ncclCommGetAsyncError(nullptr, &error), ncclInvalidArgument);
}

TEST_F(CommunicatorApi, EndingNothingSucceeds) {
  EXPECT_EQ(ncclCommFinalize(nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommAbort(nullptr), ncclSuccess);
}

TEST_F(CommunicatorApi, IdOfAnotherLibrary) {
  ncclUniqueId id;
  memset(&id, 0, sizeof(id));
  ncclComm_t comm = not_null();
  EXPECT_EQ(ncclCommInitRank(&comm, 1, id, 0), ncclInvalidArgument);
  EXPECT_EQ(comm, nullptr);
}

TEST_F(CommunicatorApi, DeviceCountOutOfRange) {
  ncclComm_t comm = not_null();
  EXPECT_EQ(ncclCommInitAll(&comm, 0, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitAll(&comm, -1, nullptr), ncclInvalidArgument);
  EXPECT_STREQ(ncclGetLastError(nullptr), "Invalid device count requested : -1");
}

TEST_F(CommunicatorApi, UseAfterDestroyIsNamed) {
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess) << ncclGetLastError(nullptr);
  ASSERT_EQ(ncclCommDestroy(comm), ncclSuccess);
  int value = 0;
  EXPECT_EQ(ncclCommCount(comm, &value), ncclInvalidArgument);
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("has already been destroyed"), std::string::npos);
  EXPECT_EQ(ncclCommDestroy(comm), ncclInvalidArgument);
  EXPECT_EQ(ncclCommAbort(comm), ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, comm, nullptr), ncclInvalidArgument);
}

TEST_F(CommunicatorApi, SecondFinalizeIsRefused) {
  Clique clique(1);
  EXPECT_EQ(ncclCommFinalize(clique[0]), ncclSuccess);
  EXPECT_EQ(ncclCommFinalize(clique[0]), ncclInvalidArgument);
}

TEST_F(CommunicatorApi, LastErrorIsSeenByOtherThreads) {
  EXPECT_EQ(ncclGetVersion(nullptr), ncclInvalidArgument);
  std::string seen;
  std::thread([&] { seen = ncclGetLastError(nullptr); }).join();
  EXPECT_EQ(seen, "GetVersion : version argument is NULL");
}

TEST_F(CommunicatorApi, BadConfigMakesNoCommunicator) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 2;
  ncclComm_t comm = not_null();
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument);
  EXPECT_EQ(comm, nullptr);
  config.magic = 1;
  comm = not_null();
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument);
  EXPECT_EQ(comm, nullptr);
}

TEST_F(CommunicatorApi, RanksKnowTheirPlace) {
  Clique clique(3);
  ASSERT_EQ(clique.result(), ncclSuccess) << ncclGetLastError(nullptr);
  for (int rank = 0; rank < 3; ++rank) {
    int count = 0, own = -1, device = 0;
    EXPECT_EQ(ncclCommCount(clique[rank], &count), ncclSuccess);
    EXPECT_EQ(ncclCommUserRank(clique[rank], &own), ncclSuccess);
    EXPECT_EQ(ncclCommCuDevice(clique[rank], &device), ncclSuccess);
    EXPECT_EQ(count, 3);
    EXPECT_EQ(own, rank);
    EXPECT_EQ(device, -1);
  }
}

}  // namespace
}  // namespace talaria::test
