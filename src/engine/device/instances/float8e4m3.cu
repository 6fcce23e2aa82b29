// Kernels that reduce float8e4m3.
#include "engine/device/interpreter.cuh"

namespace talaria::device {
namespace {

template <ReduceOp kOp>
using Reduction = Reducer<Float8<E4m3>, kOp>;

}  // namespace

extern "C" {

__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_Sum_f8e4m3_Packet(const __grid_constant__ Batch batch) {
  run<Packet, Reduction<ReduceOp::kSum>>(batch);
}
__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_Sum_f8e4m3_Bulk(const __grid_constant__ Batch batch) {
  run<Bulk, Reduction<ReduceOp::kSum>>(batch);
}
__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_Prod_f8e4m3_Packet(const __grid_constant__ Batch batch) {
  run<Packet, Reduction<ReduceOp::kProd>>(batch);
}
__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_Prod_f8e4m3_Bulk(const __grid_constant__ Batch batch) {
  run<Bulk, Reduction<ReduceOp::kProd>>(batch);
}
__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_Max_f8e4m3_Packet(const __grid_constant__ Batch batch) {
  run<Packet, Reduction<ReduceOp::kMax>>(batch);
}
__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_Max_f8e4m3_Bulk(const __grid_constant__ Batch batch) {
  run<Bulk, Reduction<ReduceOp::kMax>>(batch);
}
__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_Min_f8e4m3_Packet(const __grid_constant__ Batch batch) {
  run<Packet, Reduction<ReduceOp::kMin>>(batch);
}
__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_Min_f8e4m3_Bulk(const __grid_constant__ Batch batch) {
  run<Bulk, Reduction<ReduceOp::kMin>>(batch);
}
__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_Avg_f8e4m3_Packet(const __grid_constant__ Batch batch) {
  run<Packet, Reduction<ReduceOp::kAvg>>(batch);
}
__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_Avg_f8e4m3_Bulk(const __grid_constant__ Batch batch) {
  run<Bulk, Reduction<ReduceOp::kAvg>>(batch);
}
__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_PreMulSum_f8e4m3_Packet(
    const __grid_constant__ Batch batch) {
  run<Packet, Reduction<ReduceOp::kPreMulSum>>(batch);
}
__global__ void __launch_bounds__(512, 2) ncclDevKernel_Reduce_PreMulSum_f8e4m3_Bulk(
    const __grid_constant__ Batch batch) {
  run<Bulk, Reduction<ReduceOp::kPreMulSum>>(batch);
}

}  // extern "C"
}  // namespace talaria::device
