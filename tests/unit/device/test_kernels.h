// The kernels of the device code, by type, reduction and channel.
#pragma once

#include "engine/device/interpreter.cuh"
#include "fleet.h"

namespace talaria {

template <DataType kType> struct DeviceType;
template <> struct DeviceType<DataType::kInt8> { using Type = int8_t; };
template <> struct DeviceType<DataType::kUint8> { using Type = uint8_t; };
template <> struct DeviceType<DataType::kInt32> { using Type = int32_t; };
template <> struct DeviceType<DataType::kUint32> { using Type = uint32_t; };
template <> struct DeviceType<DataType::kUint64> { using Type = uint64_t; };
template <> struct DeviceType<DataType::kFloat8e4m3> { using Type = device::Float8<E4m3>; };
template <> struct DeviceType<DataType::kFloat8e5m2> { using Type = device::Float8<E5m2>; };
template <> struct DeviceType<DataType::kInt64> { using Type = int64_t; };
template <> struct DeviceType<DataType::kFloat16> { using Type = device::Half; };
template <> struct DeviceType<DataType::kBfloat16> { using Type = device::Bfloat; };
template <> struct DeviceType<DataType::kFloat32> { using Type = float; };
template <> struct DeviceType<DataType::kFloat64> { using Type = double; };

template <class Protocol, DataType kType>
Fleet::Kernel reducing_kernel(ReduceOp reduce) {
  using T = typename DeviceType<kType>::Type;
  switch (reduce) {
    case ReduceOp::kSum: return device::run<Protocol, device::Reducer<T, ReduceOp::kSum>>;
    case ReduceOp::kProd: return device::run<Protocol, device::Reducer<T, ReduceOp::kProd>>;
    case ReduceOp::kMin: return device::run<Protocol, device::Reducer<T, ReduceOp::kMin>>;
    case ReduceOp::kMax: return device::run<Protocol, device::Reducer<T, ReduceOp::kMax>>;
    case ReduceOp::kAvg: return device::run<Protocol, device::Reducer<T, ReduceOp::kAvg>>;
    case ReduceOp::kPreMulSum: return device::run<Protocol, device::Reducer<T, ReduceOp::kPreMulSum>>;
    default: return device::run<Protocol, device::Copier>;
  }
}
template <DataType kType>
Fleet::Kernel kernel_for(Channel channel, ReduceOp reduce) {
  return is_packet(channel) ? reducing_kernel<device::Packet, kType>(reduce)
                            : reducing_kernel<device::Bulk, kType>(reduce);
}

}  // namespace talaria
