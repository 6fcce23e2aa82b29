#include "service/kernel_cache.h"

#include <map>
#include <mutex>
#include <utility>

#include "base/log.h"
#include "base/os.h"

namespace talaria {

// The images of the process, loaded for all devices.
class LoadedImages {
 public:
  explicit LoadedImages(const CudaDriver& driver) : driver_(driver) {}
  ~LoadedImages() {
    for (CUlibrary library : libraries_) driver_.library_unload.raw(library);
  }
  LoadedImages(const LoadedImages&) = delete;
  LoadedImages& operator=(const LoadedImages&) = delete;

  CUresult load(std::span<const std::byte> image) {
    CUlibrary library = nullptr;
    const CUresult result =
        driver_.library_load_data.raw(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (result == CUDA_SUCCESS) libraries_.push_back(library);
    return result;
  }
  CUlibrary library(uint32_t image) const { return libraries_[image]; }

 private:
  const CudaDriver& driver_;
  std::vector<CUlibrary> libraries_;
};

namespace {

// What is loaded now; entries expire with the last engine.
struct Loaded {
  std::mutex mutex;
  std::weak_ptr<LoadedImages> images;
  std::map<int, std::weak_ptr<const DeviceKernels>> devices;
};

Loaded& loaded() {
  static Loaded& all = *new Loaded();
  return all;
}

Status load_failure(const PrimaryContext& context, CUresult result, const char* what) {
  if (result != CUDA_ERROR_NO_BINARY_FOR_GPU && result != CUDA_ERROR_UNSUPPORTED_PTX_VERSION) {
    return driver_failure(what, 12000, result, false);
  }
  int major = 0;
  int minor = 0;
  const CudaDriver& driver = context.driver();
  driver.device_get_attribute.raw(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, context.device());
  driver.device_get_attribute.raw(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, context.device());
  return fail(Code::kUnhandledCuda,
              "no kernel for this GPU: device {} has compute capability {}.{}, which this build does not carry",
              context.ordinal(), major, minor);
}

Result<std::shared_ptr<LoadedImages>> load_images(const KernelSource& source, const PrimaryContext& context) {
  if (std::shared_ptr<LoadedImages> images = loaded().images.lock()) return images;
  auto images = std::make_shared<LoadedImages>(context.driver());
  for (std::span<const std::byte> image : source.images) {
    if (const CUresult result = images->load(image); result != CUDA_SUCCESS) {
      return load_failure(context, result, "cuLibraryLoadData");
    }
  }
  loaded().images = images;
  return images;
}

// Finds a kernel and makes the driver load it now.
Result<CUfunction> load_kernel(const LoadedImages& images, const KernelName& name, const PrimaryContext& context) {
  const CudaDriver& driver = context.driver();
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  TRY(driver.library_get_kernel(&kernel, images.library(name.image), name.name));
  CUresult result = driver.kernel_get_function.raw(&function, kernel);
  if (result == CUDA_SUCCESS) {
    int registers = 0;  // asking for an attribute loads too, where cuFuncLoad does not exist
    result = driver.function_load.available()
                 ? driver.function_load.raw(function)
                 : driver.function_get_attribute.raw(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
  }
  if (result != CUDA_SUCCESS) return load_failure(context, result, name.name);
  return function;
}

}  // namespace

DeviceKernels::DeviceKernels(std::shared_ptr<LoadedImages> images, ContextPtr context,
                             std::vector<CUfunction> functions)
    : images_(std::move(images)), context_(std::move(context)), functions_(std::move(functions)) {}

DeviceKernels::~DeviceKernels() = default;

Result<std::shared_ptr<const DeviceKernels>> DeviceKernels::load(const KernelSource& source, ContextPtr context) {
  std::lock_guard lock(loaded().mutex);
  std::weak_ptr<const DeviceKernels>& place = loaded().devices[context->ordinal()];
  if (std::shared_ptr<const DeviceKernels> kernels = place.lock()) return kernels;
  ContextGuard guard(*context);
  TRY(guard.status());
  RelaxedCapture relaxed(context->driver());
  const double start = now_usec();
  std::shared_ptr<LoadedImages> images = TRY(load_images(source, *context));
  std::vector<CUfunction> functions;
  for (const KernelName& name : source.kernels) functions.push_back(TRY(load_kernel(*images, name, *context)));
  log_info(kLogInit, "loaded {} kernels on device {} in {:.0f} us", functions.size(), context->ordinal(),
           now_usec() - start);
  auto kernels =
      std::make_shared<const DeviceKernels>(std::move(images), std::move(context), std::move(functions));
  place = kernels;
  return std::shared_ptr<const DeviceKernels>(kernels);
}

}  // namespace talaria
