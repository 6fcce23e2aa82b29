#include "world.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <new>
#include <thread>
#include <vector>

#include "fatal.h"

namespace talaria::bench {
namespace {

// Between processes, so not the private kind that std::atomic::wait uses.
long futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, nullptr, nullptr, 0);
}

}  // namespace

World::World(int processes, int threads_per_process, int ranks_per_thread) : threads_(processes * threads_per_process) {
  const size_t slots = sizeof(Slot) * static_cast<size_t>(threads_);
  const size_t labels = kLabelBytes * static_cast<size_t>(threads_ * ranks_per_thread);
  const size_t head = (sizeof(Shared) + alignof(Slot) - 1) / alignof(Slot) * alignof(Slot);
  bytes_ = head + slots + labels;
  void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fatal("no shared memory for {} threads: {}", threads_, std::strerror(errno));
  shared_ = new (memory) Shared{};
  slots_ = reinterpret_cast<Slot*>(static_cast<char*>(memory) + head);
  labels_ = static_cast<char*>(memory) + head + slots;
}

World::~World() { munmap(shared_, bytes_); }

void World::barrier() {
  wait_for_all();
  // Orders the threads of one process also where the last to come was another process, whose stores
  // ThreadSanitizer does not see.
  shared_->arrived.load(std::memory_order_acquire);
}

// Spins first, so that ranks which own a core start together; sleeps when it takes long, because they may not own one.
void World::wait_for_all() {
  const uint32_t generation = shared_->generation.load(std::memory_order_acquire);
  if (shared_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(threads_)) {
    shared_->arrived.fetch_sub(static_cast<uint32_t>(threads_), std::memory_order_acq_rel);
    shared_->generation.fetch_add(1);
    if (shared_->sleepers.load() > 0) futex(shared_->generation, FUTEX_WAKE, INT32_MAX);
    return;
  }
  const bool crowded = static_cast<unsigned>(threads_) > std::thread::hardware_concurrency();
  for (int spin = crowded ? 1 << 14 : 0; spin < 1 << 14; ++spin) {
    if (shared_->generation.load(std::memory_order_acquire) != generation) return;
  }
  shared_->sleepers.fetch_add(1);
  while (shared_->generation.load() == generation) futex(shared_->generation, FUTEX_WAIT, generation);
  shared_->sleepers.fetch_sub(1);
}

double World::combine(double mine, Average average, int thread) {
  slots_[thread].number = mine;
  barrier();
  double total = 0;
  double least = mine;
  double most = mine;
  for (int i = 0; i < threads_; ++i) {
    total += slots_[i].number;
    least = std::min(least, slots_[i].number);
    most = std::max(most, slots_[i].number);
  }
  const double rank0 = slots_[0].number;
  barrier();
  switch (average) {
    case Average::kRank0: return rank0;
    case Average::kMin: return least;
    case Average::kMax: return most;
    default: return total / threads_;
  }
}

uint64_t World::sum(uint64_t mine, int thread) {
  slots_[thread].count = mine;
  barrier();
  uint64_t total = 0;
  for (int i = 0; i < threads_; ++i) total += slots_[i].count;
  barrier();
  return total;
}

ncclUniqueId World::share(const ncclUniqueId& mine, int thread) {
  if (thread == 0) shared_->id = mine;
  barrier();
  return shared_->id;
}

void World::set_label(int rank, const std::string& text) {
  char* const to = labels_ + kLabelBytes * static_cast<size_t>(rank);
  std::memcpy(to, text.c_str(), std::min(text.size() + 1, kLabelBytes));
  to[kLabelBytes - 1] = '\0';
}

std::string World::label(int rank) const { return labels_ + kLabelBytes * static_cast<size_t>(rank); }

int run_processes(int processes, const std::function<int(int)>& body) {
  if (processes == 1) return body(0);
  std::fflush(stdout);
  const pid_t parent = getpid();
  std::vector<pid_t> children;
  for (int process = 0; process < processes; ++process) {
    const pid_t child = fork();
    if (child < 0) {
      for (const pid_t other : children) kill(other, SIGKILL);
      fatal("fork failed: {}", std::strerror(errno));
    }
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(kExitWrong);
      const int code = body(process);
      std::fflush(stdout);
      _exit(code);
    }
    children.push_back(child);
  }
  int exit_code = 0;
  for (size_t left = children.size(); left > 0;) {
    int state = 0;
    const pid_t ended = wait(&state);
    const auto child = std::find(children.begin(), children.end(), ended);
    if (child == children.end()) continue;
    --left;
    *child = 0;
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0) continue;
    if (exit_code != 0) continue;  // ended by us
    exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : kExitWrong;
    if (WIFSIGNALED(state)) {
      fmt::print(stderr, "# Error: process {} (pid {}) was ended by signal {}\n", child - children.begin(), ended,
                 WTERMSIG(state));
    }
    for (const pid_t other : children) {
      if (other > 0) kill(other, SIGKILL);
    }
  }
  return exit_code;
}

}  // namespace talaria::bench
