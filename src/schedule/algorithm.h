// Algorithm: a way to carry out operations, as a builder of plans. Rows of the catalog; pure, stateless.
#pragma once

#include <cstdint>
#include <span>

#include "schedule/plan.h"

namespace talaria {

struct Algorithm {
  const char* name;
  // May this algorithm carry out `operation` at all, for this many ranks, in this form?
  bool (*serves)(Operation operation, uint32_t nranks, Form form);
  // Steps for shape.rank. Precondition: serves(). The result is not yet sealed.
  Plan (*build)(const Shape& shape);
};

// One line per algorithm, in catalog.cc.
std::span<const Algorithm> algorithm_catalog();
// nullptr when no algorithm has this name.
const Algorithm* find_algorithm(const char* name);

// The geometry of a call: how `collective` is cut into blocks, lanes, pieces and rounds.
//   blocks      of the plan (1 or nranks)
//   max_lanes   lanes of the channel; slot_bytes: payload of one slot
Chunking chunking_for(const Collective& collective, uint32_t nranks, uint32_t blocks, uint32_t max_lanes,
                      uint64_t slot_bytes);

}  // namespace talaria
