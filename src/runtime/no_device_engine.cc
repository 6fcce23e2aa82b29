// The device side of runtime/engine.h in builds without CUDA.
#include "runtime/engine.h"

namespace talaria {

int visible_devices(const Config&) { return 0; }

Result<int> current_device() { return fail(Code::kInvalidUsage, "this build has no GPU support"); }

Result<void*> allocate_device_memory(size_t) { return fail(Code::kInvalidUsage, "this build has no GPU support"); }

Status free_device_memory(void*) { return fail(Code::kInvalidUsage, "this build has no GPU support"); }

Result<std::unique_ptr<Engine>> make_device_engine(const Config&, int) {
  return fail(Code::kInvalidUsage, "this build has no GPU support");
}

}  // namespace talaria
