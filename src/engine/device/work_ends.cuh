// Work ends: what happens once per work, before its first step and after its last: fetching it, crediting what earlier
// works consumed, acknowledging by implication.
#pragma once

#include <cstdint>

#include "engine/device/control.cuh"
#include "engine/device/task.cuh"

namespace talaria::device {

// A struct as words, one per thread of a warp: loads of several structs are under way together when all are fetched
// before the first is stored.
template <class T>
struct Fetched {
  static_assert(sizeof(T) % sizeof(uint64_t) == 0 && sizeof(T) <= kWarp * sizeof(uint64_t));
  static constexpr uint32_t kWords = sizeof(T) / sizeof(uint64_t);
  uint64_t word = 0;
  __device__ __forceinline__ void load(const T& from) {
    if (threadIdx.x % kWarp < kWords) word = reinterpret_cast<const uint64_t*>(&from)[threadIdx.x % kWarp];
  }
  __device__ __forceinline__ void store(T& to) const {
    if (threadIdx.x % kWarp < kWords) reinterpret_cast<uint64_t*>(&to)[threadIdx.x % kWarp] = word;
  }
};

__device__ __forceinline__ uint32_t steps_of(const StreamView& stream) {
  return stream.prologue + stream.body + stream.epilogue;
}

// Of a collective, stream 0 handles the ends of all streams. Streams of point-to-point works do not wait for each
// other, so the one that has the steps handles its own FIFOs.
__device__ __forceinline__ bool owns_ends(const Work& work, const Group& group) {
  uint32_t owner = 0;
  if (!work.join) {
    while (owner + 1 < work.plan.nstreams && steps_of(work.plan.streams[owner]) == 0) ++owner;
  }
  return group.index == owner;
}

// Credits everything received on the FIFOs that one-way operations leave unacknowledged (design §6 line 6).
__device__ __forceinline__ void credit_earlier_works(const GroupMemory& memory, const PeerUse& use) {
  for (uint32_t f = 0; f < kFifosPerPair; ++f) {
    if ((use.credit_at_start >> f & 1) == 0) continue;
    const Ref ref{Place::kInbox, 0, static_cast<uint8_t>(f), 0, use.peer};
    const Fifo fifo(memory, ref, memory.lane);
    // The loads of those messages ended with the works that consumed them: no fence.
    ptx::store_relaxed(fifo.peer_credit(), fifo.state().received);
  }
}

__device__ __forceinline__ void use_peer(GroupMemory& memory, const Group& group, const PeerUse& use) {
  const uint32_t depth = memory.comm.layout.channels[memory.work.channel].depth;
  for (uint32_t f = 0; f < kFifosPerPair; ++f) {
    const uint32_t bit = use.peer * kFifosPerPair + f;
    if (bit < 128 && credits_each_slot(use.receives[f], memory.work.chunking.rounds, depth)) {
      atomicOr(&memory.credit_each_slot[bit / 32], 1u << bit % 32);
    }
  }
  if (use.credit_at_start != 0 && owns_ends(memory.work, group)) credit_earlier_works(memory, use);
}

// memory.work has just been fetched: its first steps and refs, its credits. True: some FIFO was credited.
__device__ __forceinline__ bool begin_work(GroupMemory& memory, const Group& group, bool scales) {
  const Work& work = memory.work;
  const PlanView& plan = work.plan;
  const StreamView stream = group.index < plan.nstreams ? plan.streams[group.index] : StreamView{};
  const uint32_t i = group.thread;
  // All loads before all stores: they must be under way together, this is the way to the first byte of a message.
  Step step{};
  Ref refs[2] = {};
  PeerUse use{};
  if (i < steps_of(stream)) step = plan.steps[stream.first + i];
  if (i < plan.nrefs) refs[0] = plan.refs[i];
  if (i + kWarp < plan.nrefs) refs[1] = plan.refs[i + kWarp];
  if (i < plan.npeers) use = plan.peers[i];
  if (i < 4) memory.credit_each_slot[i] = 0;
  if (i == 0) {
    memory.cursor.step = memory.cursor.round = memory.cursor.step_window = 0;
    memory.cursor.ref_window = plan.nrefs != 0 ? 0 : ~0u;
    if (scales) memory.scaling = scaling_of(work);
  }
  __syncwarp();
  memory.steps[i] = step;
  memory.refs[i] = refs[0];
  memory.refs[i + kWarp] = refs[1];
  bool credited = false;
  for (uint32_t p = i; p < plan.npeers; p += kWarp) {
    if (p != i) use = plan.peers[p];
    use_peer(memory, group, use);
    credited |= use.credit_at_start != 0;
  }
  __syncwarp();
  return __any_sync(0xffffffffu, credited);
}

// Implied acknowledgement (design §6 line 5): who sent me its share of this collective had finished the one before, so
// it has consumed what I had sent until this one began. FifoState::reserved holds that count: `sent` as the last
// collective left it. Counters of point-to-point FIFOs are never acknowledged so.
__device__ inline void acknowledge(const GroupMemory& memory, const Group& group) {
  const PlanView& plan = memory.work.plan;
  for (uint32_t i = group.thread; i < plan.npeers; i += kWarp) {
    const PeerUse use = plan.peers[i];
    for (uint32_t f = 0; f < kFifosPerPair; ++f) {
      FifoState& state = memory.comm.fifos[memory.work.channel][memory.comm.layout.fifo_index(
          memory.work.channel, use.peer, memory.lane, f)];
      const uint64_t sent_at_start = state.reserved;
      if (use.implied_ack) state.acked = sent_at_start;
      state.reserved = state.sent;
    }
  }
  __syncwarp();
}

// Test hook: one wrong bit in the result, where element 0 is (lane 0 wrote it).
__device__ __forceinline__ void flip_result(const GroupMemory& memory, const Group& group) {
  if (!memory.work.flip || memory.lane != 0 || group.thread != 0) return;
  if (memory.work.output == nullptr || memory.work.chunking.total_elements == 0) return;
  flip_bit(memory.work.output);
}

}  // namespace talaria::device
