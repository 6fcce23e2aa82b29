// A rank that dies, aborts or leaves is named to those who wait for it; nobody waits for ever. Ranks are processes.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/os.h"
#include "host_ranks.h"
#include "support/shared.h"
#include "transport/cross_memory.h"

namespace talaria {
namespace {

constexpr int kMaxRanks = 5;
constexpr double kPromptUsec = 2e6;    // within which every survivor must have its error
constexpr unsigned kHangSeconds = 30;  // a child that hangs is ended by SIGALRM and so reported

// What the processes of one trial share.
struct Board {
  std::atomic<int> generation{0};  // of id
  UniqueId id;
  std::atomic<int> ready{0}, turn{0}, calls{0};
  std::atomic<bool> go{false};
  std::atomic<double> fault_usec{0}, returned_usec[kMaxRanks];
  char texts[kMaxRanks][512];
};

class Trial {
 public:
  Board& board() { return *board_; }

  // member(comm, rank) runs in a process per rank, which exits with 0 if it returns true. It owns the communicator.
  template <typename Member>
  void start(int nranks, Member member) {
    for (int rank = 0; rank < nranks; ++rank) {
      children_.push_back(test::fork_rank([&, rank] {
        alarm(kHangSeconds);
        setenv("TALARIA_DEVICE", "host", 1);
        Communicator* comm = meet(rank, nranks, 1);
        return comm != nullptr && member(*comm, rank) ? 0 : 1;
      }));
    }
  }
  Communicator* meet(int rank, int nranks, int generation) {
    if (rank == 0) {
      board_->id = create_unique_id(read_config()).value();
      board_->generation = generation;
    }
    while (board_->generation < generation) std::this_thread::yield();
    Communicator* comm = nullptr;
    (void)init_rank(&comm, nranks, {board_->id}, rank, InitOptions{});
    ++board_->ready;
    return comm;
  }
  pid_t child(int rank) const { return children_[static_cast<size_t>(rank)]; }
  std::vector<int> wait() {
    std::vector<int> exits;
    for (pid_t child : children_) exits.push_back(test::wait_for_exit(child));
    return exits;
  }

