// Communicators made of what is left of others, and of newcomers. Ranks are processes of this host.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "api/host_ranks.h"
#include "support/processes.h"
#include "support/shared.h"

namespace talaria::test {
namespace {

using Survivors = HostRanks;

constexpr unsigned kHangSeconds = 30;  // a process that hangs is ended by SIGALRM and so reported

// What the processes of one test share.
struct Board {
  ncclUniqueId id, growth;
  std::atomic<bool> id_made{false}, growth_made{false};
};

class Trial {
 public:
  Board& board() { return *board_; }

  // The exit value of each process; member(rank) returns 0 if all is well.
  template <typename Member>
  std::vector<int> run(int processes, Member member) {
    return run_processes(processes, [&](int rank) {
      alarm(kHangSeconds);
      return member(rank);
    });
  }
  ncclComm_t init(int rank, int nranks) {
    if (rank == 0) {
      if (ncclGetUniqueId(&board_->id) != ncclSuccess) return nullptr;
      board_->id_made = true;
    }
    while (!board_->id_made) std::this_thread::yield();
    ncclComm_t comm = nullptr;
    return ncclCommInitRank(&comm, nranks, board_->id, rank) == ncclSuccess ? comm : nullptr;
  }

 private:
  Shared<Board> board_;
};

int complain(const std::string& what) {
  fprintf(stderr, "process %d: %s: %s\n", getpid(), what.c_str(), ncclGetLastError(nullptr));
  return 1;
}

// Sums of several sizes, small and large.
bool adds_up(ncclComm_t comm, int nranks) {
  for (const size_t count : {1u, 3000u, 200000u}) {
    std::vector<int> mine(count), sums(count);
    std::iota(mine.begin(), mine.end(), 0);
    if (ncclAllReduce(mine.data(), sums.data(), count, ncclInt, ncclSum, comm, nullptr) != ncclSuccess) return false;
    for (size_t i = 0; i < count; ++i) {
      if (sums[i] != static_cast<int>(i) * nranks) return false;
    }
  }
  return true;
}

bool names(int rank) {
  const std::string text = ncclGetLastError(nullptr);
  const std::string name = "rank " + std::to_string(rank);
  return text.find(name + " died") != std::string::npos ||
         text.find(name + " of the parent communicator") != std::string::npos;
}

TEST_F(Survivors, ShrinkAfterARankWasKilledInAnOperation) {
  for (const int victim : {0, 1, 3}) {
    Trial trial;
    const std::vector<int> exits = trial.run(4, [&](int rank) {
      ncclComm_t comm = trial.init(rank, 4), child = nullptr;
      if (comm == nullptr) return complain("init");
      std::vector<float> data(100000);
      for (int i = 0;; ++i) {
        if (rank == victim && i == 20) raise(SIGKILL);
        if (ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, comm, nullptr)) break;
      }
      int excluded[] = {victim};
      if (ncclCommShrink(comm, excluded, 1, &child, nullptr, NCCL_SHRINK_ABORT) != ncclSuccess) {
        return complain("shrink");
      }
      int place = -1;
      if (ncclCommUserRank(child, &place) != ncclSuccess || place != rank - (rank > victim ? 1 : 0)) return 2;
      if (!adds_up(child, 3)) return complain("the child");
      if (ncclCommAbort(comm) != ncclSuccess) return complain("abort");
      if (!adds_up(child, 3)) return complain("the child alone");
      return ncclCommDestroy(child) == ncclSuccess ? 0 : complain("destroy");
    });
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(exits[static_cast<size_t>(rank)], rank == victim ? 128 + SIGKILL : 0) << "victim " << victim;
    }
  }
}

// Two died, but the others have heard of one only.
TEST_F(Survivors, ARankThatDiedOnTheWayIsNamed) {
  for (const int second : {0, 1, 2}) {
    Trial trial;
    const std::vector<int> exits = trial.run(4, [&](int rank) {
      ncclComm_t comm = trial.init(rank, 4), child = nullptr;
      if (comm == nullptr || !adds_up(comm, 4)) return complain("init");
      if (rank == 3) raise(SIGKILL);
      if (rank == second) raise(SIGKILL);
      int excluded[] = {3};
      const auto begin = std::chrono::steady_clock::now();
      if (ncclCommShrink(comm, excluded, 1, &child, nullptr, NCCL_SHRINK_ABORT) != ncclRemoteError) return 2;
      if (!names(second) || child != nullptr) return complain("another name");
      if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(5)) return complain("too late");
      return ncclCommAbort(comm) == ncclSuccess ? 0 : complain("abort");
    });
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(exits[static_cast<size_t>(rank)], rank == second ? 128 + SIGKILL : 0) << "second " << second;
    }
  }
}

TEST_F(Survivors, NewcomersTakeThePlaceOfADeadRank) {
  Trial trial;
  Board& board = trial.board();
  const std::vector<int> exits = trial.run(5, [&](int rank) {
    ncclComm_t grown = nullptr;
    if (rank >= 3) {
      while (!board.growth_made) std::this_thread::yield();
      if (ncclCommGrow(nullptr, 4, &board.growth, rank - 1, &grown, nullptr) != ncclSuccess) return complain("join");
    } else {
      ncclComm_t comm = trial.init(rank, 3), rest = nullptr;
      if (comm == nullptr || !adds_up(comm, 3)) return complain("init");
      if (rank == 1) raise(SIGKILL);
      int excluded[] = {1};
      if (ncclCommShrink(comm, excluded, 1, &rest, nullptr, NCCL_SHRINK_ABORT)) return complain("shrink");
      if (rank == 2) {
        if (ncclCommGetUniqueId(rest, &board.growth) != ncclSuccess) return complain("unique id");
        board.growth_made = true;
      }
      if (ncclCommGrow(rest, 4, nullptr, -1, &grown, nullptr) != ncclSuccess) return complain("grow");
      if (ncclCommDestroy(rest) != ncclSuccess || ncclCommAbort(comm) != ncclSuccess) return complain("parents");
    }
    if (!adds_up(grown, 4)) return complain("the grown one");
    return ncclCommDestroy(grown) == ncclSuccess ? 0 : complain("destroy");
  });
  EXPECT_EQ(exits, (std::vector<int>{0, 128 + SIGKILL, 0, 0, 0}));
}

TEST_F(Survivors, RevokeThenSplit) {
  Trial trial;
  const std::vector<int> exits = trial.run(4, [&](int rank) {
    ncclComm_t comm = trial.init(rank, 4), child = nullptr;
    if (comm == nullptr || !adds_up(comm, 4)) return complain("init");
    if (ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT) != ncclSuccess) return complain("revoke");
    if (ncclCommSplit(comm, rank % 2, 0, &child, nullptr) != ncclSuccess) return complain("split");
    if (!adds_up(child, 2)) return complain("the child");
    const bool ended = ncclCommDestroy(comm) == ncclSuccess && ncclCommDestroy(child) == ncclSuccess;
    return ended ? 0 : complain("destroy");
  });
  EXPECT_EQ(exits, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace talaria::test
