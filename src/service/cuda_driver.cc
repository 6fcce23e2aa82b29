#include "service/cuda_driver.h"

#include <dlfcn.h>

#include <string>
#include <utility>

namespace talaria {
namespace {

constexpr int kOldestDriver = 12000;  // cuLibraryLoadData, cuStreamGetId

struct LoadedDriver {
  const CudaDriver* driver = nullptr;
  std::string problem;  // why there is none
};

std::string initialise(const CudaDriver& driver) {
  int version = 0;
  if (driver.driver_get_version.raw(&version) == CUDA_SUCCESS && version < kOldestDriver) {
    return fmt::format("the CUDA driver is too old: it supports CUDA {}.{}, CUDA {}.{} or newer is needed",
                       version / 1000, version % 1000 / 10, kOldestDriver / 1000, kOldestDriver % 1000 / 10);
  }
  if (const CUresult result = driver.init.raw(0); result != CUDA_SUCCESS) {
    const char* name = nullptr;
    driver.get_error_name.raw(result, &name);
    return fmt::format("cuInit failed: {} ({})", name != nullptr ? name : "unknown error", static_cast<int>(result));
  }
  return "";
}

LoadedDriver load_driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);  // kept open for good: the process may outlive us
  if (library == nullptr) return {nullptr, "libcuda.so.1 cannot be opened: no CUDA driver"};
  void* get_proc_address = dlsym(library, "cuGetProcAddress_v2");
  if (get_proc_address == nullptr) {
    return {nullptr, "the CUDA driver is too old: it has no cuGetProcAddress_v2, CUDA 12.0 or newer is needed"};
  }
  auto* driver = new CudaDriver(DriverLibrary(get_proc_address));  // kept for good, like the library
  std::string problem = initialise(*driver);
  if (problem.empty()) return {driver, ""};
  delete driver;
  return {nullptr, std::move(problem)};
}

const LoadedDriver& loaded_driver() {
  static const LoadedDriver& loaded = *new LoadedDriver(load_driver());
  return loaded;
}

}  // namespace

void* DriverLibrary::find(const char* name, int version) const {
  using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  void* entry = nullptr;
  CUdriverProcAddressQueryResult found{};
  const CUresult result = reinterpret_cast<GetProcAddress>(get_proc_address_)(
      name, &entry, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found);
  return result == CUDA_SUCCESS && found == CU_GET_PROC_ADDRESS_SUCCESS ? entry : nullptr;
}

Status driver_failure(const char* name, int version, CUresult result, bool missing) {
  if (missing) {
    return fail(Code::kUnhandledCuda, "the CUDA driver has no {}: CUDA {}.{} or newer is needed", name, version / 1000,
                version % 1000 / 10);
  }
  const char* error = nullptr;
  const char* text = nullptr;
  if (const CudaDriver* driver = find_cuda_driver()) {
    driver->get_error_name.raw(result, &error);
    driver->get_error_string.raw(result, &text);
  }
  return fail(Code::kUnhandledCuda, "Cuda failure {} '{}' ({}) in {}", static_cast<int>(result),
              text != nullptr ? text : "unknown error", error != nullptr ? error : "?", name);
}

Result<const CudaDriver*> cuda_driver() {
  const LoadedDriver& loaded = loaded_driver();
  if (loaded.driver != nullptr) return loaded.driver;
  return fail(Code::kUnhandledCuda, "no usable GPU: {}", loaded.problem);
}

const CudaDriver* find_cuda_driver() { return loaded_driver().driver; }

}  // namespace talaria
