#include "engine/host/move.h"

#include <algorithm>
#include <cstring>

#include "engine/host/reduce.h"

namespace talaria {
namespace {

// A tile stays in the first-level cache between its reduction and its copies to further sinks.
constexpr uint64_t kTileBytes = 16384;

void copy_bytes(void* sink, const void* source, size_t bytes) {
  if (sink != source) std::memcpy(sink, source, bytes);
}

}  // namespace

bool is_copy(const Movement& movement) {
  const bool scales = (movement.op == ReduceOp::kAvg && (movement.raw[0] || movement.final)) ||
                      (movement.op == ReduceOp::kPreMulSum && movement.raw[0]);
  return movement.sources.size() == 1 && !scales;
}

void move(const Movement& movement) {
  const size_t element = bytes_of(movement.type);
  const bool plain = is_copy(movement);
  if (plain && movement.sinks.size() == 1) {
    copy_bytes(movement.sinks[0], movement.sources[0], movement.count * element);
    return;
  }
  const Reduction reduction{movement.type, movement.op, movement.avg_ranks, movement.final};
  const uint64_t tile = kTileBytes / element;
  SmallList<const void*> sources;
  for (size_t s = 0; s < movement.sources.size(); ++s) sources.push_back(movement.sources[s]);
  for (uint64_t first = 0; first < movement.count; first += tile) {
    const uint64_t count = std::min(tile, movement.count - first);
    const size_t offset = first * element;
    std::byte* out = static_cast<std::byte*>(movement.sinks[0]) + offset;
    if (plain) {
      copy_bytes(out, static_cast<const std::byte*>(movement.sources[0]) + offset, count * element);
    } else {
      for (size_t s = 0; s < sources.size(); ++s) {
        sources.set(s, static_cast<const std::byte*>(movement.sources[s]) + offset);
      }
      const auto size = static_cast<uint32_t>(sources.size());
      reduce_into(reduction, out, {sources.data(), movement.raw.data(), size, movement.scalars.data()}, count);
    }
    for (size_t k = 1; k < movement.sinks.size(); ++k) {
      copy_bytes(static_cast<std::byte*>(movement.sinks[k]) + offset, out, count * element);
    }
  }
}

}  // namespace talaria
