// Scalar reference arithmetic: the library's rounding rules, one element at a time, in the plainest code possible.
//
// A step reduces its sources left to right. f16, bf16 and the 8-bit types accumulate in f32 and are rounded to nearest
// even once per step; f32 and f64 are plain; integers wrap, in products too. Avg scales floating sources by 1/n where
// they are raw and divides integers by n where the step is final. PreMulSum multiplies a source that comes from a send
// buffer by its rank's scalar, and rounds the product to the type. Shared by the simulator and the oracle; deliberately
// shares nothing with the engines.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "base/types.h"

namespace talaria::sim {

inline float float_from_half(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, exponent = bits >> 10 & 31, mantissa = bits & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

inline uint16_t half_from_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffff;
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // 65520 and above round to infinity
  if (magnitude < 0x38800000) {                       // below 2^-14: a subnormal half counts units of 2^-24
    // Adding 0.5 leaves exactly the bits of one unit in the last place of the sum: the FPU rounds to nearest even.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f)));
  }
  const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return static_cast<uint16_t>(sign | (rounded - 0x38000000) >> 13);
}

inline float float_from_bfloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

inline uint16_t bfloat_from_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// An 8-bit float of so many mantissa bits: its value by the definition.
inline float float_from_float8(uint8_t bits, int mantissa_bits) {
  const int exponent_bits = 7 - mantissa_bits, bias = (1 << (exponent_bits - 1)) - 1, magnitude = bits & 0x7f;
  const int exponent = magnitude >> mantissa_bits, fraction = magnitude & ((1 << mantissa_bits) - 1);
  float value = std::ldexp(static_cast<float>(fraction + (exponent != 0 ? 1 << mantissa_bits : 0)),
                           std::max(exponent, 1) - bias - mantissa_bits);
  if (mantissa_bits == 3 && magnitude == 0x7f) value = std::nanf("");
  if (mantissa_bits == 2 && magnitude >= 0x7c) value = magnitude == 0x7c ? HUGE_VALF : std::nanf("");
  return (bits & 0x80) != 0 ? -value : value;
}

// The nearest one, the even of two that are equally near; the largest number for all that is larger.
inline uint8_t float8_from_float(float value, int mantissa_bits) {
  if (std::isnan(value)) return 0x7f;
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  const float magnitude = std::fabs(value);
  uint8_t low = 0, high = mantissa_bits == 3 ? 0x7e : 0x7b;
  if (magnitude >= float_from_float8(high, mantissa_bits)) return sign | high;
  while (low + 1 < high) {  // between which two?
    const uint8_t middle = static_cast<uint8_t>((low + high) / 2);
    (float_from_float8(middle, mantissa_bits) <= magnitude ? low : high) = middle;
  }
  const float below = magnitude - float_from_float8(low, mantissa_bits);
  const float above = float_from_float8(high, mantissa_bits) - magnitude;
  return static_cast<uint8_t>(sign | (below < above || (below == above && low % 2 == 0) ? low : high));
}

// One source of a step: where its elements lie, whether they are a rank's raw input, and, of PreMulSum, the scalar they
// are multiplied by, as an element; null: none.
struct Operand {
  const std::byte* data;
  bool raw;
  const std::byte* scalar = nullptr;
};

struct Reduction {
  DataType type;
  ReduceOp reduce;
  uint32_t nranks;  // n of Avg
};

namespace detail {

struct HalfCodec {
  using Stored = uint16_t;
  using Wide = float;
  static Wide widen(Stored bits) { return float_from_half(bits); }
  static Stored narrow(Wide value) { return half_from_float(value); }
};
struct BfloatCodec {
  using Stored = uint16_t;
  using Wide = float;
  static Wide widen(Stored bits) { return float_from_bfloat(bits); }
  static Stored narrow(Wide value) { return bfloat_from_float(value); }
};
template <int kMantissaBits>
struct Float8Codec {
  using Stored = uint8_t;
  using Wide = float;
  static Wide widen(Stored bits) { return float_from_float8(bits, kMantissaBits); }
  static Stored narrow(Wide value) { return float8_from_float(value, kMantissaBits); }
};
template <typename T>
struct PlainCodec {
  using Stored = T;
  using Wide = T;
  static Wide widen(Stored value) { return value; }
  static Stored narrow(Wide value) { return value; }
};

template <typename T>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else {
    return a + b;
  }
}

template <typename T>
T multiply(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

// A NaN gives way to a number; of two equal numbers the first stays.
template <typename T>
T extreme(T a, T b, bool largest) {
  if (a != a) return b;
  if (b != b) return a;
  return (largest ? a < b : b < a) ? b : a;
}

template <typename T>
T combine(ReduceOp reduce, T a, T b) {
  switch (reduce) {
    case ReduceOp::kProd: return multiply(a, b);
    case ReduceOp::kMax: return extreme(a, b, true);
    case ReduceOp::kMin: return extreme(a, b, false);
    default: return add(a, b);
  }
}

template <typename Stored>
Stored element_at(const std::byte* data, uint64_t i) {
  Stored stored;
  std::memcpy(&stored, data + i * sizeof(Stored), sizeof(Stored));
  return stored;
}

template <typename Codec>
void reduce(const Reduction& reduction, std::span<const Operand> sources, bool final, uint64_t count, std::byte* out) {
  using Wide = typename Codec::Wide;
  using Stored = typename Codec::Stored;
  const bool average = reduction.reduce == ReduceOp::kAvg;
  for (uint64_t i = 0; i < count; ++i) {
    Wide total{};
    for (size_t s = 0; s < sources.size(); ++s) {
      Wide value = Codec::widen(element_at<Stored>(sources[s].data, i));
      if (sources[s].scalar != nullptr) {
        value = Codec::widen(Codec::narrow(multiply(value, Codec::widen(element_at<Stored>(sources[s].scalar, 0)))));
      }
      if constexpr (std::is_floating_point_v<Wide>) {
        if (average && sources[s].raw) value = value * (Wide{1} / static_cast<Wide>(reduction.nranks));
      }
      total = s == 0 ? value : combine(reduction.reduce, total, value);
    }
    if constexpr (std::is_integral_v<Wide>) {
      if (average && final) {
        using Divisor = std::conditional_t<std::is_signed_v<Wide>, int64_t, uint64_t>;
        total = static_cast<Wide>(static_cast<Divisor>(total) / static_cast<Divisor>(reduction.nranks));
      }
    }
    const Stored result = Codec::narrow(total);
    std::memcpy(out + i * sizeof(Stored), &result, sizeof(Stored));
  }
}

}  // namespace detail

// out[i] = the reduction of sources[...][i]. A single source that nothing scales is moved as bytes.
inline void reduce_piece(const Reduction& reduction, std::span<const Operand> sources, bool final, uint64_t count,
                         std::byte* out) {
  if (sources.size() == 1 && reduction.reduce != ReduceOp::kAvg && sources[0].scalar == nullptr) {
    if (count != 0) std::memcpy(out, sources[0].data, count * bytes_of(reduction.type));
    return;
  }
  switch (reduction.type) {
    case DataType::kInt8: return detail::reduce<detail::PlainCodec<int8_t>>(reduction, sources, final, count, out);
    case DataType::kUint8: return detail::reduce<detail::PlainCodec<uint8_t>>(reduction, sources, final, count, out);
    case DataType::kInt32: return detail::reduce<detail::PlainCodec<int32_t>>(reduction, sources, final, count, out);
    case DataType::kUint32: return detail::reduce<detail::PlainCodec<uint32_t>>(reduction, sources, final, count, out);
    case DataType::kInt64: return detail::reduce<detail::PlainCodec<int64_t>>(reduction, sources, final, count, out);
    case DataType::kUint64: return detail::reduce<detail::PlainCodec<uint64_t>>(reduction, sources, final, count, out);
    case DataType::kFloat16: return detail::reduce<detail::HalfCodec>(reduction, sources, final, count, out);
    case DataType::kBfloat16: return detail::reduce<detail::BfloatCodec>(reduction, sources, final, count, out);
    case DataType::kFloat32: return detail::reduce<detail::PlainCodec<float>>(reduction, sources, final, count, out);
    case DataType::kFloat64: return detail::reduce<detail::PlainCodec<double>>(reduction, sources, final, count, out);
    case DataType::kFloat8e4m3: return detail::reduce<detail::Float8Codec<3>>(reduction, sources, final, count, out);
    case DataType::kFloat8e5m2: return detail::reduce<detail::Float8Codec<2>>(reduction, sources, final, count, out);
  }
}

}  // namespace talaria::sim
