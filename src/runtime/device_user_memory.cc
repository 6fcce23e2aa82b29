// Device memory for users, in the primary context of the caller's current device.
#include <map>
#include <mutex>

#include "runtime/engine.h"
#include "service/cuda_context.h"
#include "service/cuda_driver.h"
#include "service/cuda_memory.h"

namespace talaria {
namespace {

// Memory lives in its context, so a device whose memory was ever given out stays retained until the process ends.
void keep_retained(const ContextPtr& context) {
  static std::mutex mutex;
  static auto* kept = new std::map<int, ContextPtr>;
  std::lock_guard lock(mutex);
  kept->try_emplace(context->ordinal(), context);
}

// Runs `call` with the current device's primary context.
template <typename Call>
Status in_current_context(Call call) {
  const ContextPtr context = TRY(PrimaryContext::retain(TRY(current_device())));
  keep_retained(context);
  ContextGuard guard(*context);
  TRY(guard.status());
  RelaxedCapture relaxed(context->driver());
  return call(context->driver());
}

}  // namespace

Result<void*> allocate_device_memory(size_t bytes) {
  CUdeviceptr memory = 0;
  TRY(in_current_context([&](const CudaDriver& driver) { return driver.mem_alloc(&memory, bytes); }));
  return reinterpret_cast<void*>(memory);
}

Status free_device_memory(void* memory) {
  return in_current_context(
      [&](const CudaDriver& driver) { return driver.mem_free(reinterpret_cast<CUdeviceptr>(memory)); });
}

}  // namespace talaria
