#include "engine/host/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "engine/host/move.h"

namespace talaria {
namespace {

struct Case {
  Reduction reduction;
  uint32_t nsources;
  size_t count;
  size_t misalignment;  // elements
};

std::vector<std::byte> random_bytes(std::mt19937_64& random, size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  return data;
}

// Any bit pattern is an input: infinities, subnormals and NaNs included. NaN results may differ in payload only.
bool same_element(DataType type, const std::byte* a, const std::byte* b) {
  if (std::memcmp(a, b, bytes_of(type)) == 0) return true;
  const auto is_nan = [type](const std::byte* p) {
    uint64_t bits = 0;
    std::memcpy(&bits, p, bytes_of(type));
    switch (type) {
      case DataType::kFloat16: return (bits & 0x7fffu) > 0x7c00u;
      case DataType::kBfloat16: return (bits & 0x7fffu) > 0x7f80u;
      case DataType::kFloat32: return (bits & 0x7fffffffu) > 0x7f800000u;
      case DataType::kFloat64: return (bits & 0x7fffffffffffffffull) > 0x7ff0000000000000ull;
      case DataType::kFloat8e4m3: return (bits & 0x7fu) == 0x7fu;
      case DataType::kFloat8e5m2: return (bits & 0x7fu) > 0x7cu;
      default: return false;
    }
  };
  return is_nan(a) && is_nan(b);
}

void expect_tables_agree(const Case& test, std::mt19937_64& random) {
  const size_t element = bytes_of(test.reduction.type), offset = test.misalignment * element;
  std::vector<std::vector<std::byte>> inputs;
  std::vector<const void*> sources;
  std::vector<uint8_t> raw;
  std::vector<uint64_t> scalars;
  for (uint32_t s = 0; s < test.nsources; ++s) {
    scalars.push_back(random());
    inputs.push_back(random_bytes(random, test.count * element + offset + 64));
    sources.push_back(inputs.back().data() + offset);
    raw.push_back(random() % 2 == 0);
  }
  const std::vector<std::byte> poison(test.count * element + offset + 64, std::byte{0xa5});
  std::vector<std::byte> expected = poison;
  reduce_with(*scalar_reduce_table(), test.reduction, expected.data() + offset,
              {sources.data(), raw.data(), test.nsources, scalars.data()}, test.count);
  size_t tables = 0;
  const ReduceTable* const* table = reduce_tables(&tables);
  for (size_t t = 0; t < tables; ++t) {
    std::vector<std::byte> out = poison;
    reduce_with(*table[t], test.reduction, out.data() + offset,
                {sources.data(), raw.data(), test.nsources, scalars.data()}, test.count);
    for (size_t i = 0; i < test.count; ++i) {
      ASSERT_TRUE(same_element(test.reduction.type, &out[offset + i * element], &expected[offset + i * element]))
          << table[t]->name << " " << traits_of(test.reduction.type).name << " element " << i << " of " << test.count;
    }
    EXPECT_EQ(std::memcmp(out.data(), poison.data(), offset), 0) << "wrote before the buffer";
    EXPECT_EQ(std::memcmp(&out[offset + test.count * element], poison.data(), 64), 0) << "wrote behind the buffer";
  }
}

TEST(Reduce, EveryInstructionSetGivesTheBitsOfTheScalarCode) {
  std::mt19937_64 random(42);
  for (int t = 0; t < kDataTypes; ++t) {
    const auto type = static_cast<DataType>(t);
    for (int r = 0; r < kReduceOps; ++r) {
      const auto op = static_cast<ReduceOp>(r);
      for (size_t count : {1, 7, 16, 33, 64, 1001}) {
        const auto nsources = static_cast<uint32_t>(1 + random() % 5);
        expect_tables_agree(Case{{type, op, 3, true}, nsources, count, random() % 9}, random);
      }
    }
  }
}

TEST(Reduce, HalvesAccumulateInSinglePrecisionAndRoundOnce) {
  // 2048 + 1 + 1: rounding at each addition would stay at 2048.
  const uint16_t a = 0x6800, b = 0x3c00, c = 0x3c00;
  const void* sources[] = {&a, &b, &c};
  const uint8_t raw[] = {1, 1, 1};
  uint16_t out = 0;
  reduce_into(Reduction{DataType::kFloat16, ReduceOp::kSum, 3, true}, &out, {sources, raw, 3}, 1);
  EXPECT_EQ(out, 0x6801);
}

TEST(Reduce, IntegerAverageTruncatesTowardsZero) {
  const int32_t a = -5, b = -2, c = 4;
  const void* sources[] = {&a, &b, &c};
  const uint8_t raw[] = {1, 1, 1};
  int32_t out = 0;
  reduce_into(Reduction{DataType::kInt32, ReduceOp::kAvg, 2, true}, &out, {sources, raw, 3}, 1);
  EXPECT_EQ(out, -1);
}

TEST(Reduce, ProductsOfIntegersWrap) {
  const int8_t a = 3, b = 5, c = 100;
  const void* sources[] = {&a, &b, &c};
  const uint8_t raw[] = {1, 1, 1};
  int8_t out = 0;
  reduce_into(Reduction{DataType::kInt8, ReduceOp::kProd, 3, true}, &out, {sources, raw, 3}, 1);
  EXPECT_EQ(out, -36);  // 1500 = 6 · 256 - 36
}

TEST(Reduce, PreMulSumRoundsEachProductToTheTypeThenSums) {
  // 3 · 683 = 2049 rounds to 2048 in a half, and 2048 + 1 to 2048; the raw flag keeps the last source as it is.
  const uint16_t a = 0x4200, b = 0x3c00;
  const uint64_t scalars[] = {0x6156, 0xffff};
  const void* sources[] = {&a, &b};
  const uint8_t raw[] = {1, 0};
  uint16_t out = 0;
  reduce_into(Reduction{DataType::kFloat16, ReduceOp::kPreMulSum, 2, true}, &out, {sources, raw, 2, scalars}, 1);
  EXPECT_EQ(out, 0x6800);
}

TEST(Reduce, MinimumPassesNansOver) {
  const float a = std::nanf(""), b = 2.0f, c = 1.0f;
  const void* sources[] = {&a, &b, &c};
  const uint8_t raw[] = {1, 1, 1};
  float out = 0;
  reduce_into(Reduction{DataType::kFloat32, ReduceOp::kMin, 3, true}, &out, {sources, raw, 3}, 1);
  EXPECT_EQ(out, 1.0f);
}

TEST(Move, WritesOneReductionToEverySinkAlsoInPlace) {
  std::vector<float> a(10000), b(10000), copy(10000);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i), b[i] = 2.0f * static_cast<float>(i);
  Movement movement{DataType::kFloat32, ReduceOp::kSum, 2, true, a.size(), {}, {}, {}, {}};
  movement.add_source(a.data(), true);
  movement.add_source(b.data(), true);
  movement.add_sink(a.data());
  movement.add_sink(copy.data());
  move(movement);
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i], 3.0f * static_cast<float>(i));
    ASSERT_EQ(copy[i], a[i]);
  }
}

}  // namespace
}  // namespace talaria
