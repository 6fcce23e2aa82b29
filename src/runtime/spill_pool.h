// SpillPool: pinned host memory for the works of launches that do not fit into kernel parameters.
//
// A slot is used again once the launch that read it has ended; a slot of a captured launch is read by every replay, so
// it is kept until the pool ends. Used by one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/status.h"
#include "engine/work.h"
#include "service/cuda_memory.h"

namespace talaria {

class SpillPool {
 public:
  struct Slot {
    PinnedBlock block;
    CudaEvent read;          // recorded behind the launch that reads the slot
    uint32_t works = 0;      // capacity
    bool captured = false;
    Work* host() const { return reinterpret_cast<Work*>(block.host()); }
    const Work* device() const { return reinterpret_cast<const Work*>(block.device()); }
  };

  SpillPool() = default;
  explicit SpillPool(ContextPtr context) : context_(std::move(context)) {}
  // A slot for `works` works that nobody reads. Valid until the next call.
  Result<Slot*> acquire(uint32_t works);
  // After the launch that reads `slot` was enqueued on `stream`.
  Status launched(Slot& slot, CUstream stream, bool capturing);

 private:
  ContextPtr context_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace talaria
