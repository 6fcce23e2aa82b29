#include "engine/host/remote_move.h"

#include <algorithm>

#include "transport/cross_memory.h"

namespace talaria {
namespace {

constexpr size_t kScratchAlignment = 64;

size_t count_remote(const SmallList<int>& owners) {
  return static_cast<size_t>(std::count_if(owners.data(), owners.data() + owners.size(), [](int p) { return p != 0; }));
}

}  // namespace

// Grows to the largest step and stays: a repeated operation allocates nothing.
std::byte* RemoteMover::scratch(size_t bytes) {
  if (bytes + kScratchAlignment > scratch_bytes_) {
    scratch_bytes_ = bytes + kScratchAlignment;
    scratch_ = std::make_unique_for_overwrite<std::byte[]>(scratch_bytes_);
  }
  const auto address = reinterpret_cast<uintptr_t>(scratch_.get());
  return scratch_.get() + (kScratchAlignment - address % kScratchAlignment) % kScratchAlignment;
}

Unreached RemoteMover::move(const RemoteMovement& remote) {
  const Movement& all = remote.movement;
  const size_t bytes = all.count * bytes_of(all.type);
  const size_t remote_sources = count_remote(remote.source_owners);
  const bool copies = is_copy(all), lands_here = count_remote(remote.sink_owners) < all.sinks.size();
  Movement here{all.type, all.op, all.avg_ranks, all.final, all.count, {}, {}, {}, {}};
  for (size_t k = 0; k < all.sinks.size(); ++k) {
    if (remote.sink_owners[k] == 0) here.add_sink(all.sinks[k]);
  }
  // A single source of another process goes straight to its one sink here.
  const bool straight = copies && remote_sources == 1 && here.sinks.size() > 0;
  const size_t stride = (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
  std::byte* free = scratch(stride * (remote_sources + 1));
  for (size_t k = 0; k < all.sources.size(); ++k) {
    const void* source = all.sources[k];
    if (const int owner = remote.source_owners[k]; owner != 0) {
      std::byte* const fetched = straight ? static_cast<std::byte*>(here.sinks[0]) : free;
      if (const int error = cross_memory::read(owner, fetched, source, bytes)) return {owner, error};
      source = fetched;
      free += stride;
    }
    here.add_source(source, all.raw[k] != 0, all.scalars[k]);
  }
  if (!lands_here && !copies) here.add_sink(free);
  if (here.sinks.size() > 0) talaria::move(here);
  const void* result = copies ? here.sources[0] : here.sinks[0];
  for (size_t k = 0; k < all.sinks.size(); ++k) {
    const int owner = remote.sink_owners[k];
    if (owner == 0) continue;
    if (const int error = cross_memory::write(owner, result, all.sinks[k], bytes)) return {owner, error};
  }
  return {};
}

}  // namespace talaria
