// Kernels that move any type as bytes.
#include "engine/device/interpreter.cuh"

namespace talaria::device {
extern "C" {

__global__ void __launch_bounds__(512, 2) ncclDevKernel_Copy_Packet(const __grid_constant__ Batch batch) {
  run<Packet, Copier>(batch);
}
__global__ void __launch_bounds__(512, 2) ncclDevKernel_Copy_Bulk(const __grid_constant__ Batch batch) {
  run<Bulk, Copier>(batch);
}

}  // extern "C"
}  // namespace talaria::device
