// Packet: data and flag travel in one 16-byte store {data32, tag32, data32, tag32}, so a message needs no fence, no
// barrier and no second trip. Each thread carries 8 payload bytes; a message has at least one packet.
//
// Each half is single-copy atomic and carries the tag, so a packet that is seen half is recognised (design §6 line 7).
#pragma once

#include "engine/device/move.cuh"
#include "engine/device/task.cuh"
#include "engine/device/wait.cuh"

namespace talaria::device {

inline constexpr uint32_t kWordBytes = 8;  // payload of a packet

__device__ __forceinline__ Pack make_packet(uint64_t word, uint32_t tag) {
  const uint64_t high = static_cast<uint64_t>(tag) << 32;
  return Pack{(word & 0xffffffffu) | high, word >> 32 | high};
}
__device__ __forceinline__ bool is_tagged(const Pack& packet, uint32_t tag) {
  return static_cast<uint32_t>(packet.low >> 32) == tag && static_cast<uint32_t>(packet.high >> 32) == tag;
}
__device__ __forceinline__ uint64_t payload_of(const Pack& packet) {
  return (packet.low & 0xffffffffu) | packet.high << 32;
}

// Packets of a message of that many bytes.
__device__ __forceinline__ uint32_t packets_of(uint64_t bytes) {
  return bytes == 0 ? 1 : static_cast<uint32_t>((bytes + kWordBytes - 1) / kWordBytes);
}
// Bytes of word `index` that exist: 8, fewer at the end, none in an empty message.
__device__ __forceinline__ uint32_t word_bytes(uint64_t message_bytes, uint32_t index) {
  const uint64_t begin = uint64_t{index} * kWordBytes;
  if (begin >= message_bytes) return 0;
  return message_bytes - begin < kWordBytes ? static_cast<uint32_t>(message_bytes - begin) : kWordBytes;
}

// A piece of user memory, as words.
struct UserPiece {
  std::byte* address;
  uint64_t bytes;
  bool misaligned;

  __device__ __forceinline__ uint64_t load(uint32_t index) const {
    const std::byte* from = address + uint64_t{index} * kWordBytes;
    const uint32_t count = word_bytes(bytes, index);
    if (count == kWordBytes && !misaligned) return ptx::load_relaxed(reinterpret_cast<const uint64_t*>(from));
    return count == 0 ? 0 : load_word(from, count);
  }
  __device__ __forceinline__ void store(uint32_t index, uint64_t word) const {
    std::byte* to = address + uint64_t{index} * kWordBytes;
    const uint32_t count = word_bytes(bytes, index);
    if (count == kWordBytes && !misaligned) *reinterpret_cast<uint64_t*>(to) = word;
    else if (count != 0) store_word(to, word, count);
  }
};

__device__ __forceinline__ UserPiece user_piece(const GroupMemory& memory, const Operand& operand) {
  return UserPiece{operand.address, memory.task.bytes, memory.task.misaligned};
}

__device__ __forceinline__ void store_word_to_sinks(const GroupMemory& memory, uint32_t index, uint64_t word) {
  const Task& task = memory.task;
#pragma unroll 1
  for (uint32_t d = 0; d < task.sinks; ++d) {
    const Operand operand = memory.operands[task.sources + d];
    if (operand.tag != 0) {
      ptx::store_relaxed(reinterpret_cast<Pack*>(operand.address) + index, make_packet(word, operand.tag));
    } else {
      user_piece(memory, operand).store(index, word);
    }
  }
}

// The payload of a packet, given the first look at it. False: the wait was ended.
__device__ __forceinline__ bool await_packet(const Pack* address, uint32_t tag, const uint32_t* abort_word, Pack look,
                                             uint64_t& word) {
  Patience patience;
  while (!is_tagged(look, tag)) {
    look = ptx::load_relaxed(address);
    if (patience.ends(abort_word)) return false;
  }
  word = payload_of(look);
  return true;
}

// The same for word `index` of a source. Sets `failed` when the wait is ended.
__device__ __forceinline__ uint64_t await_source(const GroupMemory& memory, const Operand& source, uint32_t index,
                                                 Pack look, bool& failed) {
  uint64_t word = 0;
  const Pack* address = reinterpret_cast<const Pack*>(source.address) + index;
  if (failed || await_packet(address, source.tag, memory.comm.abort_word, look, word)) return word;
  record_fault(memory.comm.fault, site_of(memory), FaultReason::kAborted, source.meta >> 8, Place::kInbox);
  failed = true;
  return 0;
}

// Word `index` of all sources, reduced. Up to four inboxes are looked at together.
template <class Reduce>
__device__ __forceinline__ uint64_t gather_word(const GroupMemory& memory, uint32_t index, bool& failed) {
  constexpr uint32_t kAhead = 4;
  const Task& task = memory.task;
  Reduce result;
#pragma unroll 1
  for (uint32_t s = 0; s < task.sources; s += kAhead) {
    Pack look[kAhead] = {};
#pragma unroll
    for (uint32_t j = 0; j < kAhead; ++j) {
      if (s + j < task.sources && memory.operands[s + j].tag != 0) {
        look[j] = ptx::load_relaxed(packs_of(memory, s + j) + index);
      }
    }
#pragma unroll
    for (uint32_t j = 0; j < kAhead; ++j) {
      if (s + j >= task.sources) break;
      const Operand operand = memory.operands[s + j];
      const uint64_t word = operand.tag != 0 ? await_source(memory, operand, index, look[j], failed)
                                             : user_piece(memory, operand).load(index);
      if (s + j == 0) result.start(word, operand.meta & kOperandRaw, memory.scaling);
      else result.add(word, operand.meta & kOperandRaw, memory.scaling);
    }
  }
  return result.finish(task.final, memory.scaling);
}

// Before the tags wrap around: no packet of this slot may keep a tag that a later message will wait for. The fence
// orders the zeroes before whatever tells the producer that the slot is free; once in 2³¹ messages.
__device__ __forceinline__ void zero_slots(const GroupMemory& memory, const Group& group, uint32_t slot_bytes) {
  group.sync();  // everybody has read
#pragma unroll 1
  for (uint32_t s = 0; s < memory.task.sources; ++s) {
    if ((memory.operands[s].meta & kOperandZero) == 0) continue;
#pragma unroll 1
    for (uint32_t i = group.thread; i < slot_bytes / kWordBytes; i += group.threads) {
      ptx::store_relaxed(packs_of(memory, s) + i, Pack{0, 0});
    }
  }
  __threadfence_system();
}

struct Packet {
  static constexpr bool kPackets = true;
  static constexpr uint32_t kAlignment = kWordBytes;

