// World: what the threads of all processes of a run share: a barrier, sums and the unique id.
//
// Made before the processes are forked, in memory that they all map. Every call but the accessors is collective over
// all threads of all processes; `thread` is the caller's number among them.
#pragma once

#include <nccl.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "options.h"

namespace talaria::bench {

class World {
 public:
  World(int processes, int threads_per_process, int ranks_per_thread);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int threads() const { return threads_; }
  void barrier();
  double combine(double mine, Average average, int thread);
  uint64_t sum(uint64_t mine, int thread);
  ncclUniqueId share(const ncclUniqueId& mine, int thread);  // thread 0's
  // One line of text per rank, for the header. Not collective: a barrier lies between set and get.
  void set_label(int rank, const std::string& text);
  std::string label(int rank) const;

 private:
  void wait_for_all();
  static constexpr size_t kLabelBytes = 128;
  struct Shared {
    std::atomic<uint32_t> arrived;
    std::atomic<uint32_t> generation;  // a futex word
    std::atomic<uint32_t> sleepers;
    ncclUniqueId id;
  };
  union Slot {
    double number;
    uint64_t count;
    char padding[64];
  };

  int threads_;
  size_t bytes_;
  Shared* shared_;
  Slot* slots_;   // one per thread
  char* labels_;  // kLabelBytes per rank
};

// Runs body(0..processes-1), each in a process of its own (in this one if it is the only one), and returns the exit
// code of the whole: the first that is not 0. When one process fails the others, which may wait for it, are ended.
int run_processes(int processes, const std::function<int(int)>& body);

}  // namespace talaria::bench
