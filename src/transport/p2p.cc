#include "transport/p2p.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace talaria {
namespace {

static_assert(sizeof(CUipcMemHandle) == kIpcHandleBytes);

// Lets `context` load and store the memory of `peer`'s device.
Status enable_peer_access(const PrimaryContext& context, const PrimaryContext& peer, uint32_t peer_rank) {
  if (context.device() == peer.device()) return Status();
  int possible = 0;
  TRY(context.driver().device_can_access_peer(&possible, context.device(), peer.device()));
  if (possible == 0) {
    return fail(Code::kInvalidUsage,
                "device {} cannot reach the memory of device {} (rank {}); a path through host memory is not supported "
                "yet",
                context.ordinal(), peer.ordinal(), peer_rank);
  }
  const CUresult result = context.driver().enable_peer_access.raw(peer.handle(), 0);
  if (result == CUDA_SUCCESS || result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) return Status();
  return driver_failure("cuCtxEnablePeerAccess", 4000, result, false);
}

Result<CUdeviceptr> open_handle(const PrimaryContext& context, const MailboxLocation& peer) {
  if (std::ranges::all_of(peer.handle, [](std::byte b) { return b == std::byte{0}; })) {
    return fail(Code::kInvalidUsage,
                "rank {} could not export its memory by CUDA IPC; a path through host memory is not supported yet",
                peer.rank);
  }
  CUipcMemHandle handle;
  std::memcpy(&handle, peer.handle.data(), sizeof handle);
  CUdeviceptr address = 0;
  const CUresult result =
      context.driver().ipc_open_mem_handle.raw(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  if (result == CUDA_SUCCESS) return address;
  log_warn("device {} cannot map the memory of rank {} by CUDA IPC", context.ordinal(), peer.rank);
  return driver_failure("cuIpcOpenMemHandle", 11000, result, false);
}

}  // namespace

PeerMapping::PeerMapping(PeerMapping&& other) noexcept
    : context_(std::move(other.context_)),
      peer_context_(std::move(other.peer_context_)),
      address_(other.address_),
      imported_(std::exchange(other.imported_, false)) {}

PeerMapping& PeerMapping::operator=(PeerMapping&& other) noexcept {
  if (this == &other) return *this;
  reset();
  context_ = std::move(other.context_);
  peer_context_ = std::move(other.peer_context_);
  address_ = other.address_;
  imported_ = std::exchange(other.imported_, false);
  return *this;
}

void PeerMapping::reset() {
  if (!std::exchange(imported_, false)) return;
  ContextGuard guard(*context_);
  RelaxedCapture relaxed(context_->driver());
  context_->driver().ipc_close_mem_handle.raw(address_);
}

Result<PeerMapping> PeerMapping::open(ContextPtr context, const MailboxLocation& peer) {
  ContextGuard guard(*context);
  TRY(guard.status());
  RelaxedCapture relaxed(context->driver());
  PeerMapping mapping;
  if (peer.same_process) {
    mapping.peer_context_ = TRY(PrimaryContext::retain(peer.device));
    TRY(enable_peer_access(*context, *mapping.peer_context_, peer.rank));
    mapping.address_ = peer.address;
  } else {
    mapping.address_ = TRY(open_handle(*context, peer));
    mapping.imported_ = true;
  }
  mapping.context_ = std::move(context);
  log_info(kLogP2p, "device {} reaches rank {} by {}", mapping.context_->ordinal(), peer.rank,
           peer.same_process ? "address" : "CUDA IPC");
  return mapping;
}

void export_mailbox(const PrimaryContext& context, CUdeviceptr address, std::span<std::byte, kIpcHandleBytes> handle) {
  CUipcMemHandle exported{};
  ContextGuard guard(context);
  RelaxedCapture relaxed(context.driver());
  if (guard.status().ok() && context.driver().ipc_get_mem_handle.raw(&exported, address) == CUDA_SUCCESS) {
    std::memcpy(handle.data(), &exported, sizeof exported);
    return;
  }
  std::ranges::fill(handle, std::byte{0});
  log_info(kLogP2p, "device {} has no CUDA IPC: ranks in other processes cannot reach it", context.ordinal());
}

}  // namespace talaria
