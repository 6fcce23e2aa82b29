// Elements for tests: reproducible random inputs, and what a collective must make of them, computed without the
// library.
//
// Inputs are small integers, so that sums, extremes and averages over 2, 4 or 8 ranks, and sums of inputs times their
// rank's scalar, are exact in every type and order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "base/types.h"
#include "nccl.h"

namespace talaria::gpu_test {

inline constexpr DataType kTestTypes[] = {
    DataType::kInt8,    DataType::kUint8,   DataType::kInt32,   DataType::kUint32,   DataType::kInt64,
    DataType::kUint64,  DataType::kFloat16, DataType::kFloat32, DataType::kFloat64,  DataType::kBfloat16,
    DataType::kFloat8e4m3, DataType::kFloat8e5m2};
static_assert(std::size(kTestTypes) == kDataTypes);

// The seed of this run: TALARIA_TEST_SEED, or random. Every failure message carries it.
uint64_t run_seed();

// Element `index` of `rank`'s send buffer.
int input_value(uint64_t seed, uint32_t rank, size_t index, DataType type);
// What PreMulSum multiplies it by.
int scalar_value(uint32_t rank, DataType type);
// A reduction over the send buffers of all ranks.
struct Reduction {
  uint64_t seed;
  uint32_t nranks;
  DataType type;
  ReduceOp reduce;
};
// Element `index` of the reduction.
double reduced_value(const Reduction& reduction, size_t index);

// Values as elements of `type`, next to each other.
void store(std::byte* to, DataType type, double value);
std::vector<std::byte> input_block(uint64_t seed, uint32_t rank, size_t first, size_t count, DataType type);
std::vector<std::byte> reduced_block(const Reduction& reduction, size_t first, size_t count);

// "" if equal, else where they first differ.
std::string first_difference(const std::byte* got, const std::byte* wanted, size_t bytes);

constexpr ncclDataType_t nccl_type(DataType type) { return static_cast<ncclDataType_t>(type); }
constexpr ncclRedOp_t nccl_op(ReduceOp op) { return static_cast<ncclRedOp_t>(op); }

}  // namespace talaria::gpu_test
