// Stands in for src/engine/device/ptx.cuh: the same functions in C++.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "emulated/cuda.h"
#include "engine/float8.h"

namespace talaria::ptx {

struct alignas(16) Pair {
  uint64_t low;
  uint64_t high;
};

template <class T>
T load_atomic(const T* address, std::memory_order order) {
  emulated::maybe_yield();
  return std::atomic_ref(*const_cast<T*>(address)).load(order);
}

inline Pair load_relaxed(const Pair* address) {
  const uint64_t low = load_atomic(&address->low, std::memory_order_relaxed);
  return Pair{low, load_atomic(&address->high, std::memory_order_relaxed)};  // halves may be of different stores
}
inline uint64_t load_relaxed(const uint64_t* address) { return load_atomic(address, std::memory_order_relaxed); }
inline uint32_t load_relaxed(const uint32_t* address) { return load_atomic(address, std::memory_order_relaxed); }
inline uint64_t load_acquire(const uint64_t* address) { return load_atomic(address, std::memory_order_acquire); }
inline void store_relaxed(uint64_t* address, uint64_t value) {
  std::atomic_ref(*address).store(value, std::memory_order_release);
  emulated::maybe_yield();
}
inline void store_relaxed(Pair* address, Pair value) {
  store_relaxed(&address->high, value.high);
  store_relaxed(&address->low, value.low);
}
inline void store_release(uint64_t* address, uint64_t value) { store_relaxed(address, value); }
inline void store(Pair* address, Pair value) { store_relaxed(address, value); }

inline void barrier(uint32_t id, uint32_t threads) { emulated::barrier(id, threads, false); }
inline bool barrier_or(uint32_t id, uint32_t threads, bool value) { return emulated::barrier(id, threads, value); }

inline float half_to_float(uint16_t bits) { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
inline uint16_t float_to_half(float value) { return std::bit_cast<uint16_t>(static_cast<_Float16>(value)); }
inline uint16_t float_to_bfloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline uint32_t floats_to_halves(float low, float high) {
  return float_to_half(low) | static_cast<uint32_t>(float_to_half(high)) << 16;
}
inline uint32_t floats_to_bfloats(float low, float high) {
  return float_to_bfloat(low) | static_cast<uint32_t>(float_to_bfloat(high)) << 16;
}

struct FloatPair {
  float low;
  float high;
};
template <class Format>
FloatPair float8s_to_floats(uint16_t bits) {
  return {std::bit_cast<float>(float32_from_float8<Format>(bits & 0xff)),
          std::bit_cast<float>(float32_from_float8<Format>(bits >> 8))};
}
template <class Format>
uint16_t floats_to_float8s(FloatPair pair) {
  return static_cast<uint16_t>(float8_from_float32<Format>(std::bit_cast<uint32_t>(pair.low)) |
                               float8_from_float32<Format>(std::bit_cast<uint32_t>(pair.high)) << 8);
}

}  // namespace talaria::ptx
