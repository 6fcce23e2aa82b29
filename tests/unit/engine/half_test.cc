#include "engine/host/half.h"

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

}  // namespace
}  // namespace talaria
