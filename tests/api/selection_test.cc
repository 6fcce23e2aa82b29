// NCCL_ALGO and NCCL_PROTO as a client meets them.
#include <gtest/gtest.h>

#include <string>

#include "api/host_ranks.h"
#include "api/variable.h"

namespace talaria::test {
namespace {

class Selection : public HostRanks {};

ncclResult_t all_reduce(ncclComm_t comm) {
  float in = 1, out = 0;
  return ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, comm, nullptr);
}

ncclResult_t broadcast(ncclComm_t comm) {
  float in = 1, out = 0;
  return ncclBroadcast(&in, &out, 1, ncclFloat, 0, comm, nullptr);
}

// Runs `call` on both ranks of a clique at once.
template <typename Call>
ncclResult_t on_both(const Clique& clique, Call call) {
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < clique.size(); ++rank) (void)call(clique[rank]);
  return ncclGroupEnd();
}

// B-44
TEST_F(Selection, AnAlgorithmThatDoesNotServeIsInvalidUsageNamingTheVariables) {
  const Variable algorithms("NCCL_ALGO", "allreduce:ring;broadcast:NVLS"), protocols("NCCL_PROTO", "allreduce:Simple");
  const Clique clique(2);
  ASSERT_EQ(clique.result(), ncclSuccess) << ncclGetLastError(nullptr);
  EXPECT_EQ(on_both(clique, broadcast), ncclInvalidUsage);
  const std::string text = ncclGetLastError(nullptr);
  EXPECT_EQ(text.find("No algorithm/protocol available for function Broadcast with datatype "), 0u) << text;
  EXPECT_NE(text.find("NCCL_ALGO was set to allreduce:ring;broadcast:NVLS."), std::string::npos) << text;
  EXPECT_NE(text.find("NCCL_PROTO was set to allreduce:Simple."), std::string::npos) << text;
  EXPECT_EQ(on_both(clique, all_reduce), ncclSuccess) << "the communicator stays usable";
}

TEST_F(Selection, GarbageFailsTheInitOfEveryRank) {
  const Variable algorithms("NCCL_ALGO", "Ring,Trea");
  const Variable debug("NCCL_DEBUG", nullptr);
  ncclComm_t comms[2];
  const ncclResult_t result = ncclCommInitAll(comms, 2, nullptr);
  EXPECT_TRUE(result == ncclInvalidUsage || result == ncclRemoteError) << result;
  EXPECT_EQ(comms[0], nullptr);
  EXPECT_EQ(comms[1], nullptr);
}

TEST_F(Selection, GarbageIsNamedWithTheVariable) {
  const Variable protocols("NCCL_PROTO", "LL256");
  ncclComm_t comm;
  EXPECT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclInvalidUsage);
  const std::string text = ncclGetLastError(nullptr);
  EXPECT_NE(text.find("NCCL_PROTO=LL256"), std::string::npos) << text;
}

TEST_F(Selection, WhatPyTorchSetsForDeterminismIsAccepted) {
  const Variable algorithms("NCCL_ALGO", "^NVLS");
  const Clique clique(2);
  ASSERT_EQ(clique.result(), ncclSuccess) << ncclGetLastError(nullptr);
  EXPECT_EQ(on_both(clique, all_reduce), ncclSuccess) << ncclGetLastError(nullptr);
}

}  // namespace
}  // namespace talaria::test
