// PTX: the instructions C++ has no word for. The only file with inline assembly or architecture tests.
//
// Addresses are generic pointers into global memory (own, a peer's, or pinned host memory).
#pragma once

#include <cstdint>

#include "engine/float8.h"

namespace talaria::ptx {

struct alignas(16) Pair {
  uint64_t low;
  uint64_t high;
};

// Data that a peer may have stored during this kernel: never answered by L1, never merged or dropped. Each 8-byte half
// is single-copy atomic.
__device__ __forceinline__ Pair load_relaxed(const Pair* address) {
  Pair value;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(value.low), "=l"(value.high) : "l"(address));
  return value;
}
__device__ __forceinline__ uint64_t load_relaxed(const uint64_t* address) {
  uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(address));
  return value;
}
__device__ __forceinline__ uint32_t load_relaxed(const uint32_t* address) {
  uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(address));
  return value;
}
__device__ __forceinline__ void store_relaxed(Pair* address, Pair value) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(address), "l"(value.low), "l"(value.high)
               : "memory");
}
__device__ __forceinline__ void store_relaxed(uint64_t* address, uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}

__device__ __forceinline__ uint64_t load_acquire(const uint64_t* address) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
  return value;
}
__device__ __forceinline__ void store_release(uint64_t* address, uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}

// Payload whose visibility a later release (or the end of the kernel) provides.
__device__ __forceinline__ void store(Pair* address, Pair value) {
  asm volatile("st.global.v2.u64 [%0], {%1, %2};" ::"l"(address), "l"(value.low), "l"(value.high) : "memory");
}

// Named barriers: `threads` (a multiple of 32) threads of the block meet at barrier `id`.
__device__ __forceinline__ void barrier(uint32_t id, uint32_t threads) {
  asm volatile("barrier.sync.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
// The same; true for all of them when `value` is true for any.
__device__ __forceinline__ bool barrier_or(uint32_t id, uint32_t threads, bool value) {
  uint32_t result;
  asm volatile(
      "{\n\t.reg .pred in, out;\n\tsetp.ne.u32 in, %1, 0;\n\t"
      "barrier.red.or.pred.aligned out, %2, %3, in;\n\tselp.u32 %0, 1, 0, out;\n\t}"
      : "=r"(result)
      : "r"(static_cast<uint32_t>(value)), "r"(id), "r"(threads)
      : "memory");
  return result != 0;
}

__device__ __forceinline__ float half_to_float(uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
// Two values rounded to nearest even, `low` in the lower half.
__device__ __forceinline__ uint32_t floats_to_halves(float low, float high) {
  uint32_t bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}
__device__ __forceinline__ uint32_t floats_to_bfloats(float low, float high) {
  uint32_t bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}

// Two 8-bit floats (engine/float8.h), `low` in the lower byte; its format tells the type. GPUs before sm_89 have no
// instruction for them.
struct FloatPair {
  float low;
  float high;
};
template <class Format>
__device__ __forceinline__ FloatPair float8s_to_floats(uint16_t bits) {
#if __CUDA_ARCH__ >= 890
  uint32_t halves;
  if constexpr (Format::kMantissaBits == 3) asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(bits));
  else asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"(bits));
  return {half_to_float(static_cast<uint16_t>(halves)), half_to_float(static_cast<uint16_t>(halves >> 16))};
#else
  return {__uint_as_float(float32_from_float8<Format>(bits & 0xff)),
          __uint_as_float(float32_from_float8<Format>(bits >> 8))};
#endif
}
// Rounded to nearest even, saturated.
template <class Format>
__device__ __forceinline__ uint16_t floats_to_float8s(FloatPair pair) {
#if __CUDA_ARCH__ >= 890
  uint16_t bits;
  if constexpr (Format::kMantissaBits == 3) {
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(pair.high), "f"(pair.low));
  } else {
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(pair.high), "f"(pair.low));
  }
  return bits;
#else
  return static_cast<uint16_t>(float8_from_float32<Format>(__float_as_uint(pair.low)) |
                               float8_from_float32<Format>(__float_as_uint(pair.high)) << 8);
#endif
}

}  // namespace talaria::ptx
