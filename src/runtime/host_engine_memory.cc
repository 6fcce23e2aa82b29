// What a CPU rank gives back while its communicator is suspended: the pages of its mailbox in which nothing waits. The
// words stay, and with them all counters.
#include <cstring>

#include "base/log.h"
#include "runtime/host_engine.h"

namespace talaria {

// Payloads of collectives have been read when all ranks have left those. A send may be complete without its receive.
std::vector<std::span<std::byte>> HostEngine::idle_slots() {
  std::vector<std::span<std::byte>> slots;
  for (uint32_t c = 0; c < kMailboxChannels; ++c) {
    const ChannelLayout& channel = rank_.layout.channels[c];
    const uint64_t fifos = rank_.layout.fifo_index(c, rank_.nranks, 0, 0);
    const auto waits = [&](uint64_t fifo) {
      auto& tail = *reinterpret_cast<uint64_t*>(rank_.mailbox + channel.flags + fifo * kFlagStride);
      return std::atomic_ref(tail).load(std::memory_order_acquire) > rank_.fifos[c][fifo].received;
    };
    const uint64_t bytes = uint64_t{channel.depth} * channel.slot_stride;
    for (uint64_t fifo = 0; fifo < fifos; ++fifo) {
      if (channel.line_bytes == 0 && waits(fifo)) continue;
      slots.push_back(whole_pages({rank_.mailbox + channel.slots + fifo * bytes, bytes}));
    }
  }
  return slots;
}

Status HostEngine::give_back() {
  if (!can_reserve_pages()) {
    log_info(kLogShm, "rank {} keeps its mailbox while suspended: this kernel cannot reserve pages again (before 5.14)",
             rank_.rank);
    return Status();
  }
  uint64_t bytes = 0;
  for (const auto pages : idle_slots()) {
    discard_pages(pages);
    bytes += pages.size();
  }
  log_info(kLogShm, "rank {} gives {} bytes of its mailbox back until it is resumed", rank_.rank, bytes);
  return Status();
}

Status HostEngine::take_back() {
  for (const auto pages : idle_slots()) {
    if (const int error = reserve_pages(pages); error != 0) {
      return fail(Code::kSystem, "rank {} cannot have {} bytes of its mailbox again, {} are free in /dev/shm: {}",
                  rank_.rank, pages.size(), SharedMemory::room(), strerror(error));
    }
  }
  return Status();
}

}  // namespace talaria
