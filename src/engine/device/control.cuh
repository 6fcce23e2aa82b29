// Control: what the first warp of a group does for the others: fetch the step, wait for its messages and credits, find
// its addresses, and afterwards signal its peers. One thread per Ref, so that a step with many peers waits once.
//
// Counters live in FifoState, in global memory: only the control warp of the stream that owns a FIFO's end touches them
// during a work, and the owner of the work's ends (WorkEnds) before and after.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "engine/device/pack.cuh"
#include "engine/device/task.cuh"
#include "engine/device/wait.cuh"

namespace talaria::device {

// log2 of the element size, four bits per DataType.
inline constexpr uint64_t kElementShifts = [] {
  uint64_t shifts = 0;
  for (int t = 0; t < kDataTypes; ++t) {
    uint64_t shift = 0;
    while ((1u << shift) < kDataTypeTraits[t].bytes) ++shift;
    shifts |= shift << 4 * t;
  }
  return shifts;
}();

__device__ __forceinline__ uint64_t bytes_of_elements(const Work& work, uint64_t elements) {
  return elements << (kElementShifts >> 4 * work.type & 15);
}

__device__ __forceinline__ Scaling scaling_of(const Work& work) {
  const auto* scalar = static_cast<const std::byte*>(work.scalar_address);
  const auto bytes = static_cast<uint32_t>(bytes_of_elements(work, 1));
  return Scaling{1.0 / work.avg_ranks, 1.0f / static_cast<float>(work.avg_ranks), work.avg_ranks,
                 scalar == nullptr ? work.scalar : load_word(scalar, bytes)};
}

__device__ __forceinline__ void flip_bit(void* output) {
  volatile uint8_t* first = static_cast<volatile uint8_t*>(output);
  *first = *first ^ 1;
}

// Both ends of the FIFO a Ref names, as this rank sees them. The depth is a power of two on GPUs.
struct Fifo {
  const GroupMemory& memory;
  const ChannelLayout& layout;
  uint64_t own_index;   // of (peer, lane, fifo): my counters, and what the peer writes into my mailbox
  uint64_t peer_index;  // of (me, lane, fifo): what I write into the peer's mailbox
  std::byte* peer_mailbox;

