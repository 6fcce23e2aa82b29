// Elements: the C++ type of each datatype, and conversions between f32 and the small floating types, to nearest even.
// The scalar reference for the SIMD code.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "base/types.h"
#include "engine/float8.h"

namespace talaria {

struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};
template <class Format>
struct Float8 {
  uint8_t bits;
};
using Float8e4m3 = Float8<E4m3>;
using Float8e5m2 = Float8<E5m2>;

// One row per datatype.
template <typename T, DataType type>
struct ElementRow {
  using Type = T;
  static constexpr DataType kType = type;
};
template <typename... Rows>
struct ElementRows {};
using AllElements =
    ElementRows<ElementRow<int8_t, DataType::kInt8>, ElementRow<uint8_t, DataType::kUint8>,
                ElementRow<int32_t, DataType::kInt32>, ElementRow<uint32_t, DataType::kUint32>,
                ElementRow<int64_t, DataType::kInt64>, ElementRow<uint64_t, DataType::kUint64>,
                ElementRow<Half, DataType::kFloat16>, ElementRow<float, DataType::kFloat32>,
                ElementRow<double, DataType::kFloat64>, ElementRow<Bfloat, DataType::kBfloat16>,
                ElementRow<Float8e4m3, DataType::kFloat8e4m3>, ElementRow<Float8e5m2, DataType::kFloat8e5m2>>;

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

template <class Format>
float to_float(Float8<Format> value) {
  return std::bit_cast<float>(float32_from_float8<Format>(value.bits));
}

template <class Format>
Float8<Format> to_float8(float value) {
  return {static_cast<uint8_t>(float8_from_float32<Format>(std::bit_cast<uint32_t>(value)))};
}

// The types whose sums are kept in f32.
template <typename T>
concept SmallFloat = requires(T value) { to_float(value); };

template <SmallFloat T>
T narrow(float value) {
  if constexpr (std::is_same_v<T, Half>) return to_half(value);
  else if constexpr (std::is_same_v<T, Bfloat>) return to_bfloat(value);
  else if constexpr (std::is_same_v<T, Float8e4m3>) return to_float8<E4m3>(value);
  else return to_float8<E5m2>(value);
}

}  // namespace talaria
