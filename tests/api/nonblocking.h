// Non-blocking communicators, and how their callers poll.
#pragma once


#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "api/host_ranks.h"
#include "support/ids.h"
#include "support/processes.h"

namespace talaria::test {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

inline ncclConfig_t non_blocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

inline ncclUniqueId new_id() {
  ncclUniqueId id;
  EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess) << ncclGetLastError(nullptr);
  return id;
}

inline ncclResult_t state_of(ncclComm_t comm) {
  ncclResult_t state = ncclInternalError;
  EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess) << ncclGetLastError(nullptr);
  return state;
}

// What the state becomes; ncclInProgress after so many seconds of it.
inline ncclResult_t settled(ncclComm_t comm, double seconds = 60) {
  const auto start = Clock::now();
  ncclResult_t state;
  while ((state = state_of(comm)) == ncclInProgress && seconds_since(start) < seconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return state;
}

// A call that may go on in the background, and its end.
inline ncclResult_t finished(ncclResult_t result, ncclComm_t comm) {
  return result == ncclInProgress ? settled(comm) : result;
}

inline ncclResult_t start_init(ncclComm_t* comm, int nranks, const ncclUniqueId& id, int rank) {
  ncclConfig_t config = non_blocking();
  return ncclCommInitRankConfig(comm, nranks, id, rank, &config);
}

// Runs member(id, rank) in n processes, which all must return true. The id is made by one of them: nothing is forked
// while a thread of the library runs.
template <typename Member>
void run_process_inits(int nranks, Member member) {
  Handover<ncclUniqueId> id;
  const std::vector<int> exits = run_processes(nranks, [&](int rank) {
    if (rank == 0) id.give(new_id());
    return member(id.take(), rank) ? 0 : 1;
  });
  EXPECT_EQ(exits, std::vector<int>(static_cast<size_t>(nranks), 0));
}

// The sum of what the ranks give.
inline int sum_over(ncclComm_t comm, int mine) {
  int sum = -1;
  EXPECT_EQ(ncclAllReduce(&mine, &sum, 1, ncclInt32, ncclSum, comm, nullptr), ncclSuccess) << ncclGetLastError(nullptr);
  return sum;
}

// All ranks of one non-blocking communicator in this process, ready; aborted at the end.
class NonBlockingClique {
 public:
  explicit NonBlockingClique(int nranks) : comms_(static_cast<size_t>(nranks)) {
    const ncclUniqueId id = new_id();
    for (int rank = 0; rank < nranks; ++rank) {
      const ncclResult_t started = start_init(&comms_[static_cast<size_t>(rank)], nranks, id, rank);
      EXPECT_TRUE(started == ncclInProgress || started == ncclSuccess) << ncclGetLastError(nullptr);
    }
    for (ncclComm_t comm : comms_) EXPECT_EQ(settled(comm), ncclSuccess) << ncclGetLastError(nullptr);
  }
  NonBlockingClique(const NonBlockingClique&) = delete;
  NonBlockingClique& operator=(const NonBlockingClique&) = delete;
  ~NonBlockingClique() {
    for (size_t rank = 0; rank < comms_.size(); ++rank) abort(static_cast<int>(rank));
  }
  int size() const { return static_cast<int>(comms_.size()); }
  ncclComm_t operator[](int rank) const { return comms_[static_cast<size_t>(rank)]; }
  void abort(int rank) {
    ncclComm_t& comm = comms_[static_cast<size_t>(rank)];
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess) << ncclGetLastError(nullptr);
    comm = nullptr;
  }

 private:
  std::vector<ncclComm_t> comms_;
};

// Entries of a folder: threads in /proc/self/task, descriptors in /proc/self/fd.
inline size_t entries_of(const char* path) {
  const std::filesystem::directory_iterator entries(path);
  return static_cast<size_t>(std::distance(begin(entries), end(entries)));
}

inline int threads_named(const std::string& name) {
  int found = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string own;
    std::getline(std::ifstream(task.path() / "comm"), own);
    if (own == name) ++found;
  }
  return found;
}

}  // namespace talaria::test
