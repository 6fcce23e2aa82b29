#include "runtime/spill_pool.h"

#include <bit>

namespace talaria {

Result<SpillPool::Slot*> SpillPool::acquire(uint32_t works) {
  for (const std::unique_ptr<Slot>& slot : slots_) {
    if (!slot->captured && slot->works >= works && slot->read.reached()) return slot.get();
  }
  auto slot = std::make_unique<Slot>();
  slot->works = std::bit_ceil(works);
  slot->block = TRY(PinnedBlock::allocate(context_, slot->works * sizeof(Work)));
  slot->read = TRY(CudaEvent::create(context_));
  slots_.push_back(std::move(slot));
  return slots_.back().get();
}

Status SpillPool::launched(Slot& slot, CUstream stream, bool capturing) {
  slot.captured = capturing;
  return capturing ? Status() : context_->driver().event_record(slot.read.get(), stream);
}

}  // namespace talaria
