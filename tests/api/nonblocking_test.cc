// Non-blocking communicators (config.blocking = 0) of CPU ranks: what is returned at once, and what is polled for.
#include "api/nonblocking.h"

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "api/variable.h"
#include "support/threads.h"

namespace talaria::test {
namespace {

using NonBlockingApi = HostRanks;

ncclComm_t not_null() { return reinterpret_cast<ncclComm_t>(0x10); }

bool last_error_has(const char* part) { return strstr(ncclGetLastError(nullptr), part) != nullptr; }

// From init to destroy, each by polling.
bool live_and_die(const ncclUniqueId& id, int nranks, int rank) {
  ncclComm_t comm = nullptr;
  const ncclResult_t started = start_init(&comm, nranks, id, rank);
  if (started != ncclInProgress || comm == nullptr || settled(comm) != ncclSuccess) return false;
  int own = -1, count = -1;
  if (ncclCommUserRank(comm, &own) != ncclSuccess || ncclCommCount(comm, &count) != ncclSuccess) return false;
  if (own != rank || count != nranks || sum_over(comm, 1 << rank) != (1 << nranks) - 1) return false;
  if (finished(ncclCommFinalize(comm), comm) != ncclSuccess) return false;
  return ncclCommDestroy(comm) == ncclSuccess;
}

TEST_F(NonBlockingApi, ThreadsFromInitToDestroy) {
  for (int nranks = 1; nranks <= 8; ++nranks) {
    const ncclUniqueId id = new_id();
    run_ranks(nranks, [&](int rank) {
      EXPECT_TRUE(live_and_die(id, nranks, rank)) << nranks << " ranks: " << ncclGetLastError(nullptr);
    });
  }
}

TEST_F(NonBlockingApi, ProcessesFromInitToDestroy) {
  for (int nranks : {2, 5, 8}) {
    run_process_inits(nranks, [&](const ncclUniqueId& id, int rank) { return live_and_die(id, nranks, rank); });
  }
}

// B-10
TEST_F(NonBlockingApi, AbortEndsTheWaitForARankThatNeverComes) {
  const ncclUniqueId id = new_id();
  const size_t descriptors = entries_of("/proc/self/fd");
  ncclComm_t comm = nullptr;
  auto start = Clock::now();
  EXPECT_EQ(start_init(&comm, 2, id, 0), ncclInProgress);
  EXPECT_LT(seconds_since(start), 1);
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(settled(comm, 0.3), ncclInProgress);
  start = Clock::now();
  EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  EXPECT_LT(seconds_since(start), 1);
  ncclResult_t state;
  EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclInvalidArgument);
  EXPECT_TRUE(last_error_has("has already been destroyed")) << ncclGetLastError(nullptr);
  // The meeting point is another thread's; nothing else stays.
  start = Clock::now();
  while (entries_of("/proc/self/fd") > descriptors && seconds_since(start) < 10) std::this_thread::yield();
  EXPECT_LE(entries_of("/proc/self/fd"), descriptors);
}

TEST_F(NonBlockingApi, AbortFromAnotherThreadWhileOneDestroys) {
  const ncclUniqueId id = new_id();
  ncclComm_t comm = nullptr;
  ASSERT_EQ(start_init(&comm, 2, id, 0), ncclInProgress);
  std::thread destroying([comm] { (void)ncclCommDestroy(comm); });  // would wait for the other rank
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const ncclResult_t aborted = ncclCommAbort(comm);
  EXPECT_TRUE(aborted == ncclSuccess || aborted == ncclInvalidArgument);
  destroying.join();
}

TEST_F(NonBlockingApi, DestroyWaitsForTheInit) {
  const ncclUniqueId id = new_id();
  run_ranks(3, [&](int rank) {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(start_init(&comm, 3, id, rank), ncclInProgress);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess) << ncclGetLastError(nullptr);
  });
}

