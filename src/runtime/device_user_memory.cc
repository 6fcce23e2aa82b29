// Device memory for users, in the primary context of the caller's current device.
#include "runtime/engine.h"
#include "service/cuda_context.h"
#include "service/cuda_driver.h"

namespace talaria {
namespace {

// Runs `call` with the current device's primary context. The context stays retained: the memory lives in it.
template <typename Call>
Status in_current_context(Call call) {
  const auto context = TRY(PrimaryContext::retain(TRY(current_device())));
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