  __device__ Fifo(const GroupMemory& group_memory, const Ref& ref, uint32_t lane)
      : memory(group_memory), layout(memory.comm.layout.channels[memory.work.channel]) {
    const MailboxLayout& mailbox = memory.comm.layout;
    own_index = mailbox.fifo_index(memory.work.channel, ref.peer, lane, ref.fifo);
    peer_index = mailbox.fifo_index(memory.work.channel, memory.comm.rank, lane, ref.fifo);
    peer_mailbox = memory.comm.peers[ref.peer];
  }
  __device__ FifoState& state() const { return memory.comm.fifos[memory.work.channel][own_index]; }
  __device__ std::byte* slot(std::byte* mailbox, uint64_t index, uint64_t message) const {
    return mailbox + layout.slots + (index * layout.depth + (message & (layout.depth - 1))) * layout.slot_stride;
  }
  __device__ std::byte* inbox_slot(uint64_t message) const { return slot(memory.comm.mailbox, own_index, message); }
  __device__ std::byte* peer_slot(uint64_t message) const { return slot(peer_mailbox, peer_index, message); }
  __device__ uint64_t* word(std::byte* mailbox, uint64_t index) const {
    return reinterpret_cast<uint64_t*>(mailbox + layout.flags + index * kFlagStride);
  }
  __device__ uint64_t credits() const {
    return memory.comm.layout.fifo_index(memory.work.channel, memory.comm.nranks, 0, 0);
  }
  __device__ const uint64_t* my_tail() const { return word(memory.comm.mailbox, own_index); }
  __device__ const uint64_t* my_credit() const { return word(memory.comm.mailbox, credits() + own_index); }
  __device__ uint64_t* peer_tail() const { return word(peer_mailbox, peer_index); }
  __device__ uint64_t* peer_credit() const { return word(peer_mailbox, credits() + peer_index); }
};

__device__ __forceinline__ bool credits_this_slot(const GroupMemory& memory, const Ref& ref) {
  const uint32_t bit = ref.peer * kFifosPerPair + ref.fifo;
  // Beyond the table every slot is credited: more credits than needed are always true.
  return bit >= 128 || (memory.credit_each_slot[bit / 32] >> bit % 32 & 1) != 0;
}

// A Ref of the step made concrete.
struct Resolved {
  Operand operand;
  Signal signal;
  bool ok;
};

// An inbox. Source: message q = received, published by the producer's tail or by its tags. Sink: message q = sent,
// stored once the slot's last message is known to be consumed, q - max(acked, credit) < depth; the credit word is
// looked at only where the implied acknowledgement does not suffice. Tail pairs with tail, credit with credit, across
// the pair.
template <class Protocol>
__device__ __forceinline__ void resolve_inbox(const GroupMemory& memory, const Ref& ref, bool source, Resolved& out) {
  const Fifo fifo(memory, ref, memory.lane);
  FifoState& state = fifo.state();
  const uint64_t sent = state.sent, acked = state.acked, received = state.received;  // under way together
  const uint64_t message = source ? received : sent;
  const uint64_t next = message + 1;
  *(source ? &state.received : &state.sent) = next;
  out.operand.address = source ? fifo.inbox_slot(message) : fifo.peer_slot(message);
  out.operand.meta |= kOperandInbox;
  if constexpr (Protocol::kPackets) {
    out.operand.tag = packet_tag(message);
    if (source && packet_zeroes_slot(message, fifo.layout.depth)) out.operand.meta |= kOperandZero;
  }
  const bool credits = source && credits_this_slot(memory, ref);
  const bool publishes = !source && !Protocol::kPackets;
  if ((ref.flags & kSignal) && (credits || publishes)) {
    out.signal = Signal{source ? fifo.peer_credit() : fifo.peer_tail(), next};
  }
  const bool arrives = source && !Protocol::kPackets;
  const bool needs_credit = !source && message - acked >= fifo.layout.depth;
  if ((ref.flags & kWait) && (arrives || needs_credit)) {
    out.ok = source ? wait_at_least(memory.comm.abort_word, fifo.my_tail(), next)
                    : wait_at_least(memory.comm.abort_word, fifo.my_credit(), next - fifo.layout.depth);
  }
}

template <class Protocol, class Reduce>
__device__ __forceinline__ Resolved resolve(const GroupMemory& memory, const Ref& ref, bool source) {
  Resolved out{Operand{nullptr, 0, ref.peer << 8}, Signal{nullptr, 0}, true};
  // PreMulSum multiplies what comes from a send buffer; what peers send has been multiplied.
  const bool raw = Reduce::kMultiplies ? ref.place == Place::kInput : (ref.flags & kRaw) != 0;
  if (raw) out.operand.meta |= kOperandRaw;
  FaultReason reason = FaultReason::kAborted;
  switch (ref.place) {
    case Place::kInput:
      out.operand.address = static_cast<std::byte*>(const_cast<void*>(memory.work.input)) + memory.task.input;
      break;
    case Place::kOutput:
      out.operand.address = static_cast<std::byte*>(memory.work.output) + memory.task.output;
      break;
    case Place::kInbox:
      resolve_inbox<Protocol>(memory, ref, source, out);
      break;
    default:  // the direct form
      reason = FaultReason::kUnsupported;
      out.ok = false;
  }
  if (!out.ok) record_fault(memory.comm.fault, site_of(memory), reason, ref.peer, ref.place);
  return out;
}

// Step `cursor.step` of the group's stream, through the window kept in shared memory.
__device__ __forceinline__ Step fetch_step(GroupMemory& memory, const StreamView& stream, uint32_t steps) {
  Cursor& cursor = memory.cursor;
  const uint32_t index = cursor.step;
  uint32_t window = cursor.step_window;
  if (index < window || index >= window + kStepWindow) {
    window = index;
    __syncwarp();
    const uint32_t lane = threadIdx.x % kWarp;
    if (index + lane < steps) memory.steps[lane] = memory.work.plan.steps[stream.first + index + lane];
    if (lane == 0) cursor.step_window = window;
    __syncwarp();
  }
  return memory.steps[index - window];
}

// The refs of a step in shared memory; what follows them in the plan comes along, for the next steps.
__device__ __forceinline__ const Ref* fetch_refs(GroupMemory& memory, const Step& step, uint32_t total) {
  uint32_t window = memory.cursor.ref_window;
  if (step.first_ref < window || step.first_ref + total > window + kMaxOperands) {
    window = step.first_ref;
    const PlanView& plan = memory.work.plan;
    const uint32_t end = plan.nrefs != 0 ? plan.nrefs : window + total;
    __syncwarp();
    for (uint32_t i = threadIdx.x % kWarp; i < kMaxOperands && window + i < end; i += kWarp) {
      memory.refs[i] = plan.refs[window + i];
    }
    // Of a plan whose length is not known only this step's refs are here.
    if (threadIdx.x % kWarp == 0) memory.cursor.ref_window = plan.nrefs != 0 ? window : ~0u;
    __syncwarp();
  }
  return memory.refs + (step.first_ref - window);
}

// Turns a step into the group's task. False: a fault, the task must not be carried out.
template <class Protocol, class Reduce>
__device__ inline bool prepare(GroupMemory& memory, const Group& group, const Step& step, uint32_t round) {
  const Work& work = memory.work;
  const uint32_t total = uint32_t{step.sources} + step.sinks;
  if (step.sources == 0 || total > kMaxOperands) {
    if (group.thread == 0) {
      record_fault(memory.comm.fault, site_of(memory), FaultReason::kUnsupported, memory.comm.rank, Place::kReady);
    }
    return false;
  }
  if (group.thread == 0) {
    const Piece piece = piece_of(work.chunking, step.block, memory.lane, round);
    memory.task.bytes = bytes_of_elements(work, piece.count);
    memory.task.input = bytes_of_elements(work, input_offset(work.chunking, step.block, piece));
    memory.task.output = bytes_of_elements(work, output_offset(work.chunking, step.block, piece));
    memory.task.sources = step.sources;
    memory.task.sinks = step.sinks;
    memory.task.final = (step.flags & kFinal) != 0;
  }
  const Ref* refs = fetch_refs(memory, step, total);
  __syncwarp();
  bool ok = true, misaligned = false, zeroes = false, raw = false;
#pragma unroll 1
  for (uint32_t i = group.thread; i < total; i += kWarp) {
    const Resolved ref = resolve<Protocol, Reduce>(memory, refs[i], i < memory.task.sources);
    ok &= ref.ok;
    misaligned |= reinterpret_cast<uintptr_t>(ref.operand.address) % Protocol::kAlignment != 0;
    zeroes |= (ref.operand.meta & kOperandZero) != 0;
    raw |= i < memory.task.sources && (ref.operand.meta & kOperandRaw) != 0;
    memory.operands[i] = ref.operand;
    memory.signals[i] = ref.signal;
  }
  __syncwarp();
  misaligned = __any_sync(0xffffffffu, misaligned);
  if constexpr (Protocol::kPackets) zeroes = __any_sync(0xffffffffu, zeroes);
  if constexpr (Reduce::kScales) raw = __any_sync(0xffffffffu, raw);
  if (group.thread == 0) {
    memory.task.copies = memory.task.sources == 1 && !(Reduce::kScales && (raw || memory.task.final));
    memory.task.misaligned = misaligned;
    memory.task.zeroes = zeroes;
  }
  return __all_sync(0xffffffffu, ok);
}

// After the group has finished the task.
template <class Protocol>
__device__ __forceinline__ void signal_peers(const GroupMemory& memory, const Group& group) {
  const uint32_t total = memory.task.sources + memory.task.sinks;
  for (uint32_t i = group.thread; i < total; i += kWarp) {
    const Signal signal = memory.signals[i];
    if (signal.word != nullptr) Protocol::signal(signal);
  }
  __syncwarp();
}

}  // namespace talaria::device
