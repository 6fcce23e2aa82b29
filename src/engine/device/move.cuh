// Move: a warp group gathers the sources of a task, reduces them, and writes the result to its sinks, 16 bytes (a pack)
// per thread and access. Knows nothing of flags.
//
// Loads are ld.relaxed.sys throughout: inbox slots are rewritten during the kernel, and L1 would answer with the past.
// Several are in flight before the first store, since a link needs some 300 KB under way to be full.
#pragma once

#include <cstdint>

#include "engine/device/arith.cuh"
#include "engine/device/pack.cuh"
#include "engine/device/task.cuh"

namespace talaria::device {

using Pack = ptx::Pair;
inline constexpr uint32_t kPackBytes = sizeof(Pack);

__device__ __forceinline__ Pack* packs_of(const GroupMemory& memory, uint32_t operand) {
  return reinterpret_cast<Pack*>(memory.operands[operand].address);
}

// kSinks addresses in registers, or any number read from shared memory at each use (kSinks == 0).
template <uint32_t kSinks>
struct Sinks {
  Pack* address[kSinks];
  __device__ __forceinline__ explicit Sinks(const GroupMemory& memory) {
#pragma unroll
    for (uint32_t d = 0; d < kSinks; ++d) address[d] = packs_of(memory, memory.task.sources + d);
  }
  __device__ __forceinline__ void store(uint32_t index, Pack value) const {
#pragma unroll
    for (uint32_t d = 0; d < kSinks; ++d) ptx::store(address[d] + index, value);
  }
};
template <>
struct Sinks<0> {
  const GroupMemory& memory;
  __device__ __forceinline__ explicit Sinks(const GroupMemory& group_memory) : memory(group_memory) {}
  __device__ __forceinline__ void store(uint32_t index, Pack value) const {
#pragma unroll 1
    for (uint32_t d = 0; d < memory.task.sinks; ++d)
      ptx::store(packs_of(memory, memory.task.sources + d) + index, value);
  }
};

// One source, aligned: packs [0, count).
template <uint32_t kSinks>
__device__ __forceinline__ void copy_packs(const GroupMemory& memory, const Group& group, uint32_t count) {
  constexpr uint32_t kUnroll = kSinks == 1 ? 6 : 4;  // what 64 registers hold
  const Pack* source = packs_of(memory, 0);
  const Sinks<kSinks> sinks(memory);
#pragma unroll 1
  for (uint32_t first = group.thread; first < count; first += kUnroll * group.threads) {
    Pack value[kUnroll] = {};  // initialised, or it would be alive across iterations
#pragma unroll
    for (uint32_t u = 0; u < kUnroll; ++u) {
      if (first + u * group.threads < count) value[u] = ptx::load_relaxed(source + first + u * group.threads);
    }
#pragma unroll
    for (uint32_t u = 0; u < kUnroll; ++u) {
      if (first + u * group.threads < count) sinks.store(first + u * group.threads, value[u]);
    }
  }
}

template <class Reduce>
__device__ __forceinline__ uint64_t reduce_two(const GroupMemory& memory, uint64_t a, uint64_t b) {
  Reduce word;
  word.start(a, memory.operands[0].meta & kOperandRaw, memory.scaling);
  word.add(b, memory.operands[1].meta & kOperandRaw, memory.scaling);
  return word.finish(memory.task.final, memory.scaling);
}

// Two sources, aligned.
template <class Reduce, uint32_t kSinks>
__device__ __forceinline__ void reduce_two_packs(const GroupMemory& memory, const Group& group, uint32_t count) {
  constexpr uint32_t kUnroll = kSinks == 1 && !Reduce::kHeavy ? 3 : 2;  // what 64 registers hold
  const Pack* first_source = packs_of(memory, 0);
  const Pack* second_source = packs_of(memory, 1);
  const Sinks<kSinks> sinks(memory);
#pragma unroll 1
  for (uint32_t first = group.thread; first < count; first += kUnroll * group.threads) {
    Pack a[kUnroll] = {}, b[kUnroll] = {};
#pragma unroll
    for (uint32_t u = 0; u < kUnroll; ++u) {
      const uint32_t index = first + u * group.threads;
      if (index < count)
        a[u] = ptx::load_relaxed(first_source + index), b[u] = ptx::load_relaxed(second_source + index);
    }
#pragma unroll
    for (uint32_t u = 0; u < kUnroll; ++u) {
      const uint32_t index = first + u * group.threads;
      if (index >= count) break;
      const uint64_t low = reduce_two<Reduce>(memory, a[u].low, b[u].low);
      sinks.store(index, Pack{low, reduce_two<Reduce>(memory, a[u].high, b[u].high)});
    }
  }
}

// Any number of sources, aligned; four loads in flight.
template <class Reduce>
__device__ __forceinline__ void reduce_packs(const GroupMemory& memory, const Group& group, uint32_t count) {
  constexpr uint32_t kAhead = 4;
  const uint32_t sources = memory.task.sources;
#pragma unroll 1
  for (uint32_t index = group.thread; index < count; index += group.threads) {
    Reduce low, high;
#pragma unroll 1
    for (uint32_t s = 0; s < sources; s += kAhead) {
      Pack value[kAhead] = {};
#pragma unroll
      for (uint32_t j = 0; j < kAhead; ++j) {
        if (s + j < sources) value[j] = ptx::load_relaxed(packs_of(memory, s + j) + index);
      }
#pragma unroll
      for (uint32_t j = 0; j < kAhead; ++j) {
        if (s + j >= sources) break;
        const bool raw = memory.operands[s + j].meta & kOperandRaw;
        if (s + j == 0) {
          low.start(value[j].low, raw, memory.scaling), high.start(value[j].high, raw, memory.scaling);
        } else {
          low.add(value[j].low, raw, memory.scaling), high.add(value[j].high, raw, memory.scaling);
        }
      }
    }
    const bool final = memory.task.final;
    Sinks<0>(memory).store(index, Pack{low.finish(final, memory.scaling), high.finish(final, memory.scaling)});
  }
}

__device__ __forceinline__ uint64_t load_any(const Operand& operand, uint64_t offset, uint32_t bytes) {
  const std::byte* address = operand.address + offset;
  if (operand.meta & kOperandInbox) return ptx::load_relaxed(reinterpret_cast<const uint64_t*>(address));
  return load_word(address, bytes);
}
__device__ __forceinline__ void store_any(const Operand& operand, uint64_t offset, uint64_t word, uint32_t bytes) {
  std::byte* address = operand.address + offset;
  if (operand.meta & kOperandInbox) return ptx::store_relaxed(reinterpret_cast<uint64_t*>(address), word);
  store_word(address, word, bytes);
}

// Any alignment, any number of sources and sinks: bytes [begin, task.bytes), a word per thread. Slow and exact; serves
// user buffers that are only element-aligned, and the last bytes of the others.
template <class Reduce>
__device__ __forceinline__ void reduce_words(const GroupMemory& memory, const Group& group, uint64_t begin) {
  const Task& task = memory.task;
#pragma unroll 1
  for (uint64_t offset = begin + 8 * group.thread; offset < task.bytes; offset += 8 * group.threads) {
    const uint32_t bytes = task.bytes - offset < 8 ? static_cast<uint32_t>(task.bytes - offset) : 8;
    Reduce word;
#pragma unroll 1
    for (uint32_t s = 0; s < task.sources; ++s) {
      const Operand operand = memory.operands[s];
      const uint64_t bits = load_any(operand, offset, bytes);
      if (s == 0) word.start(bits, operand.meta & kOperandRaw, memory.scaling);
      else word.add(bits, operand.meta & kOperandRaw, memory.scaling);
    }
    const uint64_t result = word.finish(task.final, memory.scaling);
#pragma unroll 1
    for (uint32_t d = 0; d < task.sinks; ++d) store_any(memory.operands[task.sources + d], offset, result, bytes);
  }
}

template <class Reduce>
__device__ __forceinline__ void move_by_copying(const GroupMemory& memory, const Group& group, uint32_t packs) {
  if (memory.task.sinks == 1) copy_packs<1>(memory, group, packs);
  else if (memory.task.sinks == 2) copy_packs<2>(memory, group, packs);
  else copy_packs<0>(memory, group, packs);
}

template <class Reduce>
__device__ __forceinline__ void move_by_reducing(const GroupMemory& memory, const Group& group, uint32_t packs) {
  const Task& task = memory.task;
  if (task.sources == 2 && task.sinks == 1) reduce_two_packs<Reduce, 1>(memory, group, packs);
  else if (task.sources == 2 && task.sinks == 2) reduce_two_packs<Reduce, 2>(memory, group, packs);
  else reduce_packs<Reduce>(memory, group, packs);
}

// The whole task.
template <class Reduce>
__device__ __forceinline__ void move(const GroupMemory& memory, const Group& group) {
  const Task& task = memory.task;
  const uint32_t packs = task.misaligned ? 0 : static_cast<uint32_t>(task.bytes / kPackBytes);
  const uint64_t rest = uint64_t{packs} * kPackBytes;
  if (task.copies) {
    // In place: the data is where it belongs.
    if (task.sinks == 1 && packs_of(memory, 0) == packs_of(memory, 1)) return;
    move_by_copying<Copier>(memory, group, packs);
    if (rest < task.bytes) reduce_words<Copier>(memory, group, rest);
  } else if constexpr (!Reduce::kCopies) {
    move_by_reducing<Reduce>(memory, group, packs);
    if (rest < task.bytes) reduce_words<Reduce>(memory, group, rest);
  }
}

}  // namespace talaria::device
