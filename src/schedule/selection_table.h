// SelectionTable: which algorithm and channel carry out each operation, by size class. Integers only.
//
// Rank 0 fills it at init from what all ranks agreed on and gives it to the others; from then on every choice is a
// look-up. docs/decisions/0011-selection-by-table.md says why.
#pragma once

#include <cstdint>
#include <type_traits>

#include "schedule/algorithm.h"
#include "schedule/selection_filter.h"

namespace talaria {

// The numbers that decide between algorithms, agreed at init. All tuning is in here.
struct ChoiceLimits {
  uint32_t nranks = 1;
  Form form = Form::kStaged;
  uint64_t direct_bytes = 0;       // smallest block, what one rank touches at another, that goes in the direct form
  bool packets = false;            // the engine implements the packet channel
  uint64_t one_shot_bytes = 0;     // all-reduce, reduce: most bytes, size · (nranks-1), a rank receives in one shot
  uint64_t one_shot_packet_bytes = 0;  // of those, most that go as packets
  uint64_t packet_bytes = 0;       // other operations: largest block sent as packets
  SelectionFilter filter;          // NCCL_ALGO and NCCL_PROTO
};

// Calls of up to `most_bytes` (count · size of an element) that no class before it takes.
struct SizeClass {
  uint64_t most_bytes;
  uint8_t algorithm;  // row of the catalog, or kNoAlgorithm
  Channel channel;
  uint8_t reserved[6];
};

struct SelectionTable {
  static constexpr int kClasses = 6;
  static constexpr uint8_t kNoAlgorithm = 0xff;  // the filter left nothing
  SizeClass classes[kCollectives][kClasses];     // those after one of UINT64_MAX bytes are zero
};
static_assert(std::is_trivially_copyable_v<SelectionTable>);

SelectionTable fill_selection_table(const ChoiceLimits& limits);

// Of what the table means here: algorithms go in by name, so ranks with other catalogs come to another value. Never 0.
uint64_t hash_of(const SelectionTable& table);

}  // namespace talaria
