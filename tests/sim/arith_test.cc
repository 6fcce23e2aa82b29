// The reference arithmetic itself, against values worked out by hand or by another route.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sim/arith.h"

namespace talaria::sim {
namespace {

// The nearest half by search over all of them: no bit tricks shared with half_from_float.
uint16_t nearest_half(double value) {
  const bool negative = std::signbit(value);
  const double magnitude = std::fabs(value);
  if (magnitude >= 65520.0) return negative ? 0xfc00 : 0x7c00;
  uint16_t low = 0, high = 0x7bff;
  while (low < high) {  // last half that is not above
    const uint16_t middle = static_cast<uint16_t>((low + high + 1) / 2);
    if (static_cast<double>(float_from_half(middle)) <= magnitude) low = middle;
    else high = static_cast<uint16_t>(middle - 1);
  }
  const double below = float_from_half(low);
  const double above = low == 0x7bff ? 65536.0 : float_from_half(static_cast<uint16_t>(low + 1));
  const double middle = (below + above) / 2;
  const bool up = magnitude > middle || (magnitude == middle && (low & 1) != 0);
  return static_cast<uint16_t>(low + (up ? 1 : 0)) | (negative ? 0x8000 : 0);
}

TEST(Arithmetic, EveryHalfSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float wide = float_from_half(static_cast<uint16_t>(bits));
    if (std::isnan(wide)) EXPECT_TRUE(std::isnan(float_from_half(half_from_float(wide))));
    else ASSERT_EQ(half_from_float(wide), bits);
  }
  EXPECT_EQ(float_from_half(0x3c00), 1.0f);
  EXPECT_EQ(float_from_half(0x0001), 0x1p-24f);
  EXPECT_EQ(float_from_half(0x7bff), 65504.0f);
}

TEST(Arithmetic, HalvesRoundToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = float_from_half(static_cast<uint16_t>(bits));
    const float high = float_from_half(static_cast<uint16_t>(bits + 1)), middle = (low + high) / 2;
    for (float value : {middle, std::nextafterf(middle, low), std::nextafterf(middle, high)}) {
      ASSERT_EQ(half_from_float(value), nearest_half(value)) << value;
      ASSERT_EQ(half_from_float(-value), nearest_half(-static_cast<double>(value))) << value;
    }
  }
  EXPECT_EQ(half_from_float(65519.996f), 0x7bff);
  EXPECT_EQ(half_from_float(65520.0f), 0x7c00);
}

TEST(Arithmetic, BfloatsRoundToNearestEven) {
  EXPECT_EQ(bfloat_from_float(1.0f), 0x3f80);
  EXPECT_EQ(bfloat_from_float(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // a tie, to even
  EXPECT_EQ(bfloat_from_float(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(bfloat_from_float(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(bfloat_from_float(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(float_from_bfloat(bfloat_from_float(std::nanf("")))));
}

template <typename T>
T reduce_values(DataType type, ReduceOp reduce, std::initializer_list<T> values, bool final = true) {
  std::vector<Operand> operands;
  for (const T& value : values) operands.push_back({reinterpret_cast<const std::byte*>(&value), true});
  T out;
  reduce_piece({type, reduce, static_cast<uint32_t>(values.size())}, operands, final, 1,
               reinterpret_cast<std::byte*>(&out));
  return out;
}

// 2048 + 1 + 1: rounding after each addition would stay at 2048.
TEST(Arithmetic, HalvesAccumulateWideAndRoundOnce) {
  EXPECT_EQ(reduce_values<uint16_t>(DataType::kFloat16, ReduceOp::kSum, {0x6800, 0x3c00, 0x3c00}), 0x6801);
}

TEST(Arithmetic, IntegersWrapAndAveragesTruncate) {
  EXPECT_EQ(reduce_values<int8_t>(DataType::kInt8, ReduceOp::kSum, {127, 1}), -128);
  EXPECT_EQ(reduce_values<int32_t>(DataType::kInt32, ReduceOp::kAvg, {-3, 0}), -1);
  EXPECT_EQ(reduce_values<int32_t>(DataType::kInt32, ReduceOp::kAvg, {-3, 0}, false), -3);
  EXPECT_EQ(reduce_values<uint8_t>(DataType::kUint8, ReduceOp::kAvg, {200, 100}), 22);
}

TEST(Arithmetic, MaximumSkipsNansAndKeepsTheFirstOfEquals) {
  const float nan = std::nanf("");
  EXPECT_EQ(reduce_values<float>(DataType::kFloat32, ReduceOp::kMax, {nan, 1.0f, 2.0f, nan}), 2.0f);
  EXPECT_TRUE(std::signbit(reduce_values<float>(DataType::kFloat32, ReduceOp::kMax, {-0.0f, 0.0f})));
  EXPECT_FALSE(std::signbit(reduce_values<float>(DataType::kFloat32, ReduceOp::kMax, {0.0f, -0.0f})));
}

TEST(Arithmetic, MinimumSkipsNansAndKeepsTheFirstOfEquals) {
  const float nan = std::nanf("");
  EXPECT_EQ(reduce_values<float>(DataType::kFloat32, ReduceOp::kMin, {nan, 2.0f, 1.0f, nan}), 1.0f);
  EXPECT_TRUE(std::signbit(reduce_values<float>(DataType::kFloat32, ReduceOp::kMin, {-0.0f, 0.0f})));
  EXPECT_FALSE(std::signbit(reduce_values<float>(DataType::kFloat32, ReduceOp::kMin, {0.0f, -0.0f})));
  EXPECT_EQ(reduce_values<int8_t>(DataType::kInt8, ReduceOp::kMin, {5, -7, 3}), -7);
  EXPECT_EQ(reduce_values<uint8_t>(DataType::kUint8, ReduceOp::kMin, {5, 249, 3}), 3);
}

// 3 · 5 · 7 · 100 = 10500 = 41 · 256 + 4. In half, 2047 · 3 = 6141 must not be rounded before it is
// multiplied by a third.
TEST(Arithmetic, ProductsWrapOrRoundOnce) {
  EXPECT_EQ(reduce_values<int8_t>(DataType::kInt8, ReduceOp::kProd, {3, 5, 7, 100}), 4);
  EXPECT_EQ(reduce_values<uint8_t>(DataType::kUint8, ReduceOp::kProd, {255, 255}), 1);
  EXPECT_EQ(reduce_values<int32_t>(DataType::kInt32, ReduceOp::kProd, {-3, 1 << 30}), 1 << 30);
  EXPECT_EQ(reduce_values<int64_t>(DataType::kInt64, ReduceOp::kProd, {-3, 7}), -21);
  const uint16_t result = reduce_values<uint16_t>(DataType::kFloat16, ReduceOp::kProd, {0x67ff, 0x4200, 0x3555});
  EXPECT_EQ(result, half_from_float(2047.0f * 3.0f * float_from_half(0x3555)));
  EXPECT_NE(result, half_from_float(float_from_half(half_from_float(2047.0f * 3.0f)) * float_from_half(0x3555)));
}

TEST(Arithmetic, AveragesScaleRawSourcesOnly) {
  const float values[] = {3.0f, 5.0f};
  const auto* bytes = reinterpret_cast<const std::byte*>(values);
  const Operand operands[] = {{bytes, false}, {bytes + 4, true}};
  float out = 0;
  reduce_piece({DataType::kFloat32, ReduceOp::kAvg, 4}, operands, true, 1, reinterpret_cast<std::byte*>(&out));
  EXPECT_EQ(out, 4.25f);
}

}  // namespace
}  // namespace talaria::sim
