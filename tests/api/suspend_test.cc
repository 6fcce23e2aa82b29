// ncclCommSuspend and ncclCommResume on CPU ranks: pages go back, nothing is lost, operations are refused meanwhile.
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "api/nonblocking.h"
#include "api/variable.h"
#include "support/threads.h"

namespace talaria::test {
namespace {

using SuspendApi = HostRanks;

bool last_error_has(const char* part) { return strstr(ncclGetLastError(nullptr), part) != nullptr; }

uint64_t suspended(ncclComm_t comm) {
  uint64_t value = 77;
  EXPECT_EQ(ncclCommMemStats(comm, ncclStatGpuMemSuspended, &value), ncclSuccess) << ncclGetLastError(nullptr);
  return value;
}

template <typename Call>
ncclResult_t on_every_rank(const Clique& clique, Call call) {
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < clique.size(); ++rank) {
    EXPECT_EQ(call(clique[rank]), ncclSuccess) << ncclGetLastError(nullptr);
  }
  return ncclGroupEnd();
}
ncclResult_t suspend(ncclComm_t comm) { return ncclCommSuspend(comm, NCCL_SUSPEND_MEM); }

// KiB of this process's mailboxes that are in memory.
size_t resident_mailboxes() {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool ours = false;
  size_t total = 0;
  while (std::getline(maps, line)) {
    if (line.find("/talaria.") != std::string::npos) ours = true;
    else if (ours && line.starts_with("Rss:")) total += std::stoul(line.substr(4));
    else if (line.starts_with("VmFlags:")) ours = false;
  }
  return total;
}

// All operations that leave words behind, small and large; the result is checked.
void use(ncclComm_t comm, int rank, int nranks) {
  for (size_t count : {size_t{1}, size_t{3000}, size_t{2000000}}) {
    std::vector<int> data(count, rank + 1);
    ASSERT_EQ(ncclAllReduce(data.data(), data.data(), count, ncclInt32, ncclSum, comm, nullptr), ncclSuccess)
        << ncclGetLastError(nullptr);
    EXPECT_EQ(data, std::vector<int>(count, nranks * (nranks + 1) / 2));
    data.assign(count, rank);
    ASSERT_EQ(ncclBroadcast(data.data(), data.data(), count, ncclInt32, 1, comm, nullptr), ncclSuccess);
    EXPECT_EQ(data, std::vector<int>(count, 1));
    std::vector<int> got(count);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    ASSERT_EQ(ncclSend(data.data(), count, ncclInt32, (rank + 1) % nranks, comm, nullptr), ncclSuccess);
    ASSERT_EQ(ncclRecv(got.data(), count, ncclInt32, (rank + nranks - 1) % nranks, comm, nullptr), ncclSuccess);
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
    EXPECT_EQ(got, data);
  }
}

TEST_F(SuspendApi, MemoryGoesAndComesBack) {
  constexpr int kRanks = 4;
  Clique clique(kRanks);
  size_t used = 0, away = 0;
  run_ranks(kRanks, [&](int rank) { use(clique[rank], rank, kRanks); });
  used = resident_mailboxes();
  ASSERT_EQ(on_every_rank(clique, suspend), ncclSuccess) << ncclGetLastError(nullptr);
  away = resident_mailboxes();
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(suspended(clique[rank]), 1u);
  EXPECT_LT(away, used / 4) << "KiB";
  ASSERT_EQ(on_every_rank(clique, ncclCommResume), ncclSuccess) << ncclGetLastError(nullptr);
  EXPECT_GT(resident_mailboxes(), used / 2) << "there is room for it all";
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(suspended(clique[rank]), 0u);
  run_ranks(kRanks, [&](int rank) { use(clique[rank], rank, kRanks); });
}

// Ranks that run ahead of each other, each from its own thread.
TEST_F(SuspendApi, ManyCyclesAmongOperations) {
  constexpr int kRanks = 3;
  Clique clique(kRanks);
  run_ranks(kRanks, [&](int rank) {
    for (int cycle = 0; cycle < 20; ++cycle) {
      if (cycle % 5 == rank) std::this_thread::sleep_for(std::chrono::milliseconds(3));
      use(clique[rank], rank, kRanks);
      ASSERT_EQ(suspend(clique[rank]), ncclSuccess) << ncclGetLastError(nullptr);
      ASSERT_EQ(ncclCommResume(clique[rank]), ncclSuccess) << ncclGetLastError(nullptr);
    }
  });
}

// By shared memory, then by TCP, where the mailboxes are private.
TEST_F(SuspendApi, RanksInProcesses) {
  constexpr int kRanks = 3;
  for (const char* disabled : {"0", "1"}) {
    const Variable variable("NCCL_SHM_DISABLE", disabled);
    run_process_inits(kRanks, [&](const ncclUniqueId& id, int rank) {
      ncclComm_t comm = nullptr;
      if (ncclCommInitRank(&comm, kRanks, id, rank) != ncclSuccess) return false;
      for (int cycle = 0; cycle < 5; ++cycle) {
        use(comm, rank, kRanks);
        if (suspend(comm) != ncclSuccess || ncclCommResume(comm) != ncclSuccess) return false;
      }
      use(comm, rank, kRanks);
      return ncclCommDestroy(comm) == ncclSuccess && !HasFailure();
    });
  }
}

// A small send is complete before it is received: it must not be lost.
TEST_F(SuspendApi, AMessageOnItsWayIsKept) {
  Clique clique(2);
  int data = 42, got = 0;
  ASSERT_EQ(ncclSend(&data, 1, ncclInt32, 1, clique[0], nullptr), ncclSuccess);
  ASSERT_EQ(on_every_rank(clique, suspend), ncclSuccess);
  ASSERT_EQ(on_every_rank(clique, ncclCommResume), ncclSuccess);
  ASSERT_EQ(ncclRecv(&got, 1, ncclInt32, 0, clique[1], nullptr), ncclSuccess);
  EXPECT_EQ(got, 42);
}

TEST_F(SuspendApi, UseWhileSuspendedIsRefused) {
  Clique clique(1);
  ASSERT_EQ(suspend(clique[0]), ncclSuccess);
  int value = 5;
  EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, clique[0], nullptr), ncclInvalidUsage);
  EXPECT_TRUE(last_error_has("is suspended: call ncclCommResume first")) << ncclGetLastError(nullptr);
  EXPECT_EQ(ncclSend(&value, 1, ncclInt32, 0, clique[0], nullptr), ncclInvalidUsage);
  ncclComm_t child = nullptr;
  EXPECT_EQ(ncclCommSplit(clique[0], 0, 0, &child, nullptr), ncclInvalidUsage);
  EXPECT_EQ(child, nullptr);
  EXPECT_EQ(suspend(clique[0]), ncclInvalidUsage);
  EXPECT_TRUE(last_error_has("is suspended already"));
  EXPECT_EQ(ncclCommCount(clique[0], &value), ncclSuccess);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(state_of(clique[0]), ncclSuccess);
  EXPECT_EQ(ncclCommResume(clique[0]), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, clique[0], nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommResume(clique[0]), ncclInvalidUsage);
  EXPECT_TRUE(last_error_has("is not suspended"));
}

