// Step: one sentence of a plan, as plain data that the host, the device and the simulator read alike.
//
// "Gather these sources, reduce them in this order, write the result to these sinks." Flags are part of the sentence:
// each Ref says whether its data is waited for and whether its use is signalled. A Step never holds bytes or counts: a
// block index and the Chunking of the call give the elements, so one plan serves every size.
//
// Step streams. A plan has up to kMaxStreams streams; a GPU block runs each on a warp group of its own, the host engine
// as coroutine-like state machines. A FIFO (peer, fifo) has exactly one producing stream on one side and one consuming
// stream on the other, so pushing and draining never block each other. See docs/memory_model.md for every flag.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define TALARIA_HOST_DEVICE __host__ __device__
#else
#define TALARIA_HOST_DEVICE
#endif

namespace talaria {

inline constexpr uint32_t kMaxStreams = 3;
inline constexpr uint32_t kFifosPerPair = 2;

// Where bytes (or only a flag) of a Ref lie.
enum class Place : uint8_t {
  kInput,       // own send buffer
  kOutput,      // own receive buffer
  kInbox,       // source: next message of FIFO (peer → me, fifo). sink: next slot of FIFO (me → peer, fifo)
  kPeerInput,   // source only: peer's send buffer if its ready word says direct, else like kInbox
  kPeerOutput,  // sink only: peer's receive buffer if its ready word says direct, else like kInbox
  kReady,       // sink only, no data: tell `peer` that my input (fifo 0) or output (fifo 1) may be used
  kDone,        // no data. sink: tell `peer` that I no longer touch its buffers. source: wait for the same from it
};

enum RefFlag : uint8_t {
  // source: wait for the message / ready / done word. sink: wait for the slot's credit / the ready word.
  kWait = 1,
  // source: return the slot's credit (only sent when the operation is longer than half the FIFO). sink: publish.
  kSignal = 2,
  // source: a rank's raw input enters a reduction here (Avg scales floating types by 1/n at this point).
  kRaw = 4,
};

struct Ref {
  Place place;
  uint8_t flags;
  uint8_t fifo;
  uint8_t reserved;
  uint32_t peer;
};
static_assert(sizeof(Ref) == 8);

enum StepFlag : uint8_t {
  kFinal = 1,  // the value is the reduction's final one (Avg divides integers by n here)
  // Peers' buffers are touched at the block with this rank's number instead of `block` (all-to-all; blocks are equal).
  kOwnBlockAtPeer = 2,
};

// refs[first_ref, +sources) are the sources in addition order, the next `sinks` refs are the sinks.
// sources > 1: element-wise reduction, left to right, accumulated in f32 for f16 and bf16, rounded once at the end.
// sources == 0: no data, only flags.
struct Step {
  uint32_t first_ref;
  uint16_t sources;
  uint16_t sinks;
  uint32_t block;  // index into the call's blocks (Chunking)
  uint8_t flags;
  uint8_t reserved[3];
};
static_assert(sizeof(Step) == 16);

// The block that `rank` touches in its own buffers, or in those of a peer.
TALARIA_HOST_DEVICE inline uint32_t block_of(const Step& step, uint32_t rank, bool at_peer) {
  return at_peer && (step.flags & kOwnBlockAtPeer) != 0 ? rank : step.block;
}

// A stream whose condition is false for this call is skipped as a whole.
enum class Condition : uint8_t { kAlways, kInputStaged, kOutputStaged };

// Steps [first, +prologue) run once, the next `body` steps once a round, the next `epilogue` steps once.
struct StreamView {
  uint32_t first;
  uint32_t prologue;
  uint32_t body;
  uint32_t epilogue;
  Condition condition;
  uint8_t reserved[3];
};

// What an executor does for one peer at the ends of an operation (docs/memory_model.md, acknowledgements).
struct PeerUse {
  uint32_t peer;
  uint8_t implied_ack;      // 1: at the end, acked[all fifos to peer] := sent at the operation's start
  uint8_t credit_at_start;  // bit f: at the start, publish everything received so far on FIFO (peer → me, f)
  uint16_t reserved;
  uint16_t sends[kFifosPerPair];     // messages to peer per round, if staged
  uint16_t receives[kFifosPerPair];  // messages from peer per round, if staged
};
static_assert(sizeof(PeerUse) == 16);

// A plan flattened for an executor. Arrays are owned elsewhere (Plan on the host, the plan cache on the device).
struct PlanView {
  const Step* steps;
  const Ref* refs;
  const PeerUse* peers;  // in order of rank
  uint32_t npeers;
  uint32_t nstreams;
  StreamView streams[kMaxStreams];
  uint32_t nrefs;  // of the whole plan; 0: unknown (an executor then reads no ref ahead of its step)
};

// Consumers credit every slot, instead of once per operation, when an operation's messages exceed half the FIFO.
TALARIA_HOST_DEVICE inline bool credits_each_slot(uint32_t messages_per_round, uint32_t rounds, uint32_t depth) {
  return static_cast<uint64_t>(messages_per_round) * rounds > depth / 2;
}

// Packet tags: message q carries 1 + q mod `modulus`; zero means "never written".
inline constexpr uint64_t kPacketTagModulus = 1ull << 31;
TALARIA_HOST_DEVICE inline uint32_t packet_tag(uint64_t message, uint64_t modulus = kPacketTagModulus) {
  return static_cast<uint32_t>(1 + message % modulus);
}
// The last `depth` messages before the tags wrap are zeroed by their consumer, so that no stale tag can match.
TALARIA_HOST_DEVICE inline bool packet_zeroes_slot(uint64_t message, uint32_t depth,
                                                   uint64_t modulus = kPacketTagModulus) {
  return message % modulus >= modulus - depth;
}

}  // namespace talaria
