// SharedGpu: catches ranks of one communicator that wait for each other on one stream.
//
// Two ranks of a process on one GPU may share a stream only if their collective is enqueued as one launch (one group).
// Enqueued one behind the other, the first would wait for the second for ever. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/status.h"

namespace talaria {

class SharedGpu {
 public:
  // The ranks of `communicator` in this process on `device`; all callers with equal arguments get the same object.
  static std::shared_ptr<SharedGpu> of(uint64_t communicator, int device);

  // `ranks` are about to enqueue `collectives` further collectives each, together, on `stream`. kInvalidUsage naming
  // both ranks if another one has enqueued the first of them on this stream before.
  Status enqueue(std::span<const uint32_t> ranks, uint64_t stream, uint64_t collectives);

 private:
  struct Member {
    uint32_t rank;
    uint64_t collectives;
    uint64_t stream;  // of the last collective
  };
  Member& member(uint32_t rank);

  std::mutex mutex_;
  std::vector<Member> members_;
};

}  // namespace talaria
