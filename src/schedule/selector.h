// Selector: which algorithm and channel carry out a collective.
//
// An integer-only function of the call's arguments and of limits agreed at init; never of pointers, alignment or local
// measurements, so that all ranks choose alike.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "schedule/algorithm.h"

namespace talaria {

// The agreed inputs of the choice: equal on all ranks after init.
struct ChoiceLimits {
  uint32_t nranks = 1;
  Form form = Form::kStaged;
  bool packets = false;            // the engine implements the packet channel
  uint64_t one_shot_bytes = 0;     // all-reduce, reduce: most bytes, size · (nranks-1), a rank receives in one shot
  uint64_t one_shot_packet_bytes = 0;  // of those, most that go as packets
  uint64_t packet_bytes = 0;       // other operations: largest block sent as packets
  std::string algorithm;           // TALARIA_ALGO, empty: free choice
  std::string protocol;            // TALARIA_PROTO, empty: free choice
};

struct Choice {
  const Algorithm* algorithm;
  Form form;
  Channel channel;
};

// kInvalidUsage when TALARIA_ALGO or TALARIA_PROTO names nothing known.
Result<Choice> select(const Collective& collective, const ChoiceLimits& limits);

}  // namespace talaria