// B-11
TEST_F(NonBlockingApi, UseBeforeTheEndOfInitIsRefused) {
  const ncclUniqueId id = new_id();
  ncclComm_t comm = nullptr, child = not_null();
  ASSERT_EQ(start_init(&comm, 2, id, 0), ncclInProgress);
  int value = 0;
  const auto refused = [](ncclResult_t result) {
    return result == ncclInvalidArgument &&
           last_error_has("Attempt to use communicator before the previous operation returned ncclSuccess");
  };
  EXPECT_TRUE(refused(ncclCommCount(comm, &value)));
  EXPECT_TRUE(refused(ncclCommUserRank(comm, &value)));
  EXPECT_TRUE(refused(ncclCommCuDevice(comm, &value)));
  EXPECT_TRUE(refused(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr)));
  EXPECT_TRUE(refused(ncclSend(&value, 1, ncclInt32, 1, comm, nullptr)));
  EXPECT_TRUE(refused(ncclCommSplit(comm, 0, 0, &child, nullptr)));
  EXPECT_EQ(child, nullptr);
  EXPECT_TRUE(refused(ncclCommFinalize(comm)));
  EXPECT_EQ(state_of(comm), ncclInProgress);
  ncclComm_t other = nullptr;
  ASSERT_EQ(start_init(&other, 2, id, 1), ncclInProgress);
  EXPECT_EQ(settled(comm), ncclSuccess);
  EXPECT_EQ(settled(other), ncclSuccess);
  EXPECT_EQ(ncclCommCount(comm, &value), ncclSuccess);
  EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  EXPECT_EQ(ncclCommAbort(other), ncclSuccess);
}

// B-12
TEST_F(NonBlockingApi, OneThreadInitsAGroup) {
  constexpr int kRanks = 4;
  const ncclUniqueId id = new_id();
  std::vector<ncclComm_t> comms(kRanks, not_null());
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < kRanks; ++rank) {
    ncclComm_t& comm = comms[static_cast<size_t>(rank)];
    EXPECT_EQ(start_init(&comm, kRanks, id, rank), ncclSuccess);
    EXPECT_EQ(comm, nullptr);
  }
  EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
  for (ncclComm_t comm : comms) ASSERT_EQ(settled(comm), ncclSuccess) << ncclGetLastError(nullptr);

  std::vector<int> data(kRanks, 3);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < kRanks; ++rank) {
    int& mine = data[static_cast<size_t>(rank)];
    EXPECT_EQ(ncclAllReduce(&mine, &mine, 1, ncclInt32, ncclSum, comms[static_cast<size_t>(rank)], nullptr),
              ncclSuccess);
  }
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << "operations of CPU ranks are complete";
  EXPECT_EQ(data, std::vector<int>(kRanks, 3 * kRanks));
  for (ncclComm_t comm : comms) EXPECT_EQ(finished(ncclCommFinalize(comm), comm), ncclSuccess);
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST_F(NonBlockingApi, AGroupWaitsForNoneOfItsMembers) {
  const ncclUniqueId whole = new_id(), lonely = new_id();
  ncclComm_t ready[2] = {}, waiting = nullptr;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(start_init(&waiting, 2, lonely, 0), ncclSuccess);
  for (int rank : {0, 1}) EXPECT_EQ(start_init(&ready[rank], 2, whole, rank), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
  for (ncclComm_t comm : ready) EXPECT_EQ(settled(comm), ncclSuccess);
  EXPECT_EQ(state_of(waiting), ncclInProgress);
  EXPECT_EQ(ncclCommAbort(waiting), ncclSuccess);
  for (ncclComm_t comm : ready) EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
}

// B-12
TEST_F(NonBlockingApi, BlockingAndNonBlockingDoNotMixInAGroup) {
  constexpr const char* kText = "Blocking and nonblocking communicators are not allowed in the same group.";
  const ncclUniqueId id = new_id();
  Clique blocking(1);
  ncclComm_t first = not_null(), second = not_null();
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(start_init(&first, 2, id, 0), ncclSuccess);
  EXPECT_EQ(ncclCommInitRank(&second, 2, id, 1), ncclInvalidArgument);
  EXPECT_STREQ(ncclGetLastError(nullptr), kText);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_EQ(first, nullptr);
  EXPECT_EQ(second, nullptr);

  int value = 1;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, blocking[0], nullptr), ncclSuccess);
  EXPECT_EQ(start_init(&first, 2, id, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_STREQ(ncclGetLastError(nullptr), kText);
  EXPECT_EQ(first, nullptr);
}

// B-09
TEST_F(NonBlockingApi, AFailedInitIsReportedToThePoller) {
  const ncclUniqueId id = new_id();
  ncclComm_t comms[2] = {};
  ASSERT_EQ(start_init(&comms[0], 2, id, 0), ncclInProgress);
  {
    const Variable fault("TALARIA_FAULT", "version");
    ASSERT_EQ(start_init(&comms[1], 2, id, 1), ncclInProgress);
  }
  for (ncclComm_t comm : comms) EXPECT_EQ(settled(comm), ncclInvalidUsage);
  EXPECT_TRUE(last_error_has("Mismatched NCCL version detected")) << ncclGetLastError(nullptr);
  int value = 0;
  EXPECT_EQ(ncclCommCount(comms[0], &value), ncclInvalidUsage);
  EXPECT_TRUE(last_error_has("could not be made")) << ncclGetLastError(nullptr);
  EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comms[1], nullptr), ncclInvalidUsage);
  EXPECT_EQ(ncclCommAbort(comms[0]), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(comms[1]), ncclSuccess);
}

