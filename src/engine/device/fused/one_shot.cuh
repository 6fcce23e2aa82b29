// One-shot all-reduce in a single round of packets: the plan of algorithm one_shot without the interpreter.
//
// From the first instruction to the first store there are two dependent trips to memory (the communicator; then peers
// and counters, with the input beside them) and one barrier. Same messages and counters as the interpreter's.
#pragma once

#include <cstdint>

#include "engine/device/control.cuh"
#include "engine/device/fused/fused_path.h"
#include "engine/device/packet.cuh"
#include "engine/device/wait.cuh"

namespace talaria::device {

struct OneShotPeer {
  Pack* sink;          // my slot in the peer's mailbox
  const Pack* source;  // the peer's slot in mine
  uint32_t sink_tag;
  uint32_t source_tag;
};

struct OneShotMemory {
  OneShotPeer peers[kMaxFusedRanks];
  uint32_t rank;
  uint32_t nranks;
  uint32_t slot_bytes;
  bool failed;
  bool zeroes;  // the tags are about to wrap: consumed slots are zeroed
};

// First warp, one thread per peer: what interpreting the two steps and the work's ends would do to the counters.
// False: no credit came.
__device__ __forceinline__ bool join_peer(const DeviceComm& comm, uint32_t lane, uint32_t peer, OneShotPeer& out) {
  constexpr uint32_t kChannel = 0;
  const ChannelLayout& layout = comm.layout.channels[kChannel];
  const uint64_t theirs = comm.layout.fifo_index(kChannel, peer, lane, 0);
  const uint64_t mine = comm.layout.fifo_index(kChannel, comm.rank, lane, 0);
  FifoState& state = comm.fifos[kChannel][theirs];
  FifoState& other = comm.fifos[kChannel][theirs + 1];  // FIFO 1 is acknowledged as well
  std::byte* mailbox = comm.peers[peer];
  const uint64_t sent = state.sent, acked = state.acked, received = state.received;
  const uint64_t other_sent = other.sent, other_at_start = other.reserved;
  state.sent = state.reserved = sent + 1;
  state.acked = sent;
  state.received = received + 1;
  other.acked = other_at_start;
  other.reserved = other_sent;

  const uint64_t in = layout.slots + (theirs * layout.depth + (received & (layout.depth - 1))) * layout.slot_stride;
  const uint64_t to = layout.slots + (mine * layout.depth + (sent & (layout.depth - 1))) * layout.slot_stride;
  out.sink = reinterpret_cast<Pack*>(mailbox + to);
  out.source = reinterpret_cast<const Pack*>(comm.mailbox + in);
  out.sink_tag = packet_tag(sent);
  out.source_tag = packet_tag(received);
  if (sent - acked < layout.depth) return true;
  const uint64_t credits = comm.layout.fifo_index(kChannel, comm.nranks, 0, 0);
  const std::byte* credit = comm.mailbox + layout.flags + (credits + theirs) * kFlagStride;
  return wait_at_least(comm.abort_word, reinterpret_cast<const uint64_t*>(credit), sent + 1 - layout.depth);
}

__device__ __forceinline__ void join_peers(const DeviceComm& comm, const Work& work, uint32_t lane,
                                           OneShotMemory& memory) {
  const uint32_t peer = threadIdx.x;
  const uint32_t depth = comm.layout.channels[0].depth;
  bool failed = false, zeroes = false;
  if (peer < comm.nranks && peer != comm.rank) {
    OneShotPeer& out = memory.peers[peer];
    failed = !join_peer(comm, lane, peer, out);
    zeroes = packet_zeroes_slot(out.source_tag - 1, depth);
    if (failed) {
      record_fault(comm.fault, WaitSite{lane, work.plan.streams[0].first, work.sequence}, FaultReason::kAborted, peer,
                   Place::kInbox);
    }
  }
  __syncwarp();
  failed = __any_sync(0xffffffffu, failed);
  zeroes = __any_sync(0xffffffffu, zeroes);
  if (threadIdx.x == 0) {
    memory.rank = comm.rank;
    memory.nranks = comm.nranks;
    memory.slot_bytes = comm.layout.channels[0].slot_bytes;
    memory.failed = failed;
    memory.zeroes = zeroes;
  }
}

// A word of the send buffer as the other ranks get it: PreMulSum multiplies here.
template <class Reduce>
__device__ __forceinline__ uint64_t load_input(const UserPiece& input, uint32_t index, const Scaling& scaling) {
  const uint64_t word = input.load(index);
  if constexpr (!Reduce::kMultiplies) return word;
  Reduce product;
  product.start(word, true, scaling);
  return product.finish(false, scaling);
}

inline constexpr uint32_t kNobody = ~0u;

// `word`: mine on entry, all ranks' in rank order afterwards. Returns the rank an aborted wait was for, else kNobody.
template <class Reduce>
__device__ __forceinline__ uint32_t reduce_ranks(const OneShotMemory& memory, const Scaling& scaling,
                                                 const uint32_t* abort_word, uint32_t index, uint64_t& word) {
  constexpr uint32_t kAhead = 4;
  Reduce result;
#pragma unroll 1
  for (uint32_t first = 0; first < memory.nranks; first += kAhead) {
    Pack look[kAhead] = {};
#pragma unroll
    for (uint32_t j = 0; j < kAhead; ++j) {
      const uint32_t p = first + j;
      if (p < memory.nranks && p != memory.rank) look[j] = ptx::load_relaxed(memory.peers[p].source + index);
    }
#pragma unroll
    for (uint32_t j = 0; j < kAhead; ++j) {
      const uint32_t p = first + j;
      if (p >= memory.nranks) break;
      uint64_t next = word;
      if (p != memory.rank) {
        const OneShotPeer& peer = memory.peers[p];
        if (!await_packet(peer.source + index, peer.source_tag, abort_word, look[j], next)) return p;
      }
      if (p == 0) result.start(next, !Reduce::kMultiplies, scaling);
      else result.add(next, !Reduce::kMultiplies, scaling);
    }
  }
  word = result.finish(true, scaling);
  return kNobody;
}

__device__ __forceinline__ void push_word(const OneShotMemory& memory, uint32_t index, uint64_t word) {
#pragma unroll 1
  for (uint32_t d = 1; d < memory.nranks; ++d) {
    const uint32_t p = memory.rank + d < memory.nranks ? memory.rank + d : memory.rank + d - memory.nranks;
    ptx::store_relaxed(memory.peers[p].sink + index, make_packet(word, memory.peers[p].sink_tag));
  }
}

// All threads, after the last packet of the message: see zero_slots() in packet.cuh.
__device__ __forceinline__ void zero_sources(const OneShotMemory& memory) {
  __syncthreads();
  for (uint32_t p = 0; p < memory.nranks; ++p) {
    if (p == memory.rank) continue;
    for (uint32_t i = threadIdx.x; i < memory.slot_bytes / kWordBytes; i += blockDim.x) {
      ptx::store_relaxed(const_cast<Pack*>(memory.peers[p].source) + i, Pack{0, 0});
    }
  }
  __threadfence_system();
}

// The whole kernel of one block. `work` lies in the kernel's parameters.
template <class Reduce>
__device__ __forceinline__ void one_shot(const DeviceComm& comm, const Work& work, uint32_t lane) {
  __shared__ OneShotMemory memory;
  if (lane >= work.chunking.lanes) return;
  const Piece piece = piece_of(work.chunking, 0, lane, 0);
  const uint64_t offset = bytes_of_elements(work, piece.first), bytes = bytes_of_elements(work, piece.count);
  std::byte* from = static_cast<std::byte*>(const_cast<void*>(work.input)) + offset;
  std::byte* to = static_cast<std::byte*>(work.output) + offset;
  const bool misaligned = ((reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to)) % kWordBytes) != 0;
  const UserPiece input{from, bytes, misaligned}, output{to, bytes, misaligned};
  const uint32_t words = packets_of(bytes);
  Scaling scaling{};
  if constexpr (Reduce::kScales) scaling = scaling_of(work);
  // Under way while peers are looked up.
  const uint64_t early = threadIdx.x < words ? load_input<Reduce>(input, threadIdx.x, scaling) : 0;

  if (threadIdx.x < kWarp) join_peers(comm, work, lane, memory);
  __syncthreads();
  if (memory.failed) return;
  for (uint32_t i = threadIdx.x; i < words; i += blockDim.x) {
    push_word(memory, i, i == threadIdx.x ? early : load_input<Reduce>(input, i, scaling));
  }
  for (uint32_t i = threadIdx.x; i < words; i += blockDim.x) {
    uint64_t word = i == threadIdx.x ? early : load_input<Reduce>(input, i, scaling);
    const uint32_t missing = reduce_ranks<Reduce>(memory, scaling, comm.abort_word, i, word);
    if (missing != kNobody) {
      const WaitSite site{lane, work.plan.streams[0].first + 1, work.sequence};
      record_fault(comm.fault, site, FaultReason::kAborted, missing, Place::kInbox);
      break;
    }
    output.store(i, word);
  }
  if (memory.zeroes) zero_sources(memory);
  if (work.flip && lane == 0 && work.chunking.total_elements != 0) {
    __syncthreads();
    if (threadIdx.x == 0) flip_bit(work.output);
  }
}

}  // namespace talaria::device
