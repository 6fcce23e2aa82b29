// Batch: the parameters of one kernel launch. Host and device read the same struct.
//
// A launch serves one or more ranks (entries) of one GPU: blocks [first_block, first_block + lanes) belong to an entry,
// block first_block + l runs lane l. Each warp group of a block walks the entry's works and runs its stream of each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/work.h"
#include "transport/peer.h"

namespace talaria {

enum class FaultReason : uint32_t {
  kNone = 0,
  kAborted = 1,      // the abort word ended a wait
  kUnsupported = 2,  // the plan has a step this engine cannot carry out (`place` says which kind)
};

// Written by a kernel that leaves a wait without its data (pinned host memory). First writer wins. Whole once valid is
// kFaultWritten; a writer holds it at kFaultClaimed meanwhile.
inline constexpr uint32_t kFaultWritten = 1;
inline constexpr uint32_t kFaultClaimed = 2;
struct FaultRecord {
  uint32_t valid;
  uint32_t reason;   // FaultReason
  uint32_t peer;     // rank waited for
  uint32_t place;    // Place of the Ref waited on
  uint32_t lane;
  uint32_t step;
  uint64_t sequence;
};

// One per rank, in its device memory; constant after init except what the pointers lead to.
struct DeviceComm {
  uint32_t rank;
  uint32_t nranks;
  MailboxLayout layout;
  std::byte* mailbox;                      // own mailbox
  std::byte* const* peers;                 // [nranks]: where each rank's mailbox is mapped; own entry too
  FifoState* fifos[kMailboxChannels];      // own counters, indexed by layout.fifo_index(channel, peer, lane, fifo)
  const uint32_t* abort_word;              // pinned host memory: non-zero ends every wait
  FaultRecord* fault;                      // pinned host memory
};

struct BatchEntry {
  const DeviceComm* comm;
  uint32_t first_work;
  uint32_t works;
  uint32_t first_block;
  uint32_t lanes;
};

inline constexpr uint32_t kMaxOperands = 64;  // sources and sinks of one step
inline constexpr uint32_t kMaxBatchEntries = 8;
inline constexpr uint32_t kInlineWorks = 14;

// All works of a batch share the kernel: same type, reduction and channel (a Copy kernel moves any type as bytes).
struct Batch {
  uint32_t entries;
  uint32_t streams;           // warp groups per block: largest nstreams of the works
  const Work* spilled_works;  // not null: works live there (pinned host memory mapped into the GPU) instead of inline
  BatchEntry entry[kMaxBatchEntries];
  Work works[kInlineWorks];
};
static_assert(sizeof(Batch) <= 4096 - 64, "kernel parameters");

}  // namespace talaria
