// ncclCommRevoke on CPU ranks that are threads of this process.
#include <atomic>
#include <string>
#include <thread>

#include "api/host_ranks.h"

namespace talaria::test {
namespace {

using RevokeApi = HostRanks;

std::string last_error() { return ncclGetLastError(nullptr); }

ncclResult_t add(ncclComm_t comm, int& sum) {
  int one = 1;
  return ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, comm, nullptr);
}

ncclResult_t async_error(ncclComm_t comm) {
  ncclResult_t state = ncclInternalError;
  EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
  return state;
}

TEST_F(RevokeApi, LaterOperationsAreAnInvalidUsageThatSaysSo) {
  Clique clique(1);
  int sum = 0;
  ASSERT_EQ(add(clique[0], sum), ncclSuccess);
  EXPECT_EQ(ncclCommRevoke(clique[0], NCCL_REVOKE_DEFAULT), ncclSuccess);
  EXPECT_EQ(add(clique[0], sum), ncclInvalidUsage);
  EXPECT_NE(last_error().find("revoked"), std::string::npos) << last_error();
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclSend(&sum, 1, ncclInt32, 0, clique[0], nullptr), ncclInvalidUsage);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_EQ(async_error(clique[0]), ncclSuccess) << "to revoke is no fault";
}

// Queued before, carried out after: it must not start.
TEST_F(RevokeApi, AQueuedOperationDoesNotStart) {
  Clique clique(1);
  int sum = 0;
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(add(clique[0], sum), ncclSuccess);
  EXPECT_EQ(ncclCommRevoke(clique[0], NCCL_REVOKE_DEFAULT), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_EQ(sum, 0);
}

TEST_F(RevokeApi, EndsAnOperationOfAnotherThread) {
  Clique clique(2);
  ncclResult_t result = ncclSuccess;
  std::string text;
  std::atomic<bool> started{false};
  std::thread waiting([&] {
    int sum = 0;
    started = true;
    result = add(clique[0], sum);  // rank 1 never comes
    text = last_error();
  });
  while (!started) std::this_thread::yield();
  EXPECT_EQ(ncclCommRevoke(clique[0], NCCL_REVOKE_DEFAULT), ncclSuccess);
  waiting.join();
  EXPECT_NE(result, ncclSuccess);
  EXPECT_NE(text.find("revoked"), std::string::npos) << text;
  EXPECT_EQ(async_error(clique[0]), ncclSuccess);
}

TEST_F(RevokeApi, TheOtherRanksAreToldWhoRevoked) {
  Clique clique(3);
  EXPECT_EQ(ncclCommRevoke(clique[1], NCCL_REVOKE_DEFAULT), ncclSuccess);
  int sum = 0;
  EXPECT_EQ(add(clique[2], sum), ncclRemoteError);
  EXPECT_NE(last_error().find("rank 1 revoked its communicator"), std::string::npos) << last_error();
  EXPECT_EQ(ncclCommRevoke(clique[2], NCCL_REVOKE_DEFAULT), ncclSuccess) << "after a fault, too";
}

TEST_F(RevokeApi, OnceAndNotAfterFinalize) {
  Clique clique(2);
  EXPECT_EQ(ncclCommRevoke(clique[0], NCCL_REVOKE_DEFAULT), ncclSuccess);
  EXPECT_EQ(ncclCommRevoke(clique[0], NCCL_REVOKE_DEFAULT), ncclInvalidArgument);
  EXPECT_NE(last_error().find("already been revoked"), std::string::npos) << last_error();
  EXPECT_EQ(ncclCommFinalize(clique[0]), ncclInvalidArgument);
  EXPECT_NE(last_error().find("revoked"), std::string::npos) << last_error();
  EXPECT_EQ(ncclCommFinalize(clique[1]), ncclSuccess);
  EXPECT_EQ(ncclCommRevoke(clique[1], NCCL_REVOKE_DEFAULT), ncclInvalidArgument);
  EXPECT_NE(last_error().find("finalized"), std::string::npos) << last_error();
}

TEST_F(RevokeApi, WrongArguments) {
  Clique clique(1);
  EXPECT_EQ(ncclCommRevoke(nullptr, NCCL_REVOKE_DEFAULT), ncclSuccess);
  EXPECT_EQ(ncclCommRevoke(clique[0], 1), ncclInvalidArgument);
  EXPECT_EQ(last_error(), "CommRevoke : revokeFlags is 1; expected NCCL_REVOKE_DEFAULT (0)");
  int sum = 0;
  EXPECT_EQ(add(clique[0], sum), ncclSuccess);
  ncclComm_t gone = nullptr;
  ASSERT_EQ(ncclCommInitAll(&gone, 1, nullptr), ncclSuccess);
  ASSERT_EQ(ncclCommDestroy(gone), ncclSuccess);
  EXPECT_EQ(ncclCommRevoke(gone, NCCL_REVOKE_DEFAULT), ncclInvalidArgument);
}

}  // namespace
}  // namespace talaria::test
