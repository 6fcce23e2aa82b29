#include "service/nvml.h"

#include <dlfcn.h>

namespace talaria {
namespace {

// As in NVML's documented interface: 0 is success, a device is opaque.
using Device = void*;
using Init = int (*)();
using ByBusId = int (*)(const char*, Device*);
using IndexOf = int (*)(Device, unsigned*);

template <typename Function>
Function find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

int nvml_index_of(const std::string& bus_id) {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);  // kept open for good, as libcuda is
  if (library == nullptr) return -1;
  const auto init = find<Init>(library, "nvmlInit_v2"), shutdown = find<Init>(library, "nvmlShutdown");
  const auto by_bus_id = find<ByBusId>(library, "nvmlDeviceGetHandleByPciBusId_v2");
  const auto index_of = find<IndexOf>(library, "nvmlDeviceGetIndex");
  if (init == nullptr || shutdown == nullptr || by_bus_id == nullptr || index_of == nullptr || init() != 0) return -1;
  Device device = nullptr;
  unsigned index = 0;
  const bool known = by_bus_id(bus_id.c_str(), &device) == 0 && index_of(device, &index) == 0;
  shutdown();
  return known ? static_cast<int>(index) : -1;
}

}  // namespace talaria
