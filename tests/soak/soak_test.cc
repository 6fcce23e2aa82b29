// A million calls, and hundreds of communicators one after the other: memory, threads and descriptors stay as they are.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "nccl.h"
#include "support/processes.h"
#include "support/shared.h"
#include "support/threads.h"

namespace talaria::test {
namespace {

constexpr int kRanks = 2;

struct Belongings {
  long resident_bytes = 0;
  long descriptors = 0, threads = 0, mappings = 0, blocks = 0;

  Belongings() {
    namespace fs = std::filesystem;
    static std::mutex mutex;  // a look opens descriptors itself
    const std::lock_guard lock(mutex);
    long size = 0, pages = 0;
    std::ifstream("/proc/self/statm") >> size >> pages;
    resident_bytes = pages * sysconf(_SC_PAGESIZE);
    descriptors = std::distance(fs::directory_iterator("/proc/self/fd"), {});
    threads = std::distance(fs::directory_iterator("/proc/self/task"), {});
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) ++mappings;
    const std::string prefix = "talaria." + std::to_string(getpid()) + "-";
    for (const auto& entry : fs::directory_iterator("/dev/shm")) {
      blocks += entry.path().filename().string().starts_with(prefix);
    }
  }
  // malloc may have opened an arena for a thread that came and went: two mappings each.
  bool within(const Belongings& other) const {
    constexpr long kArenas = 10;
    return descriptors <= other.descriptors && threads <= other.threads && mappings <= other.mappings + kArenas &&
           blocks == 0;
  }
  std::string text() const {
    return std::to_string(resident_bytes) + " bytes, " + std::to_string(descriptors) + " descriptors, " +
           std::to_string(threads) + " threads, " + std::to_string(mappings) + " mappings, " + std::to_string(blocks) +
           " blocks of shared memory";
  }
};

// Hands ids from rank 0 to rank 1, and brings the two together.
struct Board {
  std::atomic<int> made{0}, arrived{0};
  ncclUniqueId id;

  ncclComm_t meet(int rank, int round) {
    if (rank == 0) {
      EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
      made = round;
    }
    while (made < round) std::this_thread::yield();
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, kRanks, id, rank), ncclSuccess) << ncclGetLastError(nullptr);
    return comm;
  }
  void wait_for_both(int round) {
    ++arrived;
    while (arrived < kRanks * round) std::this_thread::yield();
  }
};

using Body = std::function<void(int rank, Board& board)>;

// In two processes, or in two threads of one. No process of ours holds anything before.
void run_ranks_apart(bool processes, const char* shm_disable, const Body& body) {
  const Shared<Board> board;
  const auto exits = run_processes(processes ? kRanks : 1, [&](int rank) {
    setenv("TALARIA_DEVICE", "host", 1);
    setenv("NCCL_SHM_DISABLE", shm_disable, 1);
    if (processes) body(rank, *board);
    else run_ranks(kRanks, [&](int thread) { body(thread, *board); });
    return testing::Test::HasFailure() ? 1 : 0;
  });
  for (const int exit : exits) EXPECT_EQ(exit, 0);
}

void call_a_million_times(int rank, Board& board) {
  constexpr int kFirst = 20000, kCalls = 1000000;
  constexpr long kMostGrowth = 1 << 20;
  ncclComm_t comm = board.meet(rank, 1);
  int64_t one = 1, sum = 0;
  const auto call = [&](int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_EQ(ncclAllReduce(&one, &sum, 1, ncclInt64, ncclSum, comm, nullptr), ncclSuccess);
    }
  };
  call(kFirst);
  board.wait_for_both(1);
  const Belongings before;
  board.wait_for_both(2);
  call(kCalls);
  board.wait_for_both(3);
  const Belongings after;
  board.wait_for_both(4);
  EXPECT_EQ(sum, kRanks);
  EXPECT_LT(after.resident_bytes - before.resident_bytes, kMostGrowth);
  EXPECT_TRUE(after.within(before)) << before.text() << " before, then " << after.text();
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

void make_many_communicators(int rank, Board& board) {
  constexpr int kFirst = 20, kCycles = 200;
  constexpr long kMostGrowth = 1 << 20;
  Belongings before;
  for (int round = 1; round <= kFirst + kCycles; ++round) {
    ncclComm_t comm = board.meet(rank, round);
    std::vector<float> data(10000, 1);
    EXPECT_EQ(ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, comm, nullptr), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    board.wait_for_both(2 * round - 1);
    if (round == kFirst) before = Belongings();
    board.wait_for_both(2 * round);
    if (testing::Test::HasFailure()) return;
  }
  // The last meeting point, and sockets whose peer is slow to read, go a moment later.
  Belongings after;
  for (int i = 0; i < 1000 && !after.within(before); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    after = Belongings();
  }
  EXPECT_TRUE(after.within(before)) << before.text() << " before, then " << after.text();
  EXPECT_LT(after.resident_bytes - before.resident_bytes, kMostGrowth);
}

TEST(Soak, AMillionCallsOfThreads) { run_ranks_apart(false, "0", call_a_million_times); }
TEST(Soak, AMillionCallsOfProcesses) { run_ranks_apart(true, "0", call_a_million_times); }
TEST(Soak, ManyCommunicatorsOfThreads) { run_ranks_apart(false, "0", make_many_communicators); }
TEST(Soak, ManyCommunicatorsOfProcesses) { run_ranks_apart(true, "0", make_many_communicators); }
TEST(Soak, ManyCommunicatorsOverTcp) { run_ranks_apart(true, "1", make_many_communicators); }

}  // namespace
}  // namespace talaria::test
