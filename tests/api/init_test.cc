// How ranks come together through the C API: several ids, versions that differ, ranks that never come.
#include <sys/mman.h>
#include <time.h>

#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "api/host_ranks.h"
#include "support/ids.h"
#include "support/processes.h"
#include "support/threads.h"

namespace talaria::test {
namespace {

using InitApi = HostRanks;

constexpr int kMostRanks = 8;

// What each rank's process got, in memory that they share.
struct Outcome {
  ncclResult_t result;
  double seconds;
  char text[1024];
};

double now_seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

class Outcomes {
 public:
  Outcomes()
      : all_(static_cast<Outcome*>(mmap(nullptr, sizeof(Outcome) * kMostRanks, PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  Outcomes(const Outcomes&) = delete;
  Outcomes& operator=(const Outcomes&) = delete;
  ~Outcomes() { munmap(all_, sizeof(Outcome) * kMostRanks); }
  const Outcome& operator[](int rank) const { return all_[rank]; }
  bool mentions(int rank, const char* part) const { return strstr(all_[rank].text, part) != nullptr; }

  // Runs `call(rank)` in a process for each of `ranks`.
  void collect(const std::vector<int>& ranks, const std::function<ncclResult_t(int)>& call) {
    std::vector<pid_t> children;
    for (int rank : ranks) {
      children.push_back(fork_rank([&] {
        const double start = now_seconds();
        all_[rank].result = call(rank);
        all_[rank].seconds = now_seconds() - start;
        strncpy(all_[rank].text, ncclGetLastError(nullptr), sizeof(all_[rank].text) - 1);
        return 0;
      }));
    }
    for (pid_t child : children) EXPECT_EQ(wait_for_exit(child), 0);
  }

 private:
  Outcome* all_;
};

ncclUniqueId make_id() {
  ncclUniqueId id;
  EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess) << ncclGetLastError(nullptr);
  return id;
}

ncclResult_t init_and_add(const std::function<ncclResult_t(ncclComm_t*)>& init, int nranks) {
  ncclComm_t comm = nullptr;
  if (const ncclResult_t result = init(&comm); result != ncclSuccess) return result;
  int sum = 0, one = 1;
  const ncclResult_t result = ncclAllReduce(&one, &sum, 1, ncclInt, ncclSum, comm, nullptr);
  const ncclResult_t ended = ncclCommDestroy(comm);
  if (result != ncclSuccess) return result;
  return sum == nranks ? ended : ncclInternalError;
}

// B-09
TEST_F(InitApi, AnotherVersionIsRefusedByNameOnAllRanks) {
  const ForkedIds<ncclUniqueId> ids(1, make_id);
  Outcomes outcomes;
  outcomes.collect({0, 1, 2}, [&](int rank) {
    if (rank == 2) setenv("TALARIA_FAULT", "version", 1);
    return init_and_add([&](ncclComm_t* comm) { return ncclCommInitRank(comm, 3, ids.one(), rank); }, 3);
  });
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(outcomes[rank].result, ncclInvalidUsage);
    EXPECT_TRUE(outcomes.mentions(rank, "Mismatched NCCL version detected")) << outcomes[rank].text;
    EXPECT_TRUE(outcomes.mentions(rank, "rank 0") && outcomes.mentions(rank, "rank 2")) << outcomes[rank].text;
  }
}

TEST_F(InitApi, VersionsAreNotComparedWhereTheUserSaysSo) {
  const ForkedIds<ncclUniqueId> ids(1, make_id);
  Outcomes outcomes;
  outcomes.collect({0, 1}, [&](int rank) {
    setenv("NCCL_ENABLE_VERSION_CHECK", "0", 1);
    if (rank == 1) setenv("TALARIA_FAULT", "version", 1);
    return init_and_add([&](ncclComm_t* comm) { return ncclCommInitRank(comm, 2, ids.one(), rank); }, 2);
  });
  for (int rank : {0, 1}) EXPECT_EQ(outcomes[rank].result, ncclSuccess) << outcomes[rank].text;
}

TEST_F(InitApi, RanksThatNeverComeAreNamed) {
  const ForkedIds<ncclUniqueId> ids(1, make_id);
  Outcomes outcomes;
  outcomes.collect({0, 2}, [&](int rank) {
    setenv("TALARIA_INIT_TIMEOUT", "1", 1);
    return init_and_add([&](ncclComm_t* comm) { return ncclCommInitRank(comm, 4, ids.one(), rank); }, 4);
  });
  for (int rank : {0, 2}) {
    EXPECT_EQ(outcomes[rank].result, ncclRemoteError);
    EXPECT_TRUE(outcomes.mentions(rank, "rank 1, 3")) << outcomes[rank].text;
    EXPECT_GE(outcomes[rank].seconds, 0.9);
    EXPECT_LT(outcomes[rank].seconds, 20);
  }
}

// B-04
TEST_F(InitApi, APortRangeThatIsNoneIsNamed) {
  setenv("TALARIA_PORT_RANGE", "1-", 1);
  ncclUniqueId id;
  EXPECT_EQ(ncclGetUniqueId(&id), ncclInvalidUsage);
  EXPECT_NE(strstr(ncclGetLastError(nullptr), "TALARIA_PORT_RANGE"), nullptr);
  unsetenv("TALARIA_PORT_RANGE");
}

TEST_F(InitApi, ScalableInitSpreadsTheRanks) {
  for (int nranks : {1, 2, 5, 8}) {
    for (int nids = 1; nids <= nranks; ++nids) {
      std::vector<ncclUniqueId> ids;
      for (int i = 0; i < nids; ++i) ids.push_back(make_id());
      run_ranks(nranks, [&](int rank) {
        std::vector<ncclUniqueId> mine = ids;  // the API takes them without const
        EXPECT_EQ(init_and_add(
                      [&](ncclComm_t* comm) {
                        return ncclCommInitRankScalable(comm, nranks, rank, nids, mine.data(), nullptr);
                      },
                      nranks),
                  ncclSuccess)
            << nranks << " ranks, " << nids << " ids: " << ncclGetLastError(nullptr);
      });
    }
  }
}

TEST_F(InitApi, ScalableInitBetweenProcesses) {
  const ForkedIds<ncclUniqueId> forked(3, make_id);
  std::vector<ncclUniqueId> ids = forked.all();
  Outcomes outcomes;
  outcomes.collect({0, 1, 2, 3, 4, 5, 6}, [&](int rank) {
    return init_and_add(
        [&](ncclComm_t* comm) { return ncclCommInitRankScalable(comm, 7, rank, 3, ids.data(), nullptr); }, 7);
  });
  for (int rank = 0; rank < 7; ++rank) EXPECT_EQ(outcomes[rank].result, ncclSuccess) << outcomes[rank].text;
}

TEST_F(InitApi, ScalableInitRefusesCountsThatCannotBeMeant) {
  std::array<ncclUniqueId, 2> ids{make_id(), make_id()};
  for (int nids : {0, -1, 3}) {
    auto* comm = reinterpret_cast<ncclComm_t>(0x10);
    EXPECT_EQ(ncclCommInitRankScalable(&comm, 2, 0, nids, ids.data(), nullptr), ncclInvalidArgument) << nids;
    EXPECT_EQ(comm, nullptr);
  }
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankScalable(nullptr, 2, 0, 2, ids.data(), nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRankScalable(&comm, 2, 0, 2, nullptr, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRankScalable(&comm, 2, 2, 2, ids.data(), nullptr), ncclInvalidArgument);
  ids[1] = ids[0];
  EXPECT_EQ(ncclCommInitRankScalable(&comm, 2, 0, 2, ids.data(), nullptr), ncclInvalidArgument);
  EXPECT_NE(strstr(ncclGetLastError(nullptr), "given twice"), nullptr) << ncclGetLastError(nullptr);
}

}  // namespace
}  // namespace talaria::test
