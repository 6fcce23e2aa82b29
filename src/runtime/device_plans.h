// DevicePlans: copies of plans in a device's memory, made at first use.
//
// Keyed by the host plan's steps, which live as long as the communicator and are never changed. Used by one thread at a
// time. A first use works inside a capture and while kernels spin: it allocates in relaxed capture mode and copies on a
// private stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "schedule/step.h"
#include "service/cuda_memory.h"

namespace talaria {

class DevicePlans {
 public:
  DevicePlans() = default;
  explicit DevicePlans(ContextPtr context) : context_(std::move(context)) {}
  // `view` with pointers into device memory. `upload` is a private stream of the same device.
  Result<PlanView> on_device(const PlanView& view, CUstream upload);
  uint64_t bytes() const { return bytes_; }

 private:
  struct Copy {
    CUdeviceptr steps, refs, peers;
  };
  Result<Copy> upload_copy(const PlanView& view, CUstream upload);
  Result<CUdeviceptr> reserve(size_t bytes, CUstream upload);

  ContextPtr context_;
  std::unordered_map<const Step*, Copy> copies_;
  std::vector<DeviceBlock> arenas_;
  size_t arena_bytes_ = 0;  // of the last arena
  size_t used_ = 0;         // of the last arena
  uint64_t bytes_ = 0;      // of all arenas
};

}  // namespace talaria
