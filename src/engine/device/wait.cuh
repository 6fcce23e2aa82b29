// Wait: spinning on words that peers write, until the data is there or the communicator is aborted.
#pragma once

#include <cstdint>

#include "engine/device/batch.h"
#include "engine/device/ptx.cuh"

namespace talaria::device {

// Where a wait stands, for the fault record it may end in.
struct WaitSite {
  uint32_t lane;
  uint32_t step;
  uint64_t sequence;
};

// First writer wins; the claim is an atomic of this GPU only, which is all that can race here.
__device__ inline void record_fault(FaultRecord* fault, const WaitSite& site, FaultReason reason, uint32_t peer,
                                    Place place) {
  if (fault == nullptr || atomicCAS(&fault->valid, 0u, kFaultClaimed) != 0) return;
  fault->reason = static_cast<uint32_t>(reason);
  fault->peer = peer;
  fault->place = static_cast<uint32_t>(place);
  fault->lane = site.lane;
  fault->step = site.step;
  fault->sequence = site.sequence;
  __threadfence_system();  // pairs with the host, which reads the record only when valid == kFaultWritten
  *const_cast<volatile uint32_t*>(&fault->valid) = kFaultWritten;
}

// Counts the turns of a spin loop. The abort word is host memory across PCIe: looked at once in thousands of turns.
class Patience {
 public:
  __device__ __forceinline__ bool ends(const uint32_t* abort_word) {
    if ((++turns_ & 0xfff) != 0) return false;
    return ptx::load_relaxed(abort_word) != 0;
  }

 private:
  uint32_t turns_ = 0;
};

// Waits until *word >= value, and acquires what was released with it. False: aborted.
__device__ __forceinline__ bool wait_at_least(const uint32_t* abort_word, const uint64_t* word, uint64_t value) {
  Patience patience;
  while (ptx::load_acquire(word) < value) {
    if (patience.ends(abort_word)) return false;
  }
  return true;
}

}  // namespace talaria::device