TEST_F(SuspendApi, WrongArguments) {
  Clique clique(1);
  for (int flags : {0, 2, 3, -1}) {
    EXPECT_EQ(ncclCommSuspend(clique[0], flags), ncclInvalidArgument) << flags;
    EXPECT_TRUE(last_error_has("expected NCCL_SUSPEND_MEM (0x1)")) << ncclGetLastError(nullptr);
  }
  EXPECT_EQ(suspended(clique[0]), 0u);
  EXPECT_EQ(suspend(nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommResume(nullptr), ncclInvalidArgument);
}

TEST_F(SuspendApi, ASuspendedCommunicatorCanBeDestroyed) {
  Clique clique(2);
  ASSERT_EQ(on_every_rank(clique, suspend), ncclSuccess);
}

TEST_F(SuspendApi, NonBlockingRanksPoll) {
  NonBlockingClique clique(2);
  ASSERT_EQ(suspend(clique[0]), ncclInProgress);
  EXPECT_EQ(settled(clique[0], 0.05), ncclInProgress);
  ASSERT_EQ(suspend(clique[1]), ncclInProgress);
  for (int rank : {0, 1}) ASSERT_EQ(settled(clique[rank]), ncclSuccess) << ncclGetLastError(nullptr);
  for (int rank : {0, 1}) EXPECT_EQ(suspended(clique[rank]), 1u);
  for (int rank : {0, 1}) ASSERT_EQ(ncclCommResume(clique[rank]), ncclInProgress);
  for (int rank : {0, 1}) ASSERT_EQ(settled(clique[rank]), ncclSuccess) << ncclGetLastError(nullptr);
  run_ranks(2, [&](int rank) { use(clique[rank], rank, 2); });
}

TEST_F(SuspendApi, AbortEndsASuspendThatWaits) {
  NonBlockingClique clique(2);
  ASSERT_EQ(suspend(clique[0]), ncclInProgress);
  const auto start = Clock::now();
  clique.abort(0);
  EXPECT_LT(seconds_since(start), 1);
}

}  // namespace
}  // namespace talaria::test
