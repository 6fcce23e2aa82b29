// DeviceState: everything a GPU rank owns on its machine. Outlives its engine until the LaunchGate may destroy it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/device/batch.h"
#include "runtime/device_plans.h"
#include "runtime/spill_pool.h"
#include "runtime/stream_order.h"
#include "service/cuda_memory.h"
#include "service/kernel_cache.h"
#include "service/launch_gate.h"
#include "service/shared_gpu.h"
#include "transport/p2p.h"

namespace talaria {

// Pinned words between the host and this rank's kernels.
struct ControlWords {
  uint32_t abort;
  uint32_t padding[31];  // the record gets a cache line of its own
  FaultRecord fault;
};

struct DeviceState final : GateMember {
  uint32_t rank = 0;
  ContextPtr context;
  std::shared_ptr<const DeviceKernels> kernels;
  CudaStream upload;              // private: plan copies and set-up
  DeviceBlock memory;             // mailbox, then counters, peer table, DeviceComm
  PinnedBlock control;            // ControlWords
  CUdeviceptr comm = 0;           // DeviceComm inside `memory`
  std::vector<PeerMapping> peers;
  StreamOrder order;
  DevicePlans plans;
  SpillPool spill;
  bool fused = true;              // works may take fused kernel paths
  std::shared_ptr<SharedGpu> shared;  // null when no other rank of the communicator in this process is on this GPU

  ControlWords& words() const { return *reinterpret_cast<ControlWords*>(control.host()); }
  // A graph may be replayed at any time without passing the gate.
  bool idle() const override { return order.reached() && !order.ever_captured(); }
  bool finished() const override { return order.reached(); }
};

}  // namespace talaria
