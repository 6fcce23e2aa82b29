// B-37: ranks that call different operations, and waits that take too long, through the C API.
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "api/host_ranks.h"
#include "support/threads.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // ncclResetDebugInit

namespace talaria::test {
namespace {

class Mismatch : public HostRanks {
 protected:
  void SetUp() override { setenv("NCCL_CHECK_MODE", "DEBUG_GLOBAL", 1); }
  void TearDown() override { unsetenv("NCCL_CHECK_MODE"); }
};

constexpr int kRanks = 3;

struct Buffers {
  std::vector<float> in = std::vector<float>(4096, 1), out = std::vector<float>(4096 * kRanks);
};

// A call by a rank; a table of these says what differs.
using Call = std::function<ncclResult_t(Buffers&, ncclComm_t)>;

Call all_reduce(size_t count, ncclDataType_t type = ncclFloat, ncclRedOp_t op = ncclSum) {
  return [=](Buffers& b, ncclComm_t comm) {
    return ncclAllReduce(b.in.data(), b.out.data(), count, type, op, comm, nullptr);
  };
}
Call broadcast(size_t count, int root) {
  return [=](Buffers& b, ncclComm_t comm) {
    return ncclBroadcast(b.in.data(), b.out.data(), count, ncclFloat, root, comm, nullptr);
  };
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void expect_sums(Buffers& buffers, ncclComm_t comm) {
  EXPECT_EQ(all_reduce(1000)(buffers, comm), ncclSuccess) << ncclGetLastError(nullptr);
  EXPECT_EQ(buffers.out[999], static_cast<float>(kRanks));
}

// Rank 1 calls `odd`, the others `common`; every rank must be told who called what.
void expect_told(const Call& common, const Call& odd, const std::vector<std::string>& parts) {
  Clique clique(kRanks);
  ASSERT_EQ(clique.result(), ncclSuccess) << ncclGetLastError(nullptr);
  run_ranks(kRanks, [&](int rank) {
    Buffers buffers;
    expect_sums(buffers, clique[rank]);
    EXPECT_EQ((rank == 1 ? odd : common)(buffers, clique[rank]), ncclInvalidUsage);
    const std::string text = ncclGetLastError(nullptr);
    for (const std::string& part : parts) EXPECT_TRUE(contains(text, part)) << text << "\nlacks: " << part;
    expect_sums(buffers, clique[rank]);  // nothing had been started
  });
}

TEST_F(Mismatch, CountsAreNamed) {
  expect_told(all_reduce(1024), all_reduce(2048),
              {"Mismatched calls of collective 1", "differ in count", "rank 0, 2: AllReduce of 1024 float, sum",
               "rank 1: AllReduce of 2048 float, sum"});
}

TEST_F(Mismatch, ACountOfZeroToo) {
  expect_told(all_reduce(1024), all_reduce(0), {"differ in count", "rank 1: AllReduce of 0 float"});
}

TEST_F(Mismatch, OperationsAreNamed) {
  expect_told(all_reduce(64), broadcast(64, 2),
              {"differ in operation", "rank 0, 2: AllReduce of 64 float, sum",
               "rank 1: Broadcast of 64 float, root 2"});
}

TEST_F(Mismatch, TypesAreNamed) {
  expect_told(all_reduce(64), all_reduce(64, ncclInt32), {"differ in type", "rank 1: AllReduce of 64 int32, sum"});
}

TEST_F(Mismatch, ReductionsAreNamed) {
  expect_told(all_reduce(64), all_reduce(64, ncclFloat, ncclMax),
              {"differ in reduction", "rank 1: AllReduce of 64 float, max"});
}

TEST_F(Mismatch, RootsAreNamed) {
  expect_told(broadcast(64, 0), broadcast(64, 1), {"differ in root", "rank 1: Broadcast of 64 float, root 1"});
}

TEST_F(Mismatch, GroupsOfOneThreadAreCompared) {
  Clique clique(kRanks);
  ASSERT_EQ(clique.result(), ncclSuccess);
  std::vector<Buffers> buffers(kRanks);
  for (const bool matching : {true, false, true}) {
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int rank = 0; rank < kRanks; ++rank) {
      auto& mine = buffers[static_cast<size_t>(rank)];
      EXPECT_EQ(all_reduce(10)(mine, clique[rank]), ncclSuccess);
      EXPECT_EQ(broadcast(20, rank == 1 && !matching ? 2 : 0)(mine, clique[rank]), ncclSuccess);
    }
    EXPECT_EQ(ncclGroupEnd(), matching ? ncclSuccess : ncclInvalidUsage) << ncclGetLastError(nullptr);
  }
}

TEST_F(Mismatch, DifferentGroupingsOfTheSameCallsAreFine) {
  Clique clique(kRanks);
  ASSERT_EQ(clique.result(), ncclSuccess);
  run_ranks(kRanks, [&](int rank) {
    Buffers buffers;
    int next = (rank + 1) % kRanks, before = (rank + kRanks - 1) % kRanks;
    if (rank == 1) {
      EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    }
    for (size_t count : {7u, 0u, 900u}) EXPECT_EQ(all_reduce(count)(buffers, clique[rank]), ncclSuccess);
    if (rank != 1) {
      EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    }
    EXPECT_EQ(ncclSend(buffers.in.data(), 5, ncclFloat, next, clique[rank], nullptr), ncclSuccess);
    EXPECT_EQ(ncclRecv(buffers.out.data() + 2000, 5, ncclFloat, before, clique[rank], nullptr), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
    EXPECT_EQ(buffers.out[899], static_cast<float>(kRanks));
    EXPECT_EQ(buffers.out[2004], 1.0f);
  });
}

TEST_F(Mismatch, TheModeMustBeAskedForOnAllRanks) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  std::mutex order;
  run_ranks(2, [&](int rank) {
    ncclComm_t comm = nullptr;
    // The environment is the process's: read when init begins.
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    {
      const std::lock_guard lock(order);
      if (rank == 0) setenv("NCCL_CHECK_MODE", "DEBUG_GLOBAL", 1);
      else unsetenv("NCCL_CHECK_MODE");
      EXPECT_EQ(ncclCommInitRank(&comm, 2, id, rank), ncclSuccess);
    }
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    EXPECT_TRUE(contains(ncclGetLastError(nullptr), "NCCL_CHECK_MODE differs")) << ncclGetLastError(nullptr);
  });
}

TEST_F(HostRanks, AWaitBeyondTheTimeoutNamesWhoAndLogsWhatIsPending) {
  const std::string file = ::testing::TempDir() + "/talaria_pending_" + std::to_string(getpid());
  setenv("TALARIA_TIMEOUT", "1", 1);
  setenv("NCCL_DEBUG", "WARN", 1);
  setenv("NCCL_DEBUG_FILE", file.c_str(), 1);
  ncclResetDebugInit();
  {
    Clique clique(2);
    ASSERT_EQ(clique.result(), ncclSuccess);
    Buffers buffers;
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(all_reduce(100)(buffers, clique[0]), ncclSuccess);
    EXPECT_EQ(broadcast(100, 1)(buffers, clique[0]), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclRemoteError);
    const std::string text = ncclGetLastError(nullptr);
    EXPECT_TRUE(contains(text, "rank 0 waited 1 s (TALARIA_TIMEOUT) in operation 0 (AllReduce), waiting for rank 1"))
        << text;
    // What rank 0 had sent before it gave up may be all that rank 1 needs for its first call.
    (void)all_reduce(100)(buffers, clique[1]);
    EXPECT_EQ(all_reduce(100)(buffers, clique[1]), ncclRemoteError) << "it hears that rank 0 gave up";
  }
  std::ostringstream log;
  log << std::ifstream(file).rdbuf();
  EXPECT_TRUE(contains(log.str(), "pending on rank 0: operation 0 (AllReduce), waiting for rank 1")) << log.str();
  EXPECT_TRUE(contains(log.str(), "pending on rank 0: operation 1 (Broadcast), queued")) << log.str();
  for (const char* name : {"TALARIA_TIMEOUT", "NCCL_DEBUG", "NCCL_DEBUG_FILE"}) unsetenv(name);
  ncclResetDebugInit();
  unlink(file.c_str());
}

}  // namespace
}  // namespace talaria::test
