// Processes whose surroundings are hostile: no descriptors left, separate /dev/shm, forks, a narrow CPU mask.
#include <dirent.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "api/host_ranks.h"
#include "support/processes.h"

namespace talaria::test {
namespace {

using Hostile = HostRanks;

constexpr int kSkipped = 77;

// What went wrong in a child, said where a person sees it.
int complain(const std::string& what) {
  fprintf(stderr, "process %d: %s: %s\n", getpid(), what.c_str(), ncclGetLastError(nullptr));
  return 1;
}

bool adds_up(ncclComm_t comm, int nranks) {
  int one = 1, sum = 0;
  return ncclAllReduce(&one, &sum, 1, ncclInt, ncclSum, comm, nullptr) == ncclSuccess && sum == nranks;
}

std::vector<int> open_descriptors() {
  std::vector<int> open;
  DIR* folder = opendir("/proc/self/fd");
  while (const dirent* entry = folder == nullptr ? nullptr : readdir(folder)) {
    const int fd = atoi(entry->d_name);
    if (entry->d_name[0] != '.' && fd != dirfd(folder)) open.push_back(fd);
  }
  if (folder != nullptr) closedir(folder);
  return open;
}

// A port that nobody uses now, for NCCL_COMM_ID.
std::string free_endpoint() { return "127.0.0.1:" + std::to_string(20000 + getpid() % 12000); }

// Both ranks of a communicator in this process, by one group.
ncclResult_t init_pair(ncclComm_t (&comms)[2]) {
  ncclUniqueId id;
  comms[0] = comms[1] = nullptr;
  if (const ncclResult_t result = ncclGetUniqueId(&id); result != ncclSuccess) return result;
  ncclGroupStart();
  for (int rank : {0, 1}) ncclCommInitRank(&comms[rank], 2, id, rank);
  return ncclGroupEnd();
}

ncclResult_t add_pair(const ncclComm_t (&comms)[2]) {
  int one = 1, sums[2] = {};
  ncclGroupStart();
  for (int rank : {0, 1}) ncclAllReduce(&one, &sums[rank], 1, ncclInt, ncclSum, comms[rank], nullptr);
  const ncclResult_t result = ncclGroupEnd();
  return result == ncclSuccess && (sums[0] != 2 || sums[1] != 2) ? ncclInternalError : result;
}

int init_with_ever_more_descriptors() {
  // Those of whoever started the test may have the highest numbers there are.
  for (int fd : open_descriptors()) {
    if (fd > STDERR_FILENO) close(fd);
  }
  setenv("NCCL_COMM_ID", free_endpoint().c_str(), 1);
  setenv("TALARIA_INIT_TIMEOUT", "1", 1);
  setenv("NCCL_SOCKET_RETRY_CNT", "1", 1);
  ncclComm_t comms[2];
  // Once with plenty: what the process keeps for good is there then.
  if (init_pair(comms) != ncclSuccess) return complain("plenty of descriptors");
  for (ncclComm_t comm : comms) ncclCommDestroy(comm);
  // The limit is one of numbers, not of how many: gaps below the highest one are filled.
  const std::vector<int> sparse = open_descriptors();
  const int top = *std::ranges::max_element(sparse);
  int filler = 0;
  while ((filler = dup(STDERR_FILENO)) < top) {
  }
  close(filler);
  const std::vector<int> before = open_descriptors();
  const auto highest = static_cast<rlim_t>(top) + 1;
  rlimit plenty{};
  getrlimit(RLIMIT_NOFILE, &plenty);
  int refused = 0;
  for (rlim_t more = 0; more < 40; ++more) {
    const rlimit few{std::min(highest + more, plenty.rlim_cur), plenty.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    const ncclResult_t result = init_pair(comms);
    const std::string text = ncclGetLastError(nullptr);
    setrlimit(RLIMIT_NOFILE, &plenty);
    if (result == ncclSuccess) {
      if (add_pair(comms) != ncclSuccess) return complain("an operation");
      for (ncclComm_t comm : comms) ncclCommDestroy(comm);
      if (open_descriptors().size() != before.size()) return complain("descriptors left after success");
      return refused > 0 ? 0 : complain("the limit was never felt");
    }
    ++refused;
    if (text.empty() || comms[0] != nullptr || comms[1] != nullptr) return complain("an error without a text");
    if (open_descriptors().size() != before.size()) {
      return complain(std::to_string(open_descriptors().size() - before.size()) + " descriptors leaked");
    }
  }
  return complain("no init succeeded");
}

TEST_F(Hostile, InitWithoutDescriptorsIsAnErrorAndLeaksNothing) {
  EXPECT_EQ(wait_for_exit(fork_rank(init_with_ever_more_descriptors)), 0);
}

// Ranks that cannot see each other's shared memory use another way.
TEST_F(Hostile, SeparateSharedMemoryMounts) {
  const std::string endpoint = free_endpoint();
  const std::vector<int> exits = run_processes(2, [&](int rank) {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64m") != 0) {
      return kSkipped;
    }
    setenv("NCCL_COMM_ID", endpoint.c_str(), 1);
    ncclUniqueId id;
    ncclComm_t comm = nullptr;
    if (ncclGetUniqueId(&id) != ncclSuccess) return complain("unique id");
    if (ncclCommInitRank(&comm, 2, id, rank) != ncclSuccess) return complain("init");
    const bool right = adds_up(comm, 2);
    return ncclCommDestroy(comm) == ncclSuccess && right ? 0 : complain("an operation");
  });
  if (exits[0] == kSkipped) GTEST_SKIP() << "no mounts of our own here";
  EXPECT_EQ(exits, std::vector<int>(2, 0));
}

int parent_goes_on() {
  ncclComm_t comms[2];
  if (ncclCommInitAll(comms, 2, nullptr) != ncclSuccess) return complain("init");
  if (add_pair(comms) != ncclSuccess) return complain("before the fork");
  // One child ends at once, another stays with everything that it has inherited.
  if (wait_for_exit(fork_rank([] { return 0; })) != 0) return complain("the first child");
  int hold[2];
  if (pipe(hold) != 0) return complain("pipe");
  const pid_t lasting = fork_rank([&] {
    char byte;
    close(hold[1]);
    return read(hold[0], &byte, 1) == 0 ? 0 : 1;
  });
  for (int i = 0; i < 100; ++i) {
    if (add_pair(comms) != ncclSuccess) return complain("after the fork");
  }
  for (ncclComm_t comm : comms) {
    if (ncclCommDestroy(comm) != ncclSuccess) return complain("destroy");
  }
  close(hold[1]);
  return wait_for_exit(lasting);
}

TEST_F(Hostile, TheParentOfAForkGoesOn) { EXPECT_EQ(wait_for_exit(fork_rank(parent_goes_on)), 0); }

int child_is_told() {
  ncclComm_t comms[2];
  if (ncclCommInitAll(comms, 2, nullptr) != ncclSuccess) return complain("init");
  const pid_t child = fork_rank([&] {
    int value = 0;
    if (ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, comms[0], nullptr) != ncclInvalidUsage) return 1;
    if (strstr(ncclGetLastError(nullptr), "forked") == nullptr) return complain("another text");
    if (ncclCommDestroy(comms[0]) != ncclInvalidUsage || ncclCommAbort(comms[1]) != ncclInvalidUsage) return 2;
    // What it makes itself is its own.
    ncclComm_t own[2];
    if (ncclCommInitAll(own, 2, nullptr) != ncclSuccess || add_pair(own) != ncclSuccess) return complain("own");
    for (ncclComm_t comm : own) ncclCommDestroy(comm);
    return 0;
  });
  if (const int exit = wait_for_exit(child); exit != 0) return 10 + exit;
  if (add_pair(comms) != ncclSuccess) return complain("the parent after the fork");
  for (ncclComm_t comm : comms) {
    if (ncclCommDestroy(comm) != ncclSuccess) return complain("destroy");
  }
  return 0;
}

TEST_F(Hostile, AForkedChildThatCallsIsToldSo) { EXPECT_EQ(wait_for_exit(fork_rank(child_is_told)), 0); }

// B-18
int affinity_stays() {
  cpu_set_t allowed, mine, after;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) < 2) return kSkipped;
  CPU_ZERO(&mine);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&mine) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &mine);
  }
  if (sched_setaffinity(0, sizeof(mine), &mine) != 0) return kSkipped;
  ncclComm_t comms[2];
  ncclUniqueId unused;
  if (ncclGetUniqueId(&unused) != ncclSuccess) return complain("unique id");  // has a thread of its own
  if (ncclCommInitAll(comms, 2, nullptr) != ncclSuccess || add_pair(comms) != ncclSuccess) return complain("init");
  if (sched_getaffinity(0, sizeof(after), &after) != 0 || !CPU_EQUAL(&mine, &after)) return complain("own affinity");
  DIR* tasks = opendir("/proc/self/task");
  int threads = 0;
  while (const dirent* entry = readdir(tasks)) {
    if (entry->d_name[0] == '.') continue;
    if (sched_getaffinity(atoi(entry->d_name), sizeof(after), &after) != 0) continue;  // it has just ended
    ++threads;
    if (!CPU_EQUAL(&mine, &after)) return complain("a helper thread's affinity");
  }
  closedir(tasks);
  for (ncclComm_t comm : comms) ncclCommDestroy(comm);
  return threads >= 2 ? 0 : complain("no helper thread was seen");
}

TEST_F(Hostile, AffinityOfTheCallerAndOfHelpersStaysInsideTheMask) {
  const int verdict = wait_for_exit(fork_rank(affinity_stays));
  if (verdict == kSkipped) GTEST_SKIP() << "one CPU only";
  EXPECT_EQ(verdict, 0);
}

}  // namespace
}  // namespace talaria::test
