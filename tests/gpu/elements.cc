#include "gpu/elements.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/os.h"

namespace talaria::gpu_test {
namespace {

// SplitMix64's finaliser (Steele, Lea, Flood 2014).
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// A value as a floating type of so many bits that represents it exactly, as a normal number or zero.
struct FloatFormat {
  int bits, mantissa, bias;
};
uint16_t float_bits(double value, const FloatFormat& format) {
  if (value == 0) return 0;
  int exponent = 0;
  const double mantissa = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
  const int fraction = static_cast<int>((mantissa * 2 - 1) * (1 << format.mantissa));
  return static_cast<uint16_t>((value < 0 ? 1 << (format.bits - 1) : 0) |
                               (exponent - 1 + format.bias) << format.mantissa | fraction);
}

template <typename T>
void put(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace

uint64_t run_seed() {
  static const uint64_t seed = [] {
    const auto text = environment("TALARIA_TEST_SEED");
    return text ? std::strtoull(text->c_str(), nullptr, 0) : random_u64();
  }();
  return seed;
}

int input_value(uint64_t seed, uint32_t rank, size_t index, DataType type) {
  const uint64_t random = mix(seed + 0x9e3779b97f4a7c15ull * (index * 64 + rank + 1));
  switch (type) {
    // bf16 has 8 significant bits: eight values up to 2, divided by 8, need 7; e4m3 has 4, e5m2 3.
    case DataType::kBfloat16:
    case DataType::kFloat8e4m3: return static_cast<int>(random % 5) - 2;
    case DataType::kFloat8e5m2: return static_cast<int>(random % 3) - 1;
    case DataType::kUint8:
    case DataType::kUint32:
    case DataType::kUint64: return static_cast<int>(random % 31);
    default: return static_cast<int>(random % 31) - 15;
  }
}

// A byte has no room for sums of larger products.
int scalar_value(uint32_t rank, DataType type) {
  if (bytes_of(type) > 1) return 1 + static_cast<int>(rank % 2);
  if (rank % 2 == 0) return 1;
  return type == DataType::kUint8 ? 0 : -1;
}

double reduced_value(const Reduction& reduction, size_t index) {
  int sum = 0;
  int largest = INT32_MIN, smallest = INT32_MAX;
  for (uint32_t rank = 0; rank < reduction.nranks; ++rank) {
    const int value = input_value(reduction.seed, rank, index, reduction.type);
    sum += value * (reduction.reduce == ReduceOp::kPreMulSum ? scalar_value(rank, reduction.type) : 1);
    largest = std::max(largest, value);
    smallest = std::min(smallest, value);
  }
  if (reduction.reduce == ReduceOp::kMax) return largest;
  if (reduction.reduce == ReduceOp::kMin) return smallest;
  if (reduction.reduce == ReduceOp::kSum || reduction.reduce == ReduceOp::kPreMulSum) return sum;
  const int nranks = static_cast<int>(reduction.nranks);
  return traits_of(reduction.type).floating ? double(sum) / nranks : double(sum / nranks);
}

void store(std::byte* to, DataType type, double value) {
  switch (type) {
    case DataType::kInt8: return put(to, static_cast<int8_t>(value));
    case DataType::kUint8: return put(to, static_cast<uint8_t>(value));
    case DataType::kInt32: return put(to, static_cast<int32_t>(value));
    case DataType::kInt64: return put(to, static_cast<int64_t>(value));
    case DataType::kUint32: return put(to, static_cast<uint32_t>(value));
    case DataType::kUint64: return put(to, static_cast<uint64_t>(value));
    case DataType::kFloat16: return put(to, float_bits(value, {16, 10, 15}));
    case DataType::kFloat8e4m3: return put(to, static_cast<uint8_t>(float_bits(value, {8, 3, 7})));
    case DataType::kFloat8e5m2: return put(to, static_cast<uint8_t>(float_bits(value, {8, 2, 15})));
    case DataType::kFloat32: return put(to, static_cast<float>(value));
    case DataType::kFloat64: return put(to, value);
    case DataType::kBfloat16:
      return put(to, static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16));
  }
}

std::vector<std::byte> input_block(uint64_t seed, uint32_t rank, size_t first, size_t count, DataType type) {
  const size_t size = bytes_of(type);
  std::vector<std::byte> block(count * size);
  for (size_t i = 0; i < count; ++i) store(block.data() + i * size, type, input_value(seed, rank, first + i, type));
  return block;
}

std::vector<std::byte> reduced_block(const Reduction& reduction, size_t first, size_t count) {
  const size_t size = bytes_of(reduction.type);
  std::vector<std::byte> block(count * size);
  for (size_t i = 0; i < count; ++i) {
    store(block.data() + i * size, reduction.type, reduced_value(reduction, first + i));
  }
  return block;
}

std::string first_difference(const std::byte* got, const std::byte* wanted, size_t bytes) {
  if (bytes == 0 || std::memcmp(got, wanted, bytes) == 0) return "";
  size_t at = 0;
  while (got[at] == wanted[at]) ++at;
  size_t wrong = 0;
  for (size_t i = at; i < bytes; ++i) wrong += got[i] != wanted[i];
  char text[160];
  std::snprintf(text, sizeof text, "byte %zu is 0x%02x instead of 0x%02x; %zu of %zu bytes are wrong", at,
                static_cast<unsigned>(got[at]), static_cast<unsigned>(wanted[at]), wrong, bytes);
  return text;
}

}  // namespace talaria::gpu_test