  template <class Reduce>
  __device__ static __forceinline__ bool run(GroupMemory& memory, const Group& group) {
    const Task& task = memory.task;
    const uint32_t words = packets_of(task.bytes);
    bool failed = false;
    if (task.copies) {
      copy(memory, group, words, failed);
    } else if constexpr (!Reduce::kCopies) {
#pragma unroll 1
      for (uint32_t index = group.thread; index < words && !failed; index += group.threads) {
        const uint64_t word = gather_word<Reduce>(memory, index, failed);
        if (!failed) store_word_to_sinks(memory, index, word);
      }
    }
    if (task.zeroes) zero_slots(memory, group, memory.comm.layout.channels[0].slot_bytes);
    return failed;
  }

  // A credit needs no fence: the group's loads of the slot have returned, their tags were compared.
  __device__ static __forceinline__ void signal(const Signal& signal) { ptx::store_relaxed(signal.word, signal.value); }

 private:
  // One source: several words are loaded before the first is stored.
  __device__ static __forceinline__ void copy(const GroupMemory& memory, const Group& group, uint32_t words,
                                              bool& failed) {
    constexpr uint32_t kUnroll = 2;
    const Operand source = memory.operands[0];
#pragma unroll 1
    for (uint32_t first = group.thread; first < words && !failed; first += kUnroll * group.threads) {
      Pack look[kUnroll] = {};
#pragma unroll
      for (uint32_t u = 0; u < kUnroll; ++u) {
        const uint32_t index = first + u * group.threads;
        if (index >= words) break;
        if (source.tag != 0) look[u] = ptx::load_relaxed(packs_of(memory, 0) + index);
        else look[u].low = user_piece(memory, source).load(index);
      }
#pragma unroll
      for (uint32_t u = 0; u < kUnroll; ++u) {
        const uint32_t index = first + u * group.threads;
        if (index >= words) break;
        uint64_t word = look[u].low;
        if (source.tag != 0) word = await_source(memory, source, index, look[u], failed);
        if (!failed) store_word_to_sinks(memory, index, word);
      }
    }
  }
};

}  // namespace talaria::device
