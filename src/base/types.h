// Datatypes and reductions as data: one row each, with NCCL's values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace talaria {

enum class DataType : uint8_t {
  kInt8 = 0, kUint8 = 1, kInt32 = 2, kUint32 = 3, kInt64 = 4, kUint64 = 5,
  kFloat16 = 6, kFloat32 = 7, kFloat64 = 8, kBfloat16 = 9, kFloat8e4m3 = 10, kFloat8e5m2 = 11,
};
inline constexpr int kDataTypes = 12;

// PreMulSum is what the operators that ncclRedOpCreatePreMulSum makes do; its number is no handle of the API.
enum class ReduceOp : uint8_t { kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4, kPreMulSum = 5, kNone = 255 };
inline constexpr int kReduceOps = 6;
inline constexpr int kBuiltinReduceOps = 5;

struct DataTypeTraits {
  const char* name;      // nccl-tests' name
  uint8_t bytes;
  bool floating;
};

inline constexpr DataTypeTraits kDataTypeTraits[kDataTypes] = {
    {"int8", 1, false},    {"uint8", 1, false},    {"int32", 4, false},   {"uint32", 4, false},
    {"int64", 8, false},   {"uint64", 8, false},   {"half", 2, true},     {"float", 4, true},
    {"double", 8, true},   {"bfloat16", 2, true},  {"fp8_e4m3", 1, true}, {"fp8_e5m2", 1, true},
};

struct ReduceOpTraits {
  const char* name;
};

inline constexpr ReduceOpTraits kReduceOpTraits[kReduceOps] = {
    {"sum"}, {"prod"}, {"max"}, {"min"}, {"avg"}, {"mulsum"},
};

constexpr const DataTypeTraits& traits_of(DataType type) { return kDataTypeTraits[static_cast<int>(type)]; }
constexpr size_t bytes_of(DataType type) { return traits_of(type).bytes; }
constexpr const ReduceOpTraits& traits_of(ReduceOp op) { return kReduceOpTraits[static_cast<int>(op)]; }

}  // namespace talaria
