// Ranks that share no memory: on hosts, in network namespaces, with /dev/shm too small or not shared. Each a process.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/os.h"
#include "host_ranks.h"
#include "support/shared.h"

namespace talaria {
namespace {

constexpr unsigned kHangSeconds = 60;  // a child that hangs is ended by SIGALRM and so reported

// What the processes of one test share.
struct Board {
  std::atomic<bool> ready{false};
  UniqueId id;
  std::atomic<int> pids[8]{}, steps[8]{};
  char texts[8][1024]{};
};

class Hosts : public testing::Test {
 protected:
  // prepare(rank) in each process, then the communicator is made, then body(comm, rank). The exit values.
  using Prepare = std::function<void(int)>;
  std::vector<int> run(int nranks, const Prepare& prepare, const test::Body& body) {
    return test::run_processes(nranks, [&](int rank) {
      alarm(kHangSeconds);
      setenv("TALARIA_DEVICE", "host", 1);
      prepare(rank);
      if (rank == 0) {
        board_->id = test::make_id();
        board_->ready = true;
      }
      while (!board_->ready) std::this_thread::yield();
      const bool good = test::run_member(board_->id, nranks, rank, body);
      std::strncpy(board_->texts[rank], last_error_text(), sizeof(board_->texts[rank]) - 1);
      return good ? 0 : 1;
    });
  }
  std::string text(int rank) const { return board_->texts[rank]; }

