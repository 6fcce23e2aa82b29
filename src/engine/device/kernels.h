// Kernels: the table of device kernels, their embedded images and launch shapes. Host side of engine/device.
//
// A kernel exists per (type, reduction, packet | bulk); moving without reducing uses one type-free Copy kernel per
// packet | bulk. Every kernel takes one parameter, `Batch` by value, and runs with
//   grid.x  = sum of lanes of the batch's entries,
//   block.x = batch.streams * threads_per_stream(key, batch.streams, piece_bytes), no dynamic shared memory.
// Everything here is constant after static initialisation and may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.h"
#include "engine/work.h"
#include "schedule/collective.h"

namespace talaria {

// reduce == ReduceOp::kNone names a Copy kernel; its type does not matter (the kernel reads it from Work.type).
struct KernelKey {
  DataType type;
  ReduceOp reduce;
  Channel channel;
};

struct KernelInfo {
  KernelKey key;     // canonical: Copy kernels have type kInt8, bulk kernels have channel kCollectiveBulk
  const char* name;  // symbol in the image, ncclDevKernel_<Reduce|Copy>_<reduction>_<type>_<packet|bulk>
  uint32_t image;    // index into device_images()
};

// Fatbins for cuLibraryLoadData. All of them together hold every kernel of kernel_table() once.
std::span<const std::span<const std::byte>> device_images();

// Every kernel. Load them all at init: lazy loading can wait for a kernel that is running.
std::span<const KernelInfo> kernel_table();

// Position in kernel_table() of the kernel that runs `key`; -1 when this build has none (type or reduction).
int find_kernel(const KernelKey& key);
// nullptr when there is none.
const char* kernel_name(const KernelKey& key);
inline KernelKey key_of(const Work& work) {
  return KernelKey{static_cast<DataType>(work.type), static_cast<ReduceOp>(work.reduce),
                   static_cast<Channel>(work.channel)};
}

inline constexpr uint32_t kMaxThreadsPerBlock = 512;

// Threads of one warp group (step stream): a multiple of 32, streams * result <= kMaxThreadsPerBlock. `piece_bytes` is
// the largest piece of the batch's works (Chunking::piece * element size): short pieces start faster with fewer
// threads. Ranks need not agree on it.
uint32_t threads_per_stream(const KernelKey& key, uint32_t streams, uint64_t piece_bytes = UINT64_MAX);

}  // namespace talaria
