// Kernels that reduce uint32.
#include "engine/device/interpreter.cuh"

namespace talaria::device {
namespace {

template <ReduceOp kOp>
using Reduction = Reducer<uint32_t, kOp>;

}  // namespace

extern "C" {

__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_Sum_u32_Packet(const __grid_constant__ Batch batch) {
  run<Packet, Reduction<ReduceOp::kSum>>(batch);
}
__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_Sum_u32_Bulk(const __grid_constant__ Batch batch) {
  run<Bulk, Reduction<ReduceOp::kSum>>(batch);
}
__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_Prod_u32_Packet(const __grid_constant__ Batch batch) {
  run<Packet, Reduction<ReduceOp::kProd>>(batch);
}
__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_Prod_u32_Bulk(const __grid_constant__ Batch batch) {
  run<Bulk, Reduction<ReduceOp::kProd>>(batch);
}
__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_Max_u32_Packet(const __grid_constant__ Batch batch) {
  run<Packet, Reduction<ReduceOp::kMax>>(batch);
}
__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_Max_u32_Bulk(const __grid_constant__ Batch batch) {
  run<Bulk, Reduction<ReduceOp::kMax>>(batch);
}
__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_Min_u32_Packet(const __grid_constant__ Batch batch) {
  run<Packet, Reduction<ReduceOp::kMin>>(batch);
}
__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_Min_u32_Bulk(const __grid_constant__ Batch batch) {
  run<Bulk, Reduction<ReduceOp::kMin>>(batch);
}
__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_Avg_u32_Packet(const __grid_constant__ Batch batch) {
  run<Packet, Reduction<ReduceOp::kAvg>>(batch);
}
__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_Avg_u32_Bulk(const __grid_constant__ Batch batch) {
  run<Bulk, Reduction<ReduceOp::kAvg>>(batch);
}
__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_PreMulSum_u32_Packet(
    const __grid_constant__ Batch batch) {
  run<Packet, Reduction<ReduceOp::kPreMulSum>>(batch);
}
__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_PreMulSum_u32_Bulk(
    const __grid_constant__ Batch batch) {
  run<Bulk, Reduction<ReduceOp::kPreMulSum>>(batch);
}

}  // extern "C"
}  // namespace talaria::device
