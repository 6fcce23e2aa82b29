// Arith: element-wise reduction of 8-byte words, bit for bit what the host engine and the simulator compute.
//
// A Reducer takes the words of a step's sources in order (start, add, add, …) and yields the word to store (finish).
// 16-bit and 8-bit floats stay in f32 from the first source to the single rounding in finish(); integers wrap in their
// own type.
// Compiled with -fmad=false: a fused scale-and-add would round once where the host rounds twice.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/types.h"
#include "engine/device/ptx.cuh"

namespace talaria::device {

struct Half {};
struct Bfloat {};

template <class Format>
struct Float8 {};

// Avg: floating raw inputs are scaled by 1/n as they enter, integers divided by n at the end. PreMulSum: raw inputs are
// multiplied by `scalar`, an element in the lowest bytes, as they enter.
struct Scaling {
  double scale64;
  float scale32;
  uint32_t ranks;
  uint64_t scalar;
};

// The elements of a word, widened to the type they are accumulated in.
template <class T>
struct Lanes {
  using Wide = T;
  static constexpr int kCount = 8 / sizeof(T);
  __device__ static __forceinline__ void unpack(uint64_t bits, Wide (&out)[kCount]) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if constexpr (std::is_same_v<T, float>) {
        out[i] = __uint_as_float(static_cast<uint32_t>(bits >> 32 * i));
      } else if constexpr (std::is_same_v<T, double>) {
        out[i] = __longlong_as_double(static_cast<int64_t>(bits));
      } else {
        out[i] = static_cast<T>(bits >> 8 * sizeof(T) * i);
      }
    }
  }
  __device__ static __forceinline__ uint64_t pack(const Wide (&in)[kCount]) {
    uint64_t bits = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if constexpr (std::is_same_v<T, float>) {
        bits |= static_cast<uint64_t>(__float_as_uint(in[i])) << 32 * i;
      } else if constexpr (std::is_same_v<T, double>) {
        bits = static_cast<uint64_t>(__double_as_longlong(in[i]));
      } else {
        bits |= static_cast<uint64_t>(static_cast<std::make_unsigned_t<T>>(in[i])) << 8 * sizeof(T) * i;
      }
    }
    return bits;
  }
};

template <>
struct Lanes<Half> {
  using Wide = float;
  static constexpr int kCount = 4;
  __device__ static __forceinline__ void unpack(uint64_t bits, Wide (&out)[kCount]) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) out[i] = ptx::half_to_float(static_cast<uint16_t>(bits >> 16 * i));
  }
  __device__ static __forceinline__ uint64_t pack(const Wide (&in)[kCount]) {
    return ptx::floats_to_halves(in[0], in[1]) | static_cast<uint64_t>(ptx::floats_to_halves(in[2], in[3])) << 32;
  }
};

template <>
struct Lanes<Bfloat> {
  using Wide = float;
  static constexpr int kCount = 4;
  __device__ static __forceinline__ void unpack(uint64_t bits, Wide (&out)[kCount]) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      out[i] = __uint_as_float(static_cast<uint32_t>(static_cast<uint16_t>(bits >> 16 * i)) << 16);
    }
  }
  __device__ static __forceinline__ uint64_t pack(const Wide (&in)[kCount]) {
    return ptx::floats_to_bfloats(in[0], in[1]) | static_cast<uint64_t>(ptx::floats_to_bfloats(in[2], in[3])) << 32;
  }
};

template <class Format>
struct Lanes<Float8<Format>> {
  using Wide = float;
  static constexpr int kCount = 8;
  __device__ static __forceinline__ void unpack(uint64_t bits, Wide (&out)[kCount]) {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const ptx::FloatPair pair = ptx::float8s_to_floats<Format>(static_cast<uint16_t>(bits >> 8 * i));
      out[i] = pair.low;
      out[i + 1] = pair.high;
    }
  }
  __device__ static __forceinline__ uint64_t pack(const Wide (&in)[kCount]) {
    uint64_t bits = 0;
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      bits |= static_cast<uint64_t>(ptx::floats_to_float8s<Format>({in[i], in[i + 1]})) << 8 * i;
    }
    return bits;
  }
};

template <class Wide>
__device__ __forceinline__ Wide add_wrapping(Wide a, Wide b) {
  if constexpr (std::is_floating_point_v<Wide>) {
    return a + b;
  } else {
    using Unsigned = std::make_unsigned_t<Wide>;
    return static_cast<Wide>(static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
  }
}

template <class Wide>
__device__ __forceinline__ Wide multiply_wrapping(Wide a, Wide b) {
  if constexpr (std::is_floating_point_v<Wide>) {
    return a * b;
  } else {
    using Unsigned = std::make_unsigned_t<Wide>;
    return static_cast<Wide>(static_cast<Unsigned>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b)));
  }
}

// In Max and Min a NaN gives way to a number, whichever side it is on.
template <ReduceOp kOp, class Wide>
__device__ __forceinline__ Wide combine(Wide a, Wide b) {
  if constexpr (kOp == ReduceOp::kMax) return a != a ? b : b != b ? a : a < b ? b : a;
  else if constexpr (kOp == ReduceOp::kMin) return a != a ? b : b != b ? a : b < a ? b : a;
  else if constexpr (kOp == ReduceOp::kProd) return multiply_wrapping(a, b);
  else return add_wrapping(a, b);
}

template <class T, ReduceOp kOp>
class Reducer {
 public:
  static constexpr bool kCopies = false;
  static constexpr bool kMultiplies = kOp == ReduceOp::kPreMulSum;  // what comes from a send buffer is raw
  static constexpr bool kScales = kOp == ReduceOp::kAvg || kMultiplies;
  static constexpr bool kHeavy =  // needs many registers
      Lanes<T>::kCount > 2 || (sizeof(typename Lanes<T>::Wide) == 8 && kOp != ReduceOp::kSum);

