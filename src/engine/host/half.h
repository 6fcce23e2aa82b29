// Conversions between f32 and the 16-bit floating types, round to nearest even. The scalar reference for the SIMD code.
#pragma once

#include <bit>
#include <cstdint>

namespace talaria {

struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};

inline float to_float(Half value) {
  const uint32_t sign = uint32_t{value.bits} << 16 & 0x80000000u;
  const uint32_t magnitude = value.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // infinity or NaN; a signalling NaN becomes quiet, as the hardware's conversion does
    const uint32_t quiet = magnitude > 0x7c00u ? 0x00400000u : 0;
    return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13 | quiet);
  }
  // Re-bias by a multiplication that is exact for normal and subnormal halves alike.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(scaled));
}

inline Half to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return Half{static_cast<uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu))};
  if (magnitude >= 0x477ff000u) return Half{static_cast<uint16_t>(sign | 0x7c00u)};  // rounds to 65536 or more
  if (magnitude < 0x38800000u) {
    // Subnormal: adding 0.5 leaves the rounded value, in units of 2^-24, in the low mantissa bits.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return Half{static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u))};
  }
  const uint32_t odd = magnitude >> 13 & 1u;
  return Half{static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13))};
}

inline float to_float(Bfloat value) { return std::bit_cast<float>(uint32_t{value.bits} << 16); }

inline Bfloat to_bfloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return Bfloat{static_cast<uint16_t>(0x7fffu)};  // NaN, as on the GPU
  return Bfloat{static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

}  // namespace talaria
