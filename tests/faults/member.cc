// What a rank of a trial does.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "faults/clock.h"
#include "faults/trial.h"

namespace talaria::test {
namespace {

constexpr unsigned kHangSeconds = 25;  // a process that hangs is ended by SIGALRM and so reported
constexpr size_t kMostBytes = 4u << 20;

// Descriptors and threads of this process.
struct Belongings {
  std::set<std::string> all;
  Belongings() {
    namespace fs = std::filesystem;
    std::error_code gone;  // one that ends while we look
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      const std::string target = fs::read_symlink(entry.path(), gone).string();
      if (!gone && target.find("/proc/") != 0) all.insert(entry.path().filename().string() + " " + target);
    }
    for (const auto& entry : fs::directory_iterator("/proc/self/task")) {
      std::string name;
      std::getline(std::ifstream(entry.path() / "comm"), name);
      // Sanitizers have threads of their own.
      if (name.starts_with("talaria-")) all.insert("thread " + entry.path().filename().string() + " " + name);
    }
  }
  std::string beyond(const Belongings& before) const {
    std::string text;
    for (const std::string& one : all) text += before.all.contains(one) ? "" : "; " + one;
    return text;
  }
};

class Rank {
 public:
  Rank(const TrialPlan& plan, Board& board, int rank)
      : plan_(plan), board_(board), self_(board.members[rank]), rank_(rank), input_(kMostBytes), output_(kMostBytes) {}

  int live() {
    if (!init()) return report() && afterwards() ? 0 : 1;
    for (int index = 0;; ++index) {
      const bool splits = plan_.aim == Phase::kSplit;
      self_.phase = splits ? Phase::kSplit : Phase::kOperation;
      result_ = completed(splits ? split(index) : call(index));
      if (result_ != ncclSuccess) break;
      ++self_.calls;
    }
    return report() && afterwards() ? 0 : 1;
  }

 private:
  bool victim() const { return rank_ == plan_.victim; }
  bool aborts() const { return victim() && plan_.kind == Kind::kAbort; }

  bool init() {
    if (rank_ == 0 && plan_.rank0_makes_id) {
      if (ncclGetUniqueId(&board_.id) != ncclSuccess) return complain("no id");
      board_.have_id = true;
    }
    ++board_.present;
    while (!board_.start) std::this_thread::yield();
    self_.phase = Phase::kInit;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    const bool nonblocking = aborts() && plan_.aim == Phase::kInit;
    if (nonblocking) config.blocking = 0;
    result_ = ncclCommInitRankConfig(&comm_, plan_.nranks, board_.id, rank_, &config);
    if (aborts()) aborter_ = std::thread([this] { abort_when_told(); });
    result_ = completed(result_);
    return result_ == ncclSuccess;
  }

  // The result of a call that may go on in the background.
  ncclResult_t completed(ncclResult_t result) {
    while (result == ncclInProgress) {
      if (aborted_ || ncclCommGetAsyncError(comm_, &result) != ncclSuccess) return ncclInternalError;
    }
    return result;
  }

  void abort_when_told() {
    while (!board_.abort) std::this_thread::sleep_for(std::chrono::microseconds(20));
    board_.fault_usec = now_usec();
    aborted_ = true;
    const ncclResult_t result = ncclCommAbort(comm_);
    board_.abort_returned_usec = now_usec();
    if (result != ncclSuccess) complain("ncclCommAbort failed");
  }

  // One of the operations, the same on all ranks.
  ncclResult_t call(int index) {
    std::mt19937 random(plan_.seed * 1000003u + static_cast<uint32_t>(index));
    const bool group = random() % 5 == 0;
    if (!group) return operation(random);
    ncclGroupStart();
    for (uint32_t left = random() % 4 + 1; left > 0; --left) (void)operation(random);
    return ncclGroupEnd();
  }

  ncclResult_t operation(std::mt19937& random) {
    const double power = std::uniform_real_distribution<double>(3, 22)(random);
    const size_t bytes = std::min(static_cast<size_t>(std::exp2(power)), kMostBytes);
    const auto n = static_cast<size_t>(plan_.nranks);
    const size_t count = bytes / sizeof(float), share = std::max<size_t>(count / n, 1);
    const int root = static_cast<int>(random() % n);
    const float* in = input_.data();
    float* out = output_.data();
    switch (random() % 10) {
      case 0: return ncclAllReduce(in, out, count, ncclFloat, ncclSum, comm_, nullptr);
      case 1: return ncclBroadcast(in, out, count, ncclFloat, root, comm_, nullptr);
      case 2: return ncclReduce(in, out, count, ncclFloat, ncclMax, root, comm_, nullptr);
      case 3: return ncclAllGather(in, out, share, ncclFloat, comm_, nullptr);
      case 4: return ncclReduceScatter(in, out, share, ncclFloat, ncclSum, comm_, nullptr);
      case 5: return ncclAlltoAll(in, out, share, ncclFloat, comm_, nullptr);
      case 6: return ncclGather(in, out, share, ncclFloat, root, comm_, nullptr);
      case 7: return ncclScatter(in, out, share, ncclFloat, root, comm_, nullptr);
      case 8: return around(count);
      default: return alternate(count);
    }
  }

  // Everybody sends to the next rank.
  ncclResult_t around(size_t count) {
    const int n = plan_.nranks;
    ncclGroupStart();
    (void)ncclSend(input_.data(), count, ncclFloat, (rank_ + 1) % n, comm_, nullptr);
    (void)ncclRecv(output_.data(), count, ncclFloat, (rank_ + n - 1) % n, comm_, nullptr);
    return ncclGroupEnd();
  }

