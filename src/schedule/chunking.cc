#include "schedule/chunking.h"

#include <algorithm>

#include "schedule/algorithm.h"

namespace talaria {
namespace {

constexpr uint64_t kGranuleBytes = 16;       // pieces start at multiples of this, so aligned buffers stay aligned
constexpr uint64_t kMinLaneBytes = 1024;     // a lane is not worth starting for less

uint64_t divide_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit; }
uint64_t round_up(uint64_t value, uint64_t unit) { return divide_up(value, unit) * unit; }

// Sizes and strides of the blocks, before they are cut into pieces.
Chunking blocks_of(const Collective& collective, uint32_t nranks, uint32_t blocks) {
  const uint64_t count = collective.count;
  const uint64_t granule = kGranuleBytes / bytes_of(collective.type);
  switch (collective.operation) {
    case Operation::kAllGather:
    case Operation::kGather: return Chunking{count, count * nranks, 0, count, 0, 0, 0};
    case Operation::kReduceScatter:
    case Operation::kScatter: return Chunking{count, count * nranks, count, 0, 0, 0, 0};
    case Operation::kAlltoAll: return Chunking{count, count * nranks, count, count, 0, 0, 0};
    default: break;
  }
  if (blocks == 1) return Chunking{count, count, 0, 0, 0, 0, 0};
  const uint64_t block = round_up(divide_up(count, blocks), granule);
  return Chunking{block, count, block, block, 0, 0, 0};
}

}  // namespace

Chunking chunking_for(const Collective& collective, uint32_t nranks, uint32_t blocks, uint32_t max_lanes,
                      uint64_t slot_bytes) {
  Chunking chunking = blocks_of(collective, nranks, blocks);
  const uint64_t element = bytes_of(collective.type);
  const uint64_t granule = kGranuleBytes / element;
  const uint64_t slot_elements = slot_bytes / element;
  const uint64_t block = std::max<uint64_t>(chunking.block_elements, 1);
  chunking.lanes = static_cast<uint32_t>(
      std::clamp<uint64_t>(divide_up(block * element, kMinLaneBytes), 1, std::max<uint32_t>(max_lanes, 1)));
  chunking.rounds = static_cast<uint32_t>(divide_up(block, slot_elements * chunking.lanes));
  chunking.piece = round_up(divide_up(block, uint64_t{chunking.lanes} * chunking.rounds), granule);
  return chunking;
}

}  // namespace talaria
