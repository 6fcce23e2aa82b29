// World: the ranks of one communicator as threads of this process, dealt to the GPUs there are.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "gpu/device.h"
#include "nccl.h"

namespace talaria::gpu_test {


struct Rank {
  uint32_t rank;
  uint32_t nranks;
  ncclComm_t comm;
  int device;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Buffer> send = nullptr, receive = nullptr;  // World::reserve()

  // Waits (bounded) for this rank's stream. False, with a test failure, if the work does not end.
  bool finish() const;
};

class World {
 public:
  // Ranks r on device r mod GPUs. Fails the test and returns null if a rank cannot be set up.
  static std::unique_ptr<World> create(uint32_t nranks);
  // The same, kept for later tests of this process, because set-up is slow.
  static World* shared(uint32_t nranks);
  static void drop_shared();
  ~World();

  // `body` for every rank, each in a thread of its own with its device current.
  void run(const std::function<void(Rank&)>& body);
  // `body` for every rank in this thread, inside one group; nothing is waited for.
  void run_in_group(const std::function<void(Rank&)>& body);
  // Gives every rank buffers of at least this size. Between runs only: it may free memory.
  void reserve(size_t bytes);
  std::vector<Rank>& ranks() { return ranks_; }
  bool broken() const { return broken_; }
  // Ends the communicators by abort: something hangs.
  void break_up();

 private:
  // As the CUDA runtime does for its clients: streams and buffers outlive the communicators.
  std::vector<std::shared_ptr<PrimaryContext>> contexts_;
  std::vector<Rank> ranks_;
  std::atomic<bool> broken_{false};
};

// Fails the test unless `result` is ncclSuccess; adds the library's text.
bool succeeded(ncclResult_t result, const char* what);

// Base of fixtures: skips where no GPU is visible.
template <typename Base>
class NeedsGpu : public Base {
 protected:
  void SetUp() override {
    if (gpu_count() < 1) GTEST_SKIP() << "needs a GPU";
  }
};

}  // namespace talaria::gpu_test
