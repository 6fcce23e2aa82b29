// DeviceKernels: every kernel of the library, loaded on one device.
//
// Images are loaded once per process and kernels once per device, all of them at init, because loading a kernel later
// can wait for one that is running. Both live while somebody holds them. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "service/cuda_context.h"
#include "service/cuda_memory.h"

namespace talaria {

struct KernelName {
  const char* name;
  uint32_t image;  // index into KernelSource::images
};

// What there is to load; the same in every call of a process.
struct KernelSource {
  std::span<const std::span<const std::byte>> images;
  std::span<const KernelName> kernels;
};

class LoadedImages;

class DeviceKernels {
 public:
  static Result<std::shared_ptr<const DeviceKernels>> load(const KernelSource& source, ContextPtr context);
  DeviceKernels(std::shared_ptr<LoadedImages> images, ContextPtr context, std::vector<CUfunction> functions);
  ~DeviceKernels();
  // The kernel at this position of KernelSource::kernels.
  CUfunction function(int index) const { return functions_[static_cast<size_t>(index)]; }

 private:
  std::shared_ptr<LoadedImages> images_;
  ContextPtr context_;
  std::vector<CUfunction> functions_;
};

}  // namespace talaria
