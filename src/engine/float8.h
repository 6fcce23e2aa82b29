// Conversions between the bits of f32 and of the 8-bit floating types, in integers alone: one text for CPUs and for
// GPUs whose hardware has none (before sm_89).
//
// To 8 bits: nearest even, infinities and what is too large become the largest number of their sign, as CUDA's
// conversions with saturation do. e4m3 has no infinity and one NaN, S.1111.111 (OCP 8-bit Floating Point, 1.0).
#pragma once

#include <cstdint>

#include "schedule/step.h"

namespace talaria {

template <uint32_t kMantissa, uint32_t kExponentBias, uint32_t kLargestNumber>
struct Float8Format {
  static constexpr uint32_t kMantissaBits = kMantissa;
  static constexpr uint32_t kBias = kExponentBias;
  static constexpr uint32_t kLargest = kLargestNumber;                 // above: infinity or NaN
  static constexpr uint32_t kInfinity = kMantissa == 2 ? 0x7c : 0xff;  // 0xff: there is none
  static constexpr uint32_t kDropped = 23 - kMantissa;                 // mantissa bits that f32 has more
  static constexpr uint32_t kSmallestNormal = (128 - kExponentBias) << 23;  // as f32
};
using E4m3 = Float8Format<3, 7, 0x7e>;
using E5m2 = Float8Format<2, 15, 0x7b>;

template <class Format>
TALARIA_HOST_DEVICE constexpr uint32_t float32_from_float8(uint32_t bits) {
  const uint32_t sign = (bits & 0x80) << 24, magnitude = bits & 0x7f;
  if (magnitude > Format::kLargest) return sign | (magnitude == Format::kInfinity ? 0x7f800000u : 0x7fc00000u);
  if (magnitude >> Format::kMantissaBits != 0) {
    return sign | ((magnitude << Format::kDropped) + ((127 - Format::kBias) << 23));
  }
  if (magnitude == 0) return sign;
  // Subnormal: the leading one moves up to where f32 leaves it out.
  const uint32_t leading = magnitude >= 4 ? 2 : magnitude >= 2 ? 1 : 0;
  const uint32_t exponent = 128 - Format::kBias - Format::kMantissaBits + leading;
  return sign | exponent << 23 | (magnitude << (23 - leading) & 0x7fffffu);
}

template <class Format>
TALARIA_HOST_DEVICE constexpr uint32_t float8_from_float32(uint32_t bits) {
  const uint32_t sign = bits >> 24 & 0x80, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7f;
  uint32_t significand = magnitude, dropped = Format::kDropped;
  if (magnitude >= Format::kSmallestNormal) {
    significand -= Format::kSmallestNormal - (1u << 23);
  } else {
    const uint32_t below = (Format::kSmallestNormal >> 23) - (magnitude >> 23);
    if (below > Format::kMantissaBits + 1) return sign;  // less than half of the smallest number
    significand = (magnitude & 0x7fffffu) | 1u << 23;
    dropped += below;
  }
  const uint32_t odd = significand >> dropped & 1u;
  const uint32_t rounded = (significand + (1u << (dropped - 1)) - 1 + odd) >> dropped;
  return sign | (rounded < Format::kLargest ? rounded : Format::kLargest);
}

}  // namespace talaria
