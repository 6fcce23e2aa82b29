// Birth and end of communicators on CPU ranks.
#include <gtest/gtest.h>

#include <dirent.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "host_ranks.h"

namespace talaria {
namespace {

const Collective kSum{Operation::kAllReduce, DataType::kInt32, ReduceOp::kSum, 0, 1000};

// Entries of a folder whose names begin with `prefix`.
size_t entries_of(const char* path, const std::string& prefix = "") {
  DIR* folder = opendir(path);
  size_t entries = 0;
  while (const dirent* entry = readdir(folder)) entries += std::string(entry->d_name).starts_with(prefix);
  closedir(folder);
  return entries;
}

// B-23
TEST(Lifecycle, UseAfterDestroyIsNamedAndHarmless) {
  Communicator* comm = nullptr;
  ASSERT_TRUE(init_rank(&comm, 1, {test::make_id()}, 0, InitOptions{}).ok());
  ASSERT_TRUE(destroy(comm).ok());
  EXPECT_EQ(checked_handle(comm, "ncclCommDestroy").status().code(), Code::kInvalidArgument);
  EXPECT_NE(std::string(last_error_text()).find("has already been destroyed"), std::string::npos);
}

TEST(Lifecycle, ForeignMemoryIsNoCommunicator) {
  alignas(64) std::byte garbage[1024] = {};
  EXPECT_EQ(checked_handle(garbage, "ncclCommCount").status().code(), Code::kInvalidArgument);
  EXPECT_STREQ(last_error_text(), "Error: corrupted comm object detected");
}

// B-23
TEST(Lifecycle, SecondFinalizeIsAnInvalidArgument) {
  test::run_thread_ranks(2, [](Communicator& comm, int) {
    return finalize(comm).ok() && finalize(comm).code() == Code::kInvalidArgument;
  });
}

TEST(Lifecycle, RanksOutOfRangeAreNamed) {
  Communicator* comm = nullptr;
  const UniqueId id = test::make_id();
  EXPECT_EQ(init_rank(&comm, 2, {id}, 2, InitOptions{}).code(), Code::kInvalidArgument);
  EXPECT_STREQ(last_error_text(), "Invalid rank requested : 2/2");
  EXPECT_EQ(init_rank(&comm, 0, {id}, 0, InitOptions{}).code(), Code::kInvalidArgument);
  EXPECT_EQ(comm, nullptr);
}

// B-22
TEST(Lifecycle, DestroyReturnsWhileThePeerLives) {
  test::make_id();
  Communicator* comms[2];
  ASSERT_TRUE(init_all(comms, 2, nullptr).ok());
  std::vector<int32_t> data[2] = {std::vector<int32_t>(1000, 1), std::vector<int32_t>(1000, 2)};
  ASSERT_TRUE(group_start().ok());
  for (int r = 0; r < 2; ++r) ASSERT_TRUE(submit(*comms[r], kSum, data[r].data(), data[r].data(), nullptr).ok());
  ASSERT_TRUE(group_end().ok());
  EXPECT_TRUE(destroy(comms[0]).ok());  // nobody else takes part
  EXPECT_EQ(count_of(*comms[1]), 2);
  EXPECT_TRUE(destroy(comms[1]).ok());
}

TEST(Lifecycle, AbortFromAnotherThreadEndsAWaitingCall) {
  test::make_id();
  Communicator* comms[2];
  ASSERT_TRUE(init_all(comms, 2, nullptr).ok());
  std::vector<int32_t> data(1000, 1);
  Status result;
  std::thread caller([&] { result = submit(*comms[0], kSum, data.data(), data.data(), nullptr); });
  // The peer never calls. Aborting before the call has begun must end it just as well.
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(abort(comms[0]).ok());
  caller.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  EXPECT_FALSE(result.ok());
  EXPECT_TRUE(abort(comms[1]).ok());
}

// Three threads reduce in place, directly in each other's buffers; one is aborted at some moment and gives its buffer
// back at once. Address- and ThreadSanitizer see any touch that comes too late.
TEST(Lifecycle, AnAbortedRankMayFreeItsBuffersAtOnce) {
  test::make_id();
  for (int trial = 0; trial < 30; ++trial) {
    Communicator* comms[3];
    ASSERT_TRUE(init_all(comms, 3, nullptr).ok());
    std::atomic<int> calls{0};
    std::vector<std::thread> callers;
    for (int r = 0; r < 3; ++r) {
      callers.emplace_back([&, r] {
        for (Status status; status.ok(); ++calls) {
          auto data = std::make_unique<std::vector<int32_t>>(50000, 1);
          status = submit(*comms[r], {Operation::kAllReduce, DataType::kInt32, ReduceOp::kSum, 0, 50000}, data->data(),
                          data->data(), nullptr);
        }
      });
    }
    while (calls < 3 + trial) std::this_thread::yield();
    for (Communicator* comm : comms) EXPECT_TRUE(abort(comm).ok());
    for (std::thread& caller : callers) caller.join();
  }
}

// B-14
TEST(Lifecycle, AFailingInitEndsTheOthersOfItsGroup) {
  const UniqueId id = test::make_id();
  Communicator* comms[2] = {};
  ASSERT_TRUE(group_start().ok());
  ASSERT_TRUE(init_rank(&comms[0], 2, {id}, 0, InitOptions{}).ok());
  EXPECT_FALSE(init_rank(&comms[1], 2, {id}, 5, InitOptions{}).ok());  // rank 1 never comes
  EXPECT_EQ(group_end().code(), Code::kInvalidArgument);
  EXPECT_EQ(comms[0], nullptr);
}

// B-14
TEST(Lifecycle, ManyThreadsCreateCommunicatorsAtOnce) {
  test::make_id();
  test::run_ranks(8, [](int) {
    for (int i = 0; i < 20; ++i) {
      Communicator* comm = nullptr;
      ASSERT_TRUE(init_rank(&comm, 1, {test::make_id()}, 0, InitOptions{}).ok());
      ASSERT_TRUE(destroy(comm).ok());
    }
  });
}

TEST(Lifecycle, NothingIsLeftBehind) {
  const auto cycle = [] {
    test::run_thread_ranks(3, [](Communicator& comm, int) {
      std::vector<int32_t> data(1000, 1);
      return submit(comm, kSum, data.data(), data.data(), nullptr).ok();
    });
  };
  cycle();
  const size_t descriptors = entries_of("/proc/self/fd"), threads = entries_of("/proc/self/task");
  for (int i = 0; i < 20; ++i) cycle();
  EXPECT_EQ(entries_of("/proc/self/fd"), descriptors);
  EXPECT_EQ(entries_of("/dev/shm", "talaria." + std::to_string(getpid()) + "-"), 0u);
  // A root listener may still be on its way out; it never outlives its rendezvous for long.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (entries_of("/proc/self/task") > threads && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  EXPECT_LE(entries_of("/proc/self/task"), threads);
}

}  // namespace
}  // namespace talaria
