#include "runtime/device_plans.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "engine/device/batch.h"

namespace talaria {
namespace {

constexpr size_t kArenaBytes = 64 << 10;
constexpr size_t kAlignment = 256;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

size_t steps_of(const PlanView& view) {
  size_t steps = 0;
  for (uint32_t s = 0; s < view.nstreams; ++s) {
    const StreamView& stream = view.streams[s];
    steps = std::max<size_t>(steps, size_t{stream.first} + stream.prologue + stream.body + stream.epilogue);
  }
  return steps;
}

Result<size_t> refs_of(const PlanView& view, size_t steps) {
  size_t refs = 0;
  for (const Step& step : std::span(view.steps, steps)) {
    if (const uint32_t operands = uint32_t{step.sources} + step.sinks; operands > kMaxOperands) {
      return fail(Code::kInvalidUsage,
                  "a plan for this many GPU ranks has a step of {} sources and sinks, {} are possible; try "
                  "NCCL_ALGO=ring", operands, kMaxOperands);
    }
    refs = std::max<size_t>(refs, size_t{step.first_ref} + step.sources + step.sinks);
  }
  return refs;
}

}  // namespace

Result<PlanView> DevicePlans::on_device(const PlanView& view, CUstream upload) {
  auto found = copies_.find(view.steps);
  if (found == copies_.end()) found = copies_.emplace(view.steps, TRY(upload_copy(view, upload))).first;
  PlanView result = view;
  result.steps = reinterpret_cast<const Step*>(found->second.steps);
  result.refs = reinterpret_cast<const Ref*>(found->second.refs);
  result.peers = reinterpret_cast<const PeerUse*>(found->second.peers);
  return result;
}

Result<DevicePlans::Copy> DevicePlans::upload_copy(const PlanView& view, CUstream upload) {
  const size_t steps = steps_of(view);
  const size_t step_bytes = steps * sizeof(Step);
  const size_t ref_bytes = TRY(refs_of(view, steps)) * sizeof(Ref);
  const size_t peer_bytes = view.npeers * sizeof(PeerUse);
  std::vector<std::byte> image(aligned(step_bytes) + aligned(ref_bytes) + aligned(peer_bytes));
  std::byte* refs = image.data() + aligned(step_bytes);
  std::byte* peers = refs + aligned(ref_bytes);
  if (step_bytes != 0) std::memcpy(image.data(), view.steps, step_bytes);
  if (ref_bytes != 0) std::memcpy(refs, view.refs, ref_bytes);
  if (peer_bytes != 0) std::memcpy(peers, view.peers, peer_bytes);

  const CUdeviceptr address = TRY(reserve(image.size(), upload));
  if (!image.empty()) {
    RelaxedCapture relaxed(context_->driver());
    TRY(context_->driver().copy_to_device_async(address, image.data(), image.size(), upload));
    TRY(context_->driver().stream_synchronize(upload));
  }
  return Copy{address, address + aligned(step_bytes), address + aligned(step_bytes) + aligned(ref_bytes)};
}

Result<CUdeviceptr> DevicePlans::reserve(size_t bytes, CUstream upload) {
  if (arenas_.empty() || used_ + bytes > arena_bytes_) {
    arena_bytes_ = std::max(kArenaBytes, bytes);
    arenas_.push_back(TRY(DeviceBlock::allocate(context_, arena_bytes_, upload)));
    used_ = 0;
    bytes_ += arena_bytes_;
  }
  const CUdeviceptr address = arenas_.back().address() + used_;
  used_ += bytes;
  return address;
}

}  // namespace talaria