  test::Shared<Board> board_;
};

// All-reduce, and a group in which everybody sends to everybody, of sizes around and beyond the inbox.
bool exchange_everything(Communicator& comm, int rank) {
  const int n = count_of(comm);
  for (const uint64_t count : {1ul, 1000ul, 300000ul}) {
    std::vector<int32_t> in(count, rank + 1), out(count, -1);
    const Collective reduce{Operation::kAllReduce, DataType::kInt32, ReduceOp::kSum, 0, count};
    if (!submit(comm, reduce, in.data(), out.data(), nullptr).ok()) return false;
    if (std::ranges::count(out, n * (n + 1) / 2) != static_cast<int64_t>(count)) return false;

    const auto peers = static_cast<uint64_t>(n);
    std::vector<int32_t> sent(count * peers), got(count * peers, -1);
    for (uint64_t i = 0; i < sent.size(); ++i) sent[i] = rank * 1000 + static_cast<int32_t>(i / count);
    if (!group_start().ok()) return false;
    for (int p = 0; p < n; ++p) {
      const Collective send{Operation::kSend, DataType::kInt32, ReduceOp::kSum, p, count};
      const Collective receive{Operation::kRecv, DataType::kInt32, ReduceOp::kSum, p, count};
      if (!submit(comm, send, &sent[static_cast<uint64_t>(p) * count], nullptr, nullptr).ok()) return false;
      if (!submit(comm, receive, nullptr, &got[static_cast<uint64_t>(p) * count], nullptr).ok()) return false;
    }
    if (!group_end().ok()) return false;
    for (uint64_t i = 0; i < got.size(); ++i) {
      if (got[i] != static_cast<int32_t>(i / count) * 1000 + rank) return false;
    }
  }
  return true;
}

TEST_F(Hosts, RanksWithDifferentHostIdsExchangeEverything) {
  const auto exits = run(3, [](int rank) { setenv("NCCL_HOSTID", std::to_string(rank).c_str(), 1); },
                         exchange_everything);
  EXPECT_EQ(exits, std::vector<int>(3, 0)) << text(0);
}

TEST_F(Hosts, MemoryWithinAHostAndSocketsBetweenHostsMix) {
  const auto exits = run(5, [](int rank) { setenv("NCCL_HOSTID", rank < 3 ? "a" : "b", 1); }, exchange_everything);
  EXPECT_EQ(exits, std::vector<int>(5, 0)) << text(0);
}

TEST_F(Hosts, OneSideIsEnoughToDisableSharedMemory) {
  const auto exits = run(3, [](int rank) { setenv("NCCL_SHM_DISABLE", rank == 1 ? "1" : "0", 1); },
                         exchange_everything);
  EXPECT_EQ(exits, std::vector<int>(3, 0)) << text(0);
}

TEST_F(Hosts, SidesThatAskForDifferentNumbersOfSocketsAgree) {
  const auto exits = run(3,
                         [](int rank) {
                           setenv("NCCL_SHM_DISABLE", "1", 1);
                           setenv("NCCL_SOCKET_NTHREADS", std::to_string(1 + rank).c_str(), 1);
                           setenv("NCCL_NSOCKS_PERTHREAD", std::to_string(3 - rank).c_str(), 1);
                         },
                         exchange_everything);
  EXPECT_EQ(exits, std::vector<int>(3, 0)) << text(0);
}

size_t entries_of(const char* folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST_F(Hosts, NothingIsLeftBehindBySockets) {
  const auto exits = test::run_processes(2, [&](int rank) {
    alarm(kHangSeconds);
    for (const char* variable : {"NCCL_SHM_DISABLE", "NCCL_SOCKET_NTHREADS"}) setenv(variable, "2", 1);
    setenv("TALARIA_DEVICE", "host", 1);
    size_t threads = 0, descriptors = 0;
    for (int round = 1; round <= 30; ++round) {
      if (rank == 0) {
        board_->id = test::make_id();
        board_->steps[0] = round;
      }
      while (board_->steps[0] < round) std::this_thread::yield();
      if (!test::run_member(board_->id, 2, rank, exchange_everything)) return 1;
      board_->steps[1 + rank] = round;
      while (board_->steps[1] < round || board_->steps[2] < round) std::this_thread::yield();
      if (round == 3) threads = entries_of("/proc/self/task"), descriptors = entries_of("/proc/self/fd");
    }
    // The root's thread of the last id may still be on its way out.
    const double until = now_usec() + 5e6;
    while (now_usec() < until) {
      if (entries_of("/proc/self/task") <= threads && entries_of("/proc/self/fd") <= descriptors) return 0;
      std::this_thread::yield();
    }
    return 2;
  });
  EXPECT_EQ(exits, std::vector<int>(2, 0));
}

TEST_F(Hosts, TooFewDescriptorsAreAClearErrorForAll) {
  const auto exits = run(3,
                         [](int rank) {
                           setenv("NCCL_SHM_DISABLE", "1", 1);
                           setenv("NCCL_NSOCKS_PERTHREAD", "64", 1);
                           const rlimit few{100, 100};
                           if (rank == 1) setrlimit(RLIMIT_NOFILE, &few);
                         },
                         exchange_everything);
  EXPECT_EQ(exits, std::vector<int>(3, 1));
  EXPECT_NE(text(1).find("no file descriptors for the 128 connections"), std::string::npos) << text(1);
  for (const int other : {0, 2}) {
    EXPECT_NE(text(other).find("rank 1 could not connect"), std::string::npos) << text(other);
  }
}

// --- what needs the rights to make namespaces; without them there is nothing to test

bool may_unshare(int what) {
  return test::wait_for_exit(test::fork_rank([&] { return unshare(what) == 0 ? 0 : 1; })) == 0;
}

// A /dev/shm that only this process sees.
bool own_dev_shm(const char* options) {
  return unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", "/dev/shm", "tmpfs", 0, options) == 0;
}

TEST_F(Hosts, SeparateDevShmFoldersAreNotMistakenForOne) {
  if (!may_unshare(CLONE_NEWNS)) GTEST_SKIP() << "mount namespaces are not permitted here";
  const auto exits = run(3, [](int rank) {
    if (rank > 0 && !own_dev_shm("size=64m")) _exit(99);
  }, exchange_everything);
  EXPECT_EQ(exits, std::vector<int>(3, 0)) << text(0);
}

TEST_F(Hosts, ADevShmThatIsTooSmallCostsSpeedAndSaysSo) {
  if (!may_unshare(CLONE_NEWNS)) GTEST_SKIP() << "mount namespaces are not permitted here";
  const std::string log = testing::TempDir() + "small_shm." + std::to_string(getpid());
  const auto exits = run(2, [&](int rank) {
    if (!own_dev_shm("size=64k")) _exit(99);
    setenv("NCCL_DEBUG", "WARN", 1);
    setenv("NCCL_DEBUG_FILE", (log + std::to_string(rank)).c_str(), 1);
  }, exchange_everything);
  EXPECT_EQ(exits, std::vector<int>(2, 0)) << text(0);
  for (const char* rank : {"0", "1"}) {
    const int fd = open((log + rank).c_str(), O_RDONLY);
    std::string written(4096, '\0');
    written.resize(static_cast<size_t>(std::max<ssize_t>(read(fd, written.data(), written.size()), 0)));
    close(fd);
    std::filesystem::remove(log + rank);
    for (const char* part : {"/dev/shm/talaria.", " bytes are free", "--shm-size", "NCCL_SHM_DISABLE=1"}) {
      EXPECT_NE(written.find(part), std::string::npos) << written;
    }
  }
}

// Two processes in network namespaces of their own, joined by a pair of virtual interfaces.
class NetworkNamespaces : public Hosts {
 protected:
  void SetUp() override {
    const bool permitted = may_unshare(CLONE_NEWNET) && test::wait_for_exit(test::fork_rank([] {
      return unshare(CLONE_NEWNET) == 0 && quiet("ip link add t0 type veth peer name t1") ? 0 : 1;
    })) == 0;
    if (!permitted) GTEST_SKIP() << "network namespaces with virtual interfaces are not permitted here";
  }
  static bool quiet(const std::string& command) {
    return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
  }
  void join_network(int rank) {
    if (unshare(CLONE_NEWNET) != 0 || !quiet("ip link set lo up")) _exit(99);
    board_->pids[rank] = getpid();
    while (board_->pids[1 - rank] == 0) std::this_thread::yield();
    if (rank == 0) {
      const std::string other = std::to_string(board_->pids[1]);
      if (!quiet("ip link add t0 type veth peer name t1 netns " + other)) _exit(99);
      board_->steps[0] = 1;
    }
    while (board_->steps[0] == 0) std::this_thread::yield();
    const std::string name = "t" + std::to_string(rank), address = "10.87.0." + std::to_string(1 + rank);
    if (!quiet("ip addr add " + address + "/24 dev " + name) || !quiet("ip link set " + name + " up")) _exit(99);
    while (!is_running(name)) std::this_thread::yield();
    board_->steps[1 + rank] = 1;
    while (board_->steps[2 - rank] == 0) std::this_thread::yield();
  }
  // The system notices a little later that both ends are up.
  static bool is_running(const std::string& name) {
    const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq request{};
    name.copy(request.ifr_name, sizeof(request.ifr_name) - 1);
    const bool known = ioctl(any, SIOCGIFFLAGS, &request) == 0;
    close(any);
    return known && (request.ifr_flags & IFF_RUNNING) != 0;
  }
};

TEST_F(NetworkNamespaces, ExchangeEverything) {
  const auto exits = run(2, [&](int rank) {
    join_network(rank);
    setenv("NCCL_HOSTID", std::to_string(rank).c_str(), 1);
  }, exchange_everything);
  EXPECT_EQ(exits, std::vector<int>(2, 0)) << text(0) << text(1);
}

TEST_F(NetworkNamespaces, AHostThatIsCutOffIsNamed) {
  const auto exits = run(2, [&](int rank) {
    join_network(rank);
    setenv("NCCL_HOSTID", std::to_string(rank).c_str(), 1);
    setenv("TALARIA_LINK_TIMEOUT", "1", 1);
  }, [&](Communicator& comm, int rank) {
    if (!exchange_everything(comm, rank)) return true;  // then the text is another one
    if (rank == 1 && !quiet("ip link set t1 down")) return true;
    return exchange_everything(comm, rank);
  });
  EXPECT_EQ(exits, std::vector<int>(2, 1));
  for (const int rank : {0, 1}) {
    const std::string peer = std::to_string(1 - rank);
    for (const std::string& part : {"waiting for rank " + peer, "rank " + peer + " died"}) {
      EXPECT_NE(text(rank).find(part), std::string::npos) << text(rank);
    }
  }
}

}  // namespace
}  // namespace talaria
