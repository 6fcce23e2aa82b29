// P2p: reaches the mailbox of a rank on another GPU of this host (or on the same GPU).
//
// Same process: peer access between the contexts, and the address itself. Other process: CUDA IPC. A mapping ends with
// its PeerMapping; ending an IPC mapping waits for the whole GPU, so owners hand it to the LaunchGate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "service/cuda_memory.h"

namespace talaria {

inline constexpr size_t kIpcHandleBytes = 64;

// Where a peer's mailbox is, in its owner's words.
struct MailboxLocation {
  uint32_t rank;
  bool same_process;
  int device;        // ordinal in the owner's process
  uint64_t address;  // in the owner's process
  std::span<const std::byte, kIpcHandleBytes> handle;  // all zero: the owner could not export
};

class PeerMapping {
 public:
  PeerMapping() = default;
  PeerMapping(PeerMapping&& other) noexcept;
  PeerMapping& operator=(PeerMapping&& other) noexcept;
  ~PeerMapping() { reset(); }
  // Maps `peer` into `context`. kInvalidUsage when the hardware has no path between the two GPUs.
  static Result<PeerMapping> open(ContextPtr context, const MailboxLocation& peer);
  CUdeviceptr address() const { return address_; }

 private:
  void reset();

  ContextPtr context_;
  ContextPtr peer_context_;   // keeps a same-process peer's context alive
  CUdeviceptr address_ = 0;
  bool imported_ = false;
};

// Exports `address` (start of an allocation) for other processes. Leaves zeroes where the machine has no CUDA IPC.
void export_mailbox(const PrimaryContext& context, CUdeviceptr address, std::span<std::byte, kIpcHandleBytes> handle);

}  // namespace talaria
