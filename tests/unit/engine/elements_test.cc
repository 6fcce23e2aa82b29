#include "engine/host/elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>

namespace talaria {
namespace {

// The nearest of two neighbouring halves by exact double arithmetic; ties to the even one.
uint16_t nearest_half(float value) {
  uint16_t best = 0;
  double best_error = INFINITY;
  for (uint32_t bits = 0; bits < 0x7c00u; ++bits) {
    const double error = std::fabs(static_cast<double>(to_float(Half{static_cast<uint16_t>(bits)})) - std::fabs(value));
    if (error < best_error || (error == best_error && bits % 2 == 0))
      best = static_cast<uint16_t>(bits), best_error = error;
  }
  if (std::fabs(value) >= 65520.0f) best = 0x7c00u;
  return std::signbit(value) ? best | 0x8000u : best;
}

TEST(Half, EveryHalfSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const Half half{static_cast<uint16_t>(bits)};
    const float value = to_float(half);
    if (std::isnan(value)) {
      EXPECT_GT(to_half(value).bits & 0x7fffu, 0x7c00u);
    } else {
      EXPECT_EQ(to_half(value).bits, half.bits);
    }
  }
}

TEST(Half, RoundsToNearestEvenFromSubnormalToOverflow) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    const float value =
        std::ldexp(static_cast<float>(random()) / 2147483648.0f - 1.0f, static_cast<int>(random() % 46) - 28);
    EXPECT_EQ(to_half(value).bits, nearest_half(value)) << value;
  }
  EXPECT_EQ(to_half(1.0f + 0x1p-11f).bits, 0x3c00u);  // tie to even
  EXPECT_EQ(to_half(1.0f + 0x3p-11f).bits, 0x3c02u);  // tie to even, upwards
  EXPECT_EQ(to_half(65519.996f).bits, 0x7bffu);
  EXPECT_EQ(to_half(65520.0f).bits, 0x7c00u);
  EXPECT_EQ(to_half(0x1p-25f).bits, 0u);
  EXPECT_EQ(to_half(0x1.000002p-25f).bits, 1u);
}

TEST(Bfloat, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const float value = to_float(Bfloat{static_cast<uint16_t>(bits)});
    if (std::isnan(value)) continue;
    EXPECT_EQ(to_bfloat(value).bits, bits);
  }
  EXPECT_EQ(to_bfloat(1.0f + 0x1p-8f).bits, 0x3f80u);
  EXPECT_EQ(to_bfloat(1.0f + 0x3p-8f).bits, 0x3f82u);
}

// The value of an 8-bit float by its definition.
double value_of(uint32_t bits, int mantissa_bits, int bias) {
  const int exponent = static_cast<int>(bits >> mantissa_bits & ((1u << (7 - mantissa_bits)) - 1));
  const double fraction = std::ldexp(bits & ((1u << mantissa_bits) - 1), -mantissa_bits);
  const double magnitude = exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

template <class Format>
void expect_every_number_and_its_neighbourhood() {
  constexpr int kMantissa = Format::kMantissaBits, kBias = Format::kBias;
  for (uint32_t bits = 0; bits <= Format::kLargest; ++bits) {
    const float value = to_float(Float8<Format>{static_cast<uint8_t>(bits)});
    ASSERT_EQ(value, value_of(bits, kMantissa, kBias));
    ASSERT_EQ(to_float8<Format>(value).bits, bits);
    ASSERT_EQ(to_float8<Format>(-value).bits, bits | 0x80);
    if (bits == Format::kLargest) break;
    const float next = static_cast<float>(value_of(bits + 1, kMantissa, kBias)), middle = (value + next) / 2;
    ASSERT_EQ(to_float8<Format>(middle).bits, bits + (bits & 1)) << "a tie goes to the even one";
    ASSERT_EQ(to_float8<Format>(std::nextafterf(middle, value)).bits, bits);
    ASSERT_EQ(to_float8<Format>(std::nextafterf(middle, next)).bits, bits + 1);
  }
  for (const float large : {1e30f, HUGE_VALF}) {
    EXPECT_EQ(to_float8<Format>(large).bits, Format::kLargest) << "saturates";
    EXPECT_EQ(to_float8<Format>(-large).bits, Format::kLargest | 0x80);
  }
  EXPECT_TRUE(std::isnan(to_float(to_float8<Format>(std::nanf("")))));
  EXPECT_EQ(to_float8<Format>(1e-40f).bits, 0);
}

TEST(Float8, E4m3RoundsToNearestEvenAndSaturates) {
  expect_every_number_and_its_neighbourhood<E4m3>();
  EXPECT_EQ(to_float(Float8e4m3{0x7e}), 448.0f);
  EXPECT_TRUE(std::isnan(to_float(Float8e4m3{0xff})));
}

TEST(Float8, E5m2RoundsToNearestEvenAndSaturates) {
  expect_every_number_and_its_neighbourhood<E5m2>();
  EXPECT_EQ(to_float(Float8e5m2{0x7b}), 57344.0f);
  EXPECT_EQ(to_float(Float8e5m2{0xfc}), -HUGE_VALF);
  EXPECT_TRUE(std::isnan(to_float(Float8e5m2{0x7d})));
}

}  // namespace
}  // namespace talaria
