// Pack: reading and writing user memory in 8-byte words whatever its alignment, without touching a byte beyond `bytes`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace talaria::device {

// Bytes [0, bytes) of a word as units of T; bytes and the address are multiples of sizeof(T).
template <class T>
__device__ __forceinline__ uint64_t load_units(const std::byte* address, uint32_t bytes) {
  uint64_t word = 0;
#pragma unroll
  for (uint32_t i = 0; i < 8; i += sizeof(T)) {
    if (i < bytes) word |= static_cast<uint64_t>(*reinterpret_cast<const T*>(address + i)) << 8 * i;
  }
  return word;
}
template <class T>
__device__ __forceinline__ void store_units(std::byte* address, uint64_t word, uint32_t bytes) {
#pragma unroll
  for (uint32_t i = 0; i < 8; i += sizeof(T)) {
    if (i < bytes) *reinterpret_cast<T*>(address + i) = static_cast<T>(word >> 8 * i);
  }
}

// bytes in 1…8; missing bytes read as zero. The widest unit that both address and length allow. Not inlined: the slow
// way of many callers, whose fast way must stay short.
__device__ __attribute__((noinline)) inline uint64_t load_word(const std::byte* address, uint32_t bytes) {
  const uint32_t odd = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(address)) | bytes;
  if (odd & 1) return load_units<uint8_t>(address, bytes);
  if (odd & 2) return load_units<uint16_t>(address, bytes);
  if (odd & 4) return load_units<uint32_t>(address, bytes);
  return *reinterpret_cast<const uint64_t*>(address);
}
__device__ __attribute__((noinline)) inline void store_word(std::byte* address, uint64_t word, uint32_t bytes) {
  const uint32_t odd = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(address)) | bytes;
  if (odd & 1) return store_units<uint8_t>(address, word, bytes);
  if (odd & 2) return store_units<uint16_t>(address, word, bytes);
  if (odd & 4) return store_units<uint32_t>(address, word, bytes);
  *reinterpret_cast<uint64_t*>(address) = word;
}

}  // namespace talaria::device
