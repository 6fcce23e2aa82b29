// ncclMemAlloc and ncclMemFree: memory that every operation takes as a buffer.
#include <cstdlib>

#include "base/config.h"
#include "runtime/engine.h"
#include "runtime/runtime.h"

namespace talaria {
namespace {

constexpr size_t kPage = 4096;

}  // namespace

Result<void*> allocate_memory(size_t bytes) {
  if (bytes == 0) return nullptr;
  if (visible_devices(read_config()) > 0) return allocate_device_memory(bytes);
  void* memory = nullptr;
  if (posix_memalign(&memory, kPage, bytes) != 0)
    return fail(Code::kSystem, "no room for {} bytes of host memory", bytes);
  return memory;
}

Status free_memory(void* memory) {
  if (memory == nullptr) return Status();
  if (visible_devices(read_config()) > 0) return free_device_memory(memory);
  std::free(memory);
  return Status();
}

}  // namespace talaria