  __device__ __forceinline__ void start(uint64_t bits, bool raw, const Scaling& scaling) {
    Lanes<T>::unpack(bits, value_);
    scale(value_, raw, scaling);
  }
  __device__ __forceinline__ void add(uint64_t bits, bool raw, const Scaling& scaling) {
    Wide next[kCount];
    Lanes<T>::unpack(bits, next);
    scale(next, raw, scaling);
#pragma unroll
    for (int i = 0; i < kCount; ++i) value_[i] = device::combine<kOp>(value_[i], next[i]);
  }
  __device__ __forceinline__ uint64_t finish(bool final, const Scaling& scaling) {
    if constexpr (kOp == ReduceOp::kAvg && !std::is_floating_point_v<Wide>) {
      if (final) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) value_[i] /= static_cast<Wide>(scaling.ranks);
      }
    }
    return Lanes<T>::pack(value_);
  }

 private:
  using Wide = typename Lanes<T>::Wide;
  static constexpr int kCount = Lanes<T>::kCount;

  __device__ static __forceinline__ void scale(Wide (&elements)[kCount], bool raw, const Scaling& scaling) {
    if constexpr (kMultiplies) {
      if (!raw) return;
      Wide factor[kCount];
      Lanes<T>::unpack(scaling.scalar, factor);
#pragma unroll
      for (int i = 0; i < kCount; ++i) elements[i] = multiply_wrapping(elements[i], factor[0]);
      if constexpr (!std::is_same_v<T, Wide>) Lanes<T>::unpack(Lanes<T>::pack(elements), elements);  // rounds
    } else if constexpr (kScales && std::is_floating_point_v<Wide>) {
      if (!raw) return;
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        if constexpr (std::is_same_v<Wide, double>) {
          elements[i] *= scaling.scale64;
        } else {
          elements[i] *= scaling.scale32;
        }
      }
    }
  }

  Wide value_[kCount];
};

// One-byte integers stay packed, four to a register.
template <class T, ReduceOp kOp>
  requires(std::is_integral_v<T> && sizeof(T) == 1)
class Reducer<T, kOp> {
 public:
  static constexpr bool kCopies = false;
  static constexpr bool kMultiplies = kOp == ReduceOp::kPreMulSum;  // what comes from a send buffer is raw
  static constexpr bool kScales = kOp == ReduceOp::kAvg || kMultiplies;
  static constexpr bool kHeavy = false;

  __device__ __forceinline__ void start(uint64_t bits, bool raw, const Scaling& scaling) {
    low_ = scaled(static_cast<uint32_t>(bits), raw, scaling);
    high_ = scaled(static_cast<uint32_t>(bits >> 32), raw, scaling);
  }
  __device__ __forceinline__ void add(uint64_t bits, bool raw, const Scaling& scaling) {
    low_ = combine(low_, scaled(static_cast<uint32_t>(bits), raw, scaling));
    high_ = combine(high_, scaled(static_cast<uint32_t>(bits >> 32), raw, scaling));
  }
  __device__ __forceinline__ uint64_t finish(bool final, const Scaling& scaling) {
    if constexpr (kOp == ReduceOp::kAvg) {
      if (final) low_ = divide(low_, scaling.ranks), high_ = divide(high_, scaling.ranks);
    }
    return low_ | static_cast<uint64_t>(high_) << 32;
  }

 private:
  __device__ static __forceinline__ uint32_t combine(uint32_t a, uint32_t b) {
    constexpr bool kSigned = std::is_signed_v<T>;
    if constexpr (kOp == ReduceOp::kMax) return kSigned ? __vmaxs4(a, b) : __vmaxu4(a, b);
    else if constexpr (kOp == ReduceOp::kMin) return kSigned ? __vmins4(a, b) : __vminu4(a, b);
    else if constexpr (kOp == ReduceOp::kProd) return multiply(a, b);
    else return __vadd4(a, b);
  }
  __device__ static __forceinline__ uint32_t scaled(uint32_t bits, bool raw, const Scaling& scaling) {
    if constexpr (kMultiplies) {
      if (raw) return multiply(bits, static_cast<uint8_t>(scaling.scalar) * 0x01010101u);
    }
    return bits;
  }
  // The low byte of a product does not depend on the signs.
  __device__ static __forceinline__ uint32_t multiply(uint32_t a, uint32_t b) {
    uint32_t products = 0;
#pragma unroll
    for (uint32_t shift = 0; shift < 32; shift += 8) products |= ((a >> shift) * (b >> shift) & 0xff) << shift;
    return products;
  }
  __device__ static __forceinline__ uint32_t divide(uint32_t bits, uint32_t ranks) {
    uint32_t quotients = 0;
#pragma unroll 1
    for (uint32_t shift = 0; shift < 32; shift += 8) {
      const int32_t quotient = static_cast<T>(bits >> shift) / static_cast<int32_t>(ranks);
      quotients |= (static_cast<uint32_t>(quotient) & 0xff) << shift;
    }
    return quotients;
  }

  uint32_t low_, high_;
};

// Moves a single source unchanged, NaN payloads included.
class Copier {
 public:
  static constexpr bool kCopies = true;
  static constexpr bool kMultiplies = false;
  static constexpr bool kScales = false;
  static constexpr bool kHeavy = false;
  __device__ __forceinline__ void start(uint64_t bits, bool, const Scaling&) { value_ = bits; }
  __device__ __forceinline__ void add(uint64_t bits, bool, const Scaling&) { value_ = bits; }
  __device__ __forceinline__ uint64_t finish(bool, const Scaling&) { return value_; }

 private:
  uint64_t value_;
};

}  // namespace talaria::device