  // Pairs, without a group. With an odd number of ranks the last one looks on.
  ncclResult_t alternate(size_t count) {
    const int peer = rank_ ^ 1;
    if (peer >= plan_.nranks) return ncclSuccess;
    return rank_ % 2 == 0 ? ncclSend(input_.data(), count, ncclFloat, peer, comm_, nullptr)
                          : ncclRecv(output_.data(), count, ncclFloat, peer, comm_, nullptr);
  }

  // Two colors, or one; the child is used and goes.
  ncclResult_t split(int index) {
    std::mt19937 random(plan_.seed * 1000003u + static_cast<uint32_t>(index));
    const int colors = static_cast<int>(random() % 2) + 1, sign = random() % 2 == 0 ? 1 : -1;
    ncclComm_t child = nullptr;
    const ncclResult_t made = ncclCommSplit(comm_, rank_ % colors, sign * rank_, &child, nullptr);
    if (made != ncclSuccess || child == nullptr) return made == ncclSuccess ? ncclInternalError : made;
    ncclResult_t result = ncclAllReduce(input_.data(), output_.data(), 2, ncclFloat, ncclSum, child, nullptr);
    if (result != ncclSuccess) remember_of_child(colors, sign);
    const ncclResult_t ended = result == ncclSuccess ? ncclCommDestroy(child) : ncclCommAbort(child);
    return result == ncclSuccess ? ended : result;
  }

  // The text of the failure just met, before another call changes it.
  void remember() {
    if (self_.text[0] == '\0') strncpy(self_.text, ncclGetLastError(nullptr), sizeof(self_.text) - 1);
  }

  // Its numbers, as this trial knows them, in the words in which the library tells of children that were never made.
  void remember_of_child(int colors, int sign) {
    std::string origins;
    for (int i = 0; i < plan_.nranks; ++i) {
      const int rank = sign > 0 ? i : plan_.nranks - 1 - i;
      if (rank % colors == rank_ % colors) origins += (origins.empty() ? "" : ", ") + std::to_string(rank);
    }
    snprintf(self_.text, sizeof(self_.text), "%s (these are ranks of the new communicator, in the parent ranks %s)",
             ncclGetLastError(nullptr), origins.c_str());
  }

  bool report() {
    remember();
    self_.code = result_;
    self_.phase = Phase::kOver;
    self_.returned_usec = now_usec();
    return true;
  }

  // What must hold after the failure.
  bool afterwards() {
    if (aborter_.joinable()) aborter_.join();
    if (comm_ != nullptr && !aborted_) {
      if (!has_async_error()) return false;
      if (ncclAllReduce(input_.data(), output_.data(), 1, ncclFloat, ncclSum, comm_, nullptr) == ncclSuccess) {
        return complain("an operation after the fault succeeded");
      }
      if (plan_.abilities.shrink && !shrink()) return false;
      const bool abort = plan_.seed % 2 == 0;
      if ((abort ? ncclCommAbort(comm_) : ncclCommDestroy(comm_)) != ncclSuccess) return complain("no end");
    }
    return leaves_nothing();
  }

  // At once, or when the library is sure that nobody's last operation needs longer.
  bool has_async_error() {
    ncclResult_t state = ncclSuccess;
    for (const double until = now_usec() + 1e6; now_usec() < until && state == ncclSuccess;) {
      if (ncclCommGetAsyncError(comm_, &state) != ncclSuccess) return complain("ncclCommGetAsyncError");
    }
    return state != ncclSuccess || complain("no async error");
  }

  bool shrink() {
    int gone = plan_.victim;
    ncclComm_t child = nullptr;
    int sum = 0, one = 1;
    if (ncclCommShrink(comm_, &gone, 1, &child, nullptr, NCCL_SHRINK_ABORT) != ncclSuccess) return complain("shrink");
    if (ncclAllReduce(&one, &sum, 1, ncclInt, ncclSum, child, nullptr) != ncclSuccess) return complain("after shrink");
    if (sum != plan_.nranks - 1) return complain("wrong sum after shrink");
    return ncclCommDestroy(child) == ncclSuccess || complain("destroy after shrink");
  }

  // Connections of TCP may linger for a moment. A meeting point of ranks that never came stays for those to come.
  bool leaves_nothing() {
    if (plan_.rank0_makes_id && rank_ == 0 && comm_ == nullptr) return true;
    std::string left = "?";
    for (int i = 0; i < 400 && !left.empty(); ++i) {
      if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      left = Belongings().beyond(before_);
    }
    return left.empty() || complain(("left behind" + left).c_str());
  }

  bool complain(const char* what) {
    snprintf(self_.complaint, sizeof(self_.complaint), "%s: %s", what, ncclGetLastError(nullptr));
    return false;
  }

  const TrialPlan& plan_;
  Board& board_;
  Member& self_;
  const int rank_;
  const Belongings before_;
  std::vector<float> input_, output_;
  ncclComm_t comm_ = nullptr;
  ncclResult_t result_ = ncclSuccess;
  std::atomic<bool> aborted_{false};
  std::thread aborter_;
};

}  // namespace

int live(const TrialPlan& plan, Board& board, int rank) {
  alarm(kHangSeconds);
  setenv("TALARIA_DEVICE", "host", 1);
  if (plan.tcp) setenv("NCCL_SHM_DISABLE", "1", 1);
  // Who is killed before it greets anybody is known to nobody.
  if (plan.aim == Phase::kInit) setenv("TALARIA_INIT_TIMEOUT", "1", 1);
  return Rank(plan, board, rank).live();
}

}  // namespace talaria::test
