// PeerHandle and MailboxLayout: the only things an executor needs to reach a peer.
//
// Every rank owns one mailbox: memory that its peers can store to. Its layout is a function of MailboxLayout alone, the
// same on all ranks, so a peer is described by the address at which its mailbox is mapped here.
// One writer per word; values only grow. docs/memory_model.md names the partner of each word.
#pragma once

#include <cstddef>
#include <cstdint>

#include "schedule/step.h"

namespace talaria {

enum class PeerKind : uint8_t {
  kNone,
  kMapped,
  kProxied,  // told by Puts (transport/put.h)
};

struct PeerHandle {
  PeerKind kind;
  std::byte* mailbox;  // where the peer's mailbox is mapped in this address space. Proxied: its mirror, for payloads
  int32_t process;     // 0: user buffers are in this address space; else this process's, see cross_memory.h
};

inline constexpr uint32_t kMailboxChannels = 3;  // == kChannels
inline constexpr uint32_t kReadyWords = 3;
inline constexpr uint64_t kFlagStride = 64;      // bytes between flag words, so that no two share a cache line

// A message of a channel with lines is published by the tag at the start of its line, message number + 1, stored last.
// What fits into the rest of the line travels there, so that tag and payload are one flight; more lies in the slot.
inline constexpr uint32_t kLineTagBytes = 8;

struct ChannelLayout {
  uint32_t lanes;
  uint32_t depth;             // slots per FIFO
  uint32_t line_bytes;        // of a message's line, tag included; 0: no lines, tail words publish
  uint32_t slot_bytes;        // payload bytes of a slot; a packet slot takes twice that
  uint32_t slot_stride;       // bytes from one slot to the next
  uint64_t slots;             // offset of the first slot in the mailbox
  uint64_t flags;             // offset of the first tail word; the credit words follow
  uint64_t lines;             // offset of the first line
};

struct MailboxLayout {
  uint32_t nranks;
  uint32_t max_lanes;         // largest of the channels' lanes
  ChannelLayout channels[kMailboxChannels];
  uint64_t ready;             // offset of the ready words (16 bytes each, per source rank, lane, input/output/scalar)
  uint64_t done;              // offset of the done words
  uint64_t touching;          // offset of the owner's touching word (direct form, CPU ranks)
  uint64_t revoked;           // offset of the owner's revoked word
  uint64_t bytes;             // whole mailbox

  // Position of FIFO (peer, lane, fifo) among the FIFOs of its channel. Also indexes the private FifoState arrays.
  TALARIA_HOST_DEVICE uint64_t fifo_index(uint32_t channel, uint32_t peer, uint32_t lane, uint32_t fifo) const {
    return (static_cast<uint64_t>(peer) * channels[channel].lanes + lane) * kFifosPerPair + fifo;
  }
  // In the consumer's mailbox; `from` is the producer.
  TALARIA_HOST_DEVICE uint64_t slot_offset(uint32_t channel, uint32_t from, uint32_t lane, uint32_t fifo,
                                           uint64_t message) const {
    const ChannelLayout& layout = channels[channel];
    return layout.slots + (fifo_index(channel, from, lane, fifo) * layout.depth + message % layout.depth) *
                              layout.slot_stride;
  }
  // In the consumer's mailbox, where the channel has lines; `from` is the producer.
  uint64_t line_offset(uint32_t channel, uint32_t from, uint32_t fifo, uint64_t message) const {
    const ChannelLayout& layout = channels[channel];
    return layout.lines + (fifo_index(channel, from, 0, fifo) * layout.depth + message % layout.depth) *
                              layout.line_bytes;
  }
  // In the consumer's mailbox, written by producer `from`: messages published (bulk only; not where there are lines).
  TALARIA_HOST_DEVICE uint64_t tail_offset(uint32_t channel, uint32_t from, uint32_t lane, uint32_t fifo) const {
    return channels[channel].flags + fifo_index(channel, from, lane, fifo) * kFlagStride;
  }
  // In the producer's mailbox, written by consumer `from`: messages consumed.
  TALARIA_HOST_DEVICE uint64_t credit_offset(uint32_t channel, uint32_t from, uint32_t lane, uint32_t fifo) const {
    return channels[channel].flags +
           (fifo_index(channel, nranks, 0, 0) + fifo_index(channel, from, lane, fifo)) * kFlagStride;
  }
  // `which`: 0 input, 1 output, 2 the scalar that the input is multiplied by.
  TALARIA_HOST_DEVICE uint64_t ready_offset(uint32_t from, uint32_t lane, uint32_t which) const {
    return ready + ((static_cast<uint64_t>(from) * max_lanes + lane) * kReadyWords + which) * kFlagStride;
  }
  TALARIA_HOST_DEVICE uint64_t done_offset(uint32_t from, uint32_t lane) const {
    return done + (static_cast<uint64_t>(from) * max_lanes + lane) * kFlagStride;
  }
};

// What one rank remembers of one FIFO in each direction, in its own memory, between operations.
struct FifoState {
  uint64_t sent;      // messages I published to the peer
  uint64_t acked;     // of those, known consumed by implication (§6 line 5)
  uint64_t received;  // messages I consumed from the peer
  uint64_t reserved;
};

struct ChannelSize {
  uint32_t lanes;
  uint32_t depth;
  uint32_t slot_bytes;  // multiple of 16
  uint32_t line_bytes = 0;  // multiple of 64
};

// Sizes per channel, in Channel order; packet channels without lines double their slots.
MailboxLayout make_mailbox_layout(uint32_t nranks, const ChannelSize (&sizes)[kMailboxChannels]);

}  // namespace talaria
