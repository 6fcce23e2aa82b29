// Expected results of one call, bit for bit, by running its named plan on virtual ranks: for comparing engines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "schedule/algorithm.h"
#include "schedule/planner.h"

namespace talaria::sim {

struct ExactCall {
  const char* algorithm;  // name in the catalog; it must serve the operation in this form
  Collective collective;
  uint32_t nranks;
  Form form;
  ChannelRoom room;  // of the channel that carries the call: decides pieces, lanes and rounds
  std::vector<uint64_t> scalars = {};  // per rank, of PreMulSum: an element in the lowest bytes
};

struct Simulated {
  bool ok;
  std::string text;                             // why not
  std::vector<std::vector<std::byte>> outputs;  // per rank: its receive buffer
};

// inputs[r] is rank r's send buffer; empty where the operation reads none (Broadcast's other ranks). In-place calls and
// direct or staged access give the same bits, so they are not asked for. Collectives only.
Simulated simulate(const ExactCall& call, const std::vector<std::vector<std::byte>>& inputs);

}  // namespace talaria::sim
