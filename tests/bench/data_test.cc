// What the benchmark programs expect is right, and one wrong bit anywhere is seen.
#include "data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace talaria::bench {
namespace {

constexpr uint64_t kSeed = 20240607;
constexpr size_t kCount = 3000;  // more than two blocks, not a multiple

// An element as a number, without using the code under test. 64-bit integers need the extra bits of long double.
long double number(const ElementType& type, const std::byte* element) {
  const auto as = [&]<typename T>(T value) {
    std::memcpy(&value, element, sizeof(value));
    return static_cast<long double>(value);
  };
  switch (type.type) {
    case ncclInt8: return as(int8_t{});
    case ncclUint8: return as(uint8_t{});
    case ncclInt32: return as(int32_t{});
    case ncclUint32: return as(uint32_t{});
    case ncclInt64: return as(int64_t{});
    case ncclUint64: return as(uint64_t{});
    case ncclFloat32: return as(float{});
    case ncclFloat64: return as(double{});
    default: break;
  }
  unsigned word = 0;
  std::memcpy(&word, element, type.bytes);
  const unsigned fraction = word % (1u << type.mantissa_bits);
  const int exponent = static_cast<int>(word >> type.mantissa_bits) % (1 << (8 * type.bytes - 1 - type.mantissa_bits));
  const bool minus = word >> (8 * type.bytes - 1);
  if (exponent == 0) return fraction == 0 ? 0.0L : NAN;  // data has no subnormal numbers
  const long double value = std::ldexp(1.0L + std::ldexp(static_cast<long double>(fraction), -type.mantissa_bits),
                                       exponent - type.exponent_bias);
  return minus ? -value : value;
}

long double reduce(ncclRedOp_t op, long double a, long double b) {
  switch (op) {
    case ncclProd: return a * b;
    case ncclMax: return std::max(a, b);
    case ncclMin: return std::min(a, b);
    default: return a + b;
  }
}

// What `rank` gives to the sum at an element.
long double given(const DataSet& data, const ElementType& type, const Reduction& reduction, int rank,
                  const std::byte* element) {
  std::byte scalar[8];
  data.scalar(rank, scalar);
  return number(type, element) * (reduction.op == kMulSum ? number(type, scalar) : 1);
}

struct Inputs {
  std::vector<std::vector<std::byte>> ranks;
  std::vector<std::byte> expected;
};

Inputs make(const DataSet& data, const ElementType& type, int nranks) {
  Inputs made;
  for (int rank = 0; rank < nranks; ++rank) {
    made.ranks.emplace_back(kCount * type.bytes);
    data.input(rank, 0, kCount, made.ranks.back().data());
  }
  made.expected.resize(kCount * type.bytes);
  data.reduced(0, kCount, made.expected.data());
  return made;
}

template <typename Body>
void for_each_combination(Body body) {
  for (const ElementType& type : element_types()) {
    for (const Reduction& reduction : reductions()) {
      for (const int nranks : {1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 40}) {
        SCOPED_TRACE(testing::Message() << type.name << " " << reduction.name << " over " << nranks << " ranks");
        body(type, reduction, nranks);
      }
    }
  }
}

TEST(BenchData, ReductionAgreesWithNaiveArithmetic) {
  for_each_combination([](const ElementType& type, const Reduction& reduction, int nranks) {
    const DataSet data(type, &reduction, nranks, kSeed);
    if (!data.exact()) return;
    const Inputs made = make(data, type, nranks);
    for (size_t i = 0; i < kCount; ++i) {
      long double total = given(data, type, reduction, 0, &made.ranks[0][i * type.bytes]);
      for (int rank = 1; rank < nranks; ++rank) {
        total = reduce(reduction.op, total, given(data, type, reduction, rank, &made.ranks[rank][i * type.bytes]));
        if (reduction.op != ncclAvg) {
          ASSERT_LE(std::abs(total), static_cast<long double>(type.exact) * 4) << "partial result " << i;
        }
      }
      if (reduction.op == ncclAvg) total = type.floating ? total / nranks : std::trunc(total / nranks);
      ASSERT_EQ(total, number(type, &made.expected[i * type.bytes])) << "element " << i;
    }
  });
}

TEST(BenchData, AnyFlippedBitIsOneWrongElement) {
  std::mt19937_64 random(kSeed);
  for_each_combination([&](const ElementType& type, const Reduction& reduction, int nranks) {
    const DataSet data(type, &reduction, nranks, kSeed);
    if (!data.exact()) return;
    const Inputs made = make(data, type, nranks);
    ASSERT_EQ(data.count_wrong(made.expected.data(), made.expected.data(), kCount), 0u);
    for (int trial = 0; trial < 20; ++trial) {
      std::vector<std::byte> got = made.expected;
      const size_t bit = random() % (got.size() * 8);
      got[bit / 8] ^= std::byte{1} << (bit % 8);
      ASSERT_EQ(data.count_wrong(got.data(), made.expected.data(), kCount), 1u) << "bit " << bit;
    }
  });
}

TEST(BenchData, AveragesAreExactOnUsualNumbersOfRanks) {
  for (const char* name : {"half", "float", "double", "bfloat16"}) {
    for (int nranks = 1; nranks <= 16; ++nranks) {
      const DataSet data(*find_element_type(name), find_reduction("avg"), nranks, kSeed);
      if (name == std::string("half") && nranks == 11) continue;  // 11 times 1/11 is not 1 there
      EXPECT_TRUE(data.exact()) << name << " over " << nranks;
    }
  }
}

TEST(BenchData, ToleranceForgivesRoundingOnly) {
  const ElementType& type = *find_element_type("half");
  const int nranks = 3000;  // too many for exact averages
  const DataSet data(type, find_reduction("avg"), nranks, kSeed);
  ASSERT_FALSE(data.exact());
  std::vector<std::byte> expected(2 * kCount);
  data.reduced(0, kCount, expected.data());
  const std::vector<std::byte> poison(2 * kCount, std::byte{0x7f});  // NaN
  EXPECT_EQ(data.count_wrong(expected.data(), expected.data(), kCount), 0u);
  EXPECT_EQ(data.count_wrong(poison.data(), expected.data(), kCount), kCount);
}

TEST(BenchData, LosingAnyRankShows) {
  for_each_combination([](const ElementType& type, const Reduction& reduction, int nranks) {
    const bool exhausted = reduction.op == ncclAvg && nranks >= type.exact / 2;  // few values fit
    if (reduction.op != ncclSum && !(reduction.op == ncclAvg && type.floating && !exhausted)) return;
    const Inputs made = make(DataSet(type, &reduction, nranks, kSeed), type, nranks);
    for (const std::vector<std::byte>& input : made.ranks) {
      size_t neutral = 0;
      for (size_t i = 0; i < kCount; ++i) neutral += number(type, &input[i * type.bytes]) == 0 ? 1 : 0;
      ASSERT_LT(neutral, kCount);
    }
  });
}

TEST(BenchData, MovedDataIsArbitraryBitsThatDifferByRankAndSeed) {
  for (const ElementType& type : element_types()) {
    SCOPED_TRACE(type.name);
    const DataSet data(type, nullptr, 4, kSeed);
    const DataSet other(type, nullptr, 4, kSeed + 1);
    const size_t bytes = kCount * type.bytes;
    std::vector<std::byte> a(bytes), b(bytes), c(bytes);
    data.input(0, 0, kCount, a.data());
    data.input(1, 0, kCount, b.data());
    other.input(0, 0, kCount, c.data());
    EXPECT_GT(data.count_wrong(a.data(), b.data(), kCount), kCount * 9 / 10);
    EXPECT_GT(data.count_wrong(a.data(), c.data(), kCount), kCount * 9 / 10);
    // Every bit of an element takes both values.
    std::vector<std::byte> any(type.bytes), all(type.bytes, std::byte{0xff});
    for (size_t i = 0; i < bytes; ++i) {
      any[i % type.bytes] |= a[i];
      all[i % type.bytes] &= a[i];
    }
    for (size_t i = 0; i < type.bytes; ++i) {
      EXPECT_EQ(any[i], std::byte{0xff});
      EXPECT_EQ(all[i], std::byte{0});
    }
  }
}

TEST(BenchData, PartsAreThoseOfTheWhole) {
  std::mt19937_64 random(kSeed);
  for (const ElementType& type : element_types()) {
    for (const Reduction* reduction : {static_cast<const Reduction*>(nullptr), find_reduction("sum")}) {
      const DataSet data(type, reduction, 9, kSeed);
      std::vector<std::byte> whole(kCount * type.bytes);
      data.input(2, 0, kCount, whole.data());
      for (int trial = 0; trial < 20; ++trial) {
        const size_t first = random() % kCount;
        const size_t count = random() % (kCount - first + 1);
        std::vector<std::byte> part(count * type.bytes + 1);
        data.input(2, first, count, part.data());
        ASSERT_TRUE(std::equal(part.begin(), part.end() - 1, whole.begin() + first * type.bytes))
            << type.name << " " << first << "+" << count;
      }
    }
  }
}

}  // namespace
}  // namespace talaria::bench
