#include "service/cuda_context.h"

namespace talaria {

Result<std::shared_ptr<PrimaryContext>> PrimaryContext::retain(int device) {
  const CudaDriver* driver = TRY(cuda_driver());
  CUdevice handle;
  CUcontext context;
  TRY(driver->device_get(&handle, device));
  TRY(driver->primary_context_retain(&context, handle));
  return std::make_shared<PrimaryContext>(*driver, handle, device, context);
}

}  // namespace talaria