 private:
  test::Shared<Board> board_;
  std::vector<pid_t> children_;
};

// One of several operations and sizes, the same on all ranks for the same index. Sends go to the next rank.
Status call(Communicator& comm, int index, std::vector<float>& data) {
  constexpr std::array<uint64_t, 5> kCounts{1, 700, 20000, 64, 150000};
  const uint64_t count = kCounts[static_cast<size_t>(index) % kCounts.size()];
  const int rank = rank_of(comm), nranks = count_of(comm), root = index % nranks;
  data.resize(200000 * static_cast<size_t>(nranks));
  float* output = data.data();
  float* input = output + count;  // overlap is harmless: nobody looks at the values
  const auto collective = [&](Operation operation, int peer) {
    return Collective{operation, DataType::kFloat32, ReduceOp::kSum, peer, count};
  };
  switch (index % 4) {
    case 0: return submit(comm, collective(Operation::kAllReduce, 0), output, output, nullptr);
    case 1: return submit(comm, collective(Operation::kBroadcast, root), output, output, nullptr);
    case 2: return submit(comm, collective(Operation::kAllGather, 0), output + count * static_cast<uint64_t>(rank),
                          output, nullptr);
    default: break;
  }
  (void)group_start();
  (void)submit(comm, collective(Operation::kSend, (rank + 1) % nranks), input, nullptr, nullptr);
  (void)submit(comm, collective(Operation::kRecv, (rank + nranks - 1) % nranks), nullptr, output, nullptr);
  return group_end();
}

// Calls operations until one fails; notes when and with what text.
Status call_until_failure(Communicator& comm, int rank, Board& board) {
  std::vector<float> data;
  Status status;
  for (int index = 0; status.ok(); ++index) {
    status = call(comm, index, data);
    ++board.calls;
  }
  board.returned_usec[rank] = now_usec();
  strncpy(board.texts[rank], last_error_text(), sizeof(board.texts[rank]) - 1);
  return status;
}

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// What must hold after the first failure: the fault stays named, and nothing hangs.
bool is_over(Communicator& comm, const std::string& culprit, bool by_abort) {
  std::vector<float> data;
  const bool remote = async_error_of(comm) == Code::kRemote;
  const bool refused = call(comm, 0, data).code() == Code::kRemote && mentions(last_error_text(), culprit);
  const bool ended = by_abort ? abort(&comm).ok() : destroy(&comm).ok();
  return remote && refused && ended;
}

void expect_named(Board& board, int nranks, int gone, const std::string& culprit) {
  for (int rank = 0; rank < nranks; ++rank) {
    if (rank == gone) continue;
    EXPECT_TRUE(mentions(board.texts[rank], culprit)) << "rank " << rank << ": " << board.texts[rank];
    EXPECT_LT(board.returned_usec[rank] - board.fault_usec, kPromptUsec) << "rank " << rank;
  }
}

void kill_one(int nranks, std::mt19937& random) {
  const int victim = static_cast<int>(random() % static_cast<unsigned>(nranks));
  const int after_calls = static_cast<int>(random() % 200);
  const double after_usec = random() % 2000;
  SCOPED_TRACE(fmt::format("{} ranks, rank {} killed after {} calls and {} us", nranks, victim, after_calls,
                           after_usec));
  const std::string culprit = fmt::format("rank {} died", victim);
  Trial trial;
  Board& board = trial.board();
  trial.start(nranks, [&](Communicator& comm, int rank) {
    return call_until_failure(comm, rank, board).code() == Code::kRemote && is_over(comm, culprit, rank % 2 == 0);
  });
  const double give_up = now_usec() + kHangSeconds * 1e6;
  while ((board.ready < nranks || board.calls < after_calls) && now_usec() < give_up) std::this_thread::yield();
  for (const double until = now_usec() + after_usec; now_usec() < until;) cpu_pause();
  board.fault_usec = now_usec();
  EXPECT_EQ(kill(trial.child(victim), SIGKILL), 0);
  const std::vector<int> exits = trial.wait();
  for (int rank = 0; rank < nranks; ++rank) {
    EXPECT_EQ(exits[static_cast<size_t>(rank)], rank == victim ? 128 + SIGKILL : 0) << "rank " << rank;
  }
  expect_named(board, nranks, victim, culprit);
}

void kill_many(int nranks, int trials) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  for (int i = 0; i < trials && !testing::Test::HasFailure(); ++i) kill_one(nranks, random);
}

TEST(RankFaults, AKilledRankOfThreeIsNamedByAllWithinTwoSeconds) { kill_many(3, 12); }
TEST(RankFaults, AKilledRankOfFiveIsNamedByAllWithinTwoSeconds) { kill_many(5, 10); }

// Does the kernel let one child of this process touch the memory of another, and does Talaria use it?
bool processes_touch_buffers() {
  constexpr uint64_t kNonce = 0x1234567890abcdefull;
  static uint64_t nonce = kNonce;  // writable: the probe writes it back
  const char* const no_memory = getenv("NCCL_SHM_DISABLE");
  if (no_memory != nullptr && std::string(no_memory) != "0") return false;
  const pid_t idle = test::fork_rank([] {
    alarm(kHangSeconds);
    return pause();
  });
  const pid_t other = test::fork_rank(
      [&] { return cross_memory::probe(idle, reinterpret_cast<uint64_t>(&nonce), nonce) == 0 ? 0 : 1; });
  const bool touches = test::wait_for_exit(other) == 0;
  EXPECT_EQ(kill(idle, SIGKILL), 0);
  test::wait_for_exit(idle);
  return touches;
}

// The root writes its share of a large broadcast into the receiver's buffer, whose first half has a hole.
TEST(RankFaults, ABufferWithAHoleIsAnErrorThatSaysSo) {
  constexpr size_t kBytes = 4u << 20, kHole = 64u << 10;
  if (!processes_touch_buffers()) GTEST_SKIP() << "data between processes is staged here";
  Trial trial;
  Board& board = trial.board();
  trial.start(2, [&](Communicator& comm, int rank) {
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    if (rank == 1 && munmap(static_cast<std::byte*>(memory) + kBytes / 4, kHole) != 0) return false;
    const Collective broadcast{Operation::kBroadcast, DataType::kInt8, ReduceOp::kNone, 0, kBytes};
    const Status status = submit(comm, broadcast, memory, memory, nullptr);
    strncpy(board.texts[rank], last_error_text(), sizeof(board.texts[rank]) - 1);
    return status.code() == (rank == 0 ? Code::kSystem : Code::kRemote) && abort(&comm).ok();
  });
  EXPECT_EQ(trial.wait(), std::vector<int>(2, 0)) << board.texts[0] << "\n" << board.texts[1];
  EXPECT_TRUE(mentions(board.texts[0], "cannot reach a buffer")) << board.texts[0];
  EXPECT_TRUE(mentions(board.texts[1], "rank 0 gave up")) << board.texts[1];
}

TEST(RankFaults, AnAbortIsNamedToTheOthers) {
  for (int nranks : {2, 3, 5}) {
    const int gone = nranks - 1;
    const std::string culprit = fmt::format("rank {} aborted", gone);
    Trial trial;
    Board& board = trial.board();
    trial.start(nranks, [&](Communicator& comm, int rank) {
      if (rank != gone) {
        return call_until_failure(comm, rank, board).code() == Code::kRemote && is_over(comm, culprit, rank == 0);
      }
      std::vector<float> data;
      for (int index = 0; index < 20; ++index) {
        if (!call(comm, index, data).ok()) return false;
      }
      board.fault_usec = now_usec();
      return abort(&comm).ok();
    });
    EXPECT_EQ(trial.wait(), std::vector<int>(static_cast<size_t>(nranks), 0));
    expect_named(board, nranks, gone, culprit);
  }
}

TEST(RankFaults, ARankThatIsDestroyedTooEarlyIsNamedToTheOthers) {
  for (int nranks : {2, 3, 5}) {
    Trial trial;
    Board& board = trial.board();
    trial.start(nranks, [&](Communicator& comm, int rank) {
      if (rank != 0) {
        return call_until_failure(comm, rank, board).code() == Code::kRemote && is_over(comm, "rank 0 left", false);
      }
      std::vector<float> data;
      for (int index = 0; index < 10; ++index) {
        if (!call(comm, index, data).ok()) return false;
      }
      board.fault_usec = now_usec();
      return destroy(&comm).ok();
    });
    EXPECT_EQ(trial.wait(), std::vector<int>(static_cast<size_t>(nranks), 0));
    expect_named(board, nranks, 0, "rank 0 left");
  }
}

// The sockets of the dead stay open in its child, and nobody but the one who waits listens.
TEST(RankFaults, ADeadProcessIsNamedThoughItsSocketsLiveOn) {
  constexpr int kRanks = 5;
  Trial trial;
  Board& board = trial.board();
  trial.start(kRanks, [&](Communicator& comm, int rank) {
    while (board.ready < kRanks) std::this_thread::yield();
    if (rank == 0) {
      (void)test::fork_rank([&] {
        alarm(kHangSeconds);
        while (!board.go) std::this_thread::yield();
        return 0;
      });
      board.fault_usec = now_usec();
      raise(SIGKILL);
    }
    float value = 0;
    while (rank != 2 && !board.go) std::this_thread::yield();
    if (rank != 2) return destroy(&comm).ok();
    const Collective receive{Operation::kRecv, DataType::kFloat32, ReduceOp::kSum, 0, 1};
    const Code code = submit(comm, receive, nullptr, &value, nullptr).code();
    board.returned_usec[rank] = now_usec();
    const std::string text = last_error_text();
    board.go = true;
    return code == Code::kRemote && mentions(text, "rank 0 died") && mentions(text, "(Recv), waiting for rank 0") &&
           destroy(&comm).ok();
  });
  EXPECT_EQ(trial.wait(), (std::vector<int>{128 + SIGKILL, 0, 0, 0, 0}));
  EXPECT_LT(board.returned_usec[2] - board.fault_usec, kPromptUsec);
}

TEST(RankFaults, AnIdleRankLearnsOfADeathFromItsAsyncError) {
  Trial trial;
  Board& board = trial.board();
  trial.start(3, [&](Communicator& comm, int rank) {
    if (rank == 1) {
      while (board.ready < 3) std::this_thread::yield();
      board.fault_usec = now_usec();
      raise(SIGKILL);
    }
    const double until = now_usec() + kHangSeconds * 1e6;
    while (async_error_of(comm) == Code::kSuccess && now_usec() < until) std::this_thread::yield();
    board.returned_usec[rank] = now_usec();
    strncpy(board.texts[rank], last_error_text(), sizeof(board.texts[rank]) - 1);
    return is_over(comm, "rank 1 died", rank == 0);
  });
  EXPECT_EQ(trial.wait(), (std::vector<int>{0, 128 + SIGKILL, 0}));
  expect_named(board, 3, 1, "rank 1 died");
}

TEST(RankFaults, WhatARankSentBeforeItWasGoneStillArrives) {
  for (const bool dies : {false, true}) {
    Trial trial;
    Board& board = trial.board();
    trial.start(2, [&](Communicator& comm, int rank) {
      int32_t value = rank;
      const auto transfer = [&](Operation operation) {
        return submit(comm, {operation, DataType::kInt32, ReduceOp::kSum, 1 - rank, 1}, &value, &value, nullptr).ok();
      };
      if (rank == 1) return transfer(Operation::kSend) && (dies || destroy(&comm).ok());
      while (!board.go) std::this_thread::yield();
      const bool received = transfer(Operation::kRecv) && value == 1;
      return destroy(&comm).ok() && received;
    });
    EXPECT_EQ(test::wait_for_exit(trial.child(1)), 0);
    board.go = true;
    EXPECT_EQ(test::wait_for_exit(trial.child(0)), 0);
  }
}

// One cycle: a communicator is made, used and destroyed, in an order that changes or in none.
bool cycle(Trial& trial, Communicator& comm, int rank, int index) {
  constexpr int kRanks = 3;
  Board& board = trial.board();
  std::vector<float> data;
  bool good = call(comm, 0, data).ok() && call(comm, 3, data).ok();
  const int turn = index * kRanks + (rank + index / 2) % kRanks;
  while (index % 2 == 0 && board.turn < turn) std::this_thread::yield();
  // Now and then the last one looks long enough to be told of any death.
  const double until = now_usec() + (index % 50 == 0 && turn % kRanks == kRanks - 1 ? 400e3 : 0);
  do {
    good = good && async_error_of(comm) == Code::kSuccess;
  } while (now_usec() < until);
  if (index % 3 == 0) good = good && finalize(comm).ok();
  good = destroy(&comm).ok() && good;
  ++board.turn;
  while (board.turn < (index + 1) * kRanks) std::this_thread::yield();
  return good;
}

TEST(RankFaults, OrdinaryDestroysAreNeverReportedAndSayNothing) {
  constexpr int kRanks = 3, kCycles = 100;
  const int output = memfd_create("output", 0);
  ASSERT_GE(output, 0);
  Trial trial;
  trial.start(kRanks, [&](Communicator& first, int rank) {
    unsetenv("NCCL_DEBUG");
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    Communicator* comm = &first;
    for (int index = 0; index < kCycles; ++index) {
      if (comm == nullptr || !cycle(trial, *comm, rank, index)) return false;
      if (index + 1 < kCycles) comm = trial.meet(rank, kRanks, index + 2);
    }
    return true;
  });
  EXPECT_EQ(trial.wait(), std::vector<int>(kRanks, 0));
  EXPECT_EQ(lseek(output, 0, SEEK_END), 0) << "bytes were written";
  close(output);
}

}  // namespace
}  // namespace talaria