TEST_F(NonBlockingApi, WrongArgumentsFailAtOnce) {
  const ncclUniqueId id = new_id();
  ncclComm_t comm = not_null();
  EXPECT_EQ(start_init(&comm, 2, id, 2), ncclInvalidArgument);
  EXPECT_EQ(comm, nullptr);
  EXPECT_EQ(start_init(nullptr, 2, id, 0), ncclInvalidArgument);
}

TEST_F(NonBlockingApi, FinalizeTwiceAndOperationsAfterItAreRefused) {
  NonBlockingClique clique(2);
  for (int rank : {0, 1}) {
    EXPECT_EQ(ncclCommFinalize(clique[rank]), ncclInProgress);
    EXPECT_EQ(settled(clique[rank]), ncclSuccess);
    EXPECT_EQ(ncclCommFinalize(clique[rank]), ncclInvalidArgument);
    int value = 0;
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, clique[rank], nullptr), ncclInvalidArgument);
  }
}

TEST_F(NonBlockingApi, TheVariableOverridesTheConfig) {
  {
    const Variable variable("NCCL_COMM_BLOCKING", "0");
    const ncclUniqueId id = new_id();
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 0), ncclInProgress);
    ASSERT_NE(comm, nullptr);
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    ncclComm_t all[2] = {};
    EXPECT_EQ(ncclCommInitAll(all, 2, nullptr), ncclSuccess) << "always blocking";
    for (ncclComm_t one : all) EXPECT_EQ(ncclCommDestroy(one), ncclSuccess);
  }
  const Variable variable("NCCL_COMM_BLOCKING", "1");
  const ncclUniqueId id = new_id();
  run_ranks(2, [&](int rank) {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(start_init(&comm, 2, id, rank), ncclSuccess) << ncclGetLastError(nullptr);
    EXPECT_EQ(state_of(comm), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST_F(NonBlockingApi, ThreadsAndDescriptorsStayFlat) {
  size_t threads = 0, descriptors = 0;
  for (int cycle = 0; cycle < 50; ++cycle) {
    const ncclUniqueId id = new_id();
    run_ranks(2, [&](int rank) { EXPECT_TRUE(live_and_die(id, 2, rank)) << ncclGetLastError(nullptr); });
    if (cycle != 4) continue;
    threads = entries_of("/proc/self/task");
    descriptors = entries_of("/proc/self/fd");
  }
  const auto start = Clock::now();  // meeting points end in their own time
  while (entries_of("/proc/self/task") > threads && seconds_since(start) < 10) std::this_thread::yield();
  EXPECT_LE(entries_of("/proc/self/task"), threads);
  EXPECT_LE(entries_of("/proc/self/fd"), descriptors);
}

TEST_F(NonBlockingApi, AbortedInitsLeaveNoThread) {
  for (int cycle = 0; cycle < 50; ++cycle) {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(start_init(&comm, 2, new_id(), cycle % 2), ncclInProgress);
    if (cycle % 3 == 0) {
      EXPECT_EQ(settled(comm, 0.01), ncclInProgress);
    }
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    EXPECT_EQ(threads_named("talaria-init"), 0);
  }
}

}  // namespace
}  // namespace talaria::test
