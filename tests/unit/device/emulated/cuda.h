// A GPU block on one CPU thread: its threads are fibers, so that the device code itself runs in tests without a GPU.
//
// Included before the kernels (-include). Fibers switch at barriers and, at random, at memory accesses; blocks are
// operating-system threads. It shows wrong logic and deadlocks, not weak memory: the CPU's ordering is strong.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <functional>

#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static thread_local

namespace emulated {

struct Index {
  uint32_t x;
};

// Runs `body` as threads [0, threads) of block `block`. Gives up (returns false) when no thread can go on until `stop`.
bool run_block(uint32_t block, uint32_t threads, uint64_t seed, const std::atomic<bool>& stop,
               const std::function<void()>& body);

// Lets other fibers and other blocks run.
void yield();
// The same, now and then.
void maybe_yield();
// Barrier `id` of the block; true for all when `value` is true for any.
bool barrier(uint32_t id, uint32_t threads, bool value);
bool warp_or(bool value);

}  // namespace emulated

extern thread_local emulated::Index threadIdx, blockIdx, blockDim;

inline void __syncwarp() { emulated::warp_or(false); }
inline void __syncthreads() { emulated::barrier(0, blockDim.x, false); }
inline bool __any_sync(uint32_t, bool value) { return emulated::warp_or(value); }
inline bool __all_sync(uint32_t, bool value) { return !emulated::warp_or(!value); }
inline void __threadfence_system() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline uint32_t atomicCAS(uint32_t* address, uint32_t expected, uint32_t desired) {
  std::atomic_ref(*address).compare_exchange_strong(expected, desired);
  return expected;
}
inline uint32_t atomicOr(uint32_t* address, uint32_t bits) { return std::atomic_ref(*address).fetch_or(bits); }

inline float __uint_as_float(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t __float_as_uint(float value) { return std::bit_cast<uint32_t>(value); }
inline double __longlong_as_double(int64_t bits) { return std::bit_cast<double>(bits); }
inline int64_t __double_as_longlong(double value) { return std::bit_cast<int64_t>(value); }

template <class Lane, class Combine>
uint32_t each_byte(uint32_t a, uint32_t b, Combine combine) {
  uint32_t result = 0;
  for (int shift = 0; shift < 32; shift += 8) {
    const Lane value = combine(static_cast<Lane>(a >> shift), static_cast<Lane>(b >> shift));
    result |= static_cast<uint32_t>(static_cast<uint8_t>(value)) << shift;
  }
  return result;
}
inline uint32_t __vadd4(uint32_t a, uint32_t b) {
  return each_byte<uint8_t>(a, b, [](int x, int y) { return static_cast<uint8_t>(x + y); });
}
inline uint32_t __vmaxs4(uint32_t a, uint32_t b) {
  return each_byte<int8_t>(a, b, [](int x, int y) { return static_cast<int8_t>(x < y ? y : x); });
}
inline uint32_t __vmins4(uint32_t a, uint32_t b) {
  return each_byte<int8_t>(a, b, [](int x, int y) { return static_cast<int8_t>(y < x ? y : x); });
}
inline uint32_t __vminu4(uint32_t a, uint32_t b) {
  return each_byte<uint8_t>(a, b, [](int x, int y) { return static_cast<uint8_t>(y < x ? y : x); });
}
inline uint32_t __vmaxu4(uint32_t a, uint32_t b) {
  return each_byte<uint8_t>(a, b, [](int x, int y) { return static_cast<uint8_t>(x < y ? y : x); });
}
