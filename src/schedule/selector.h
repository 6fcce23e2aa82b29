// Selector: which algorithm and channel carry out a collective.
//
// An integer-only function of the call's arguments and of what was agreed at init; never of pointers, alignment or
// local measurements, so that all ranks choose alike.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "schedule/algorithm.h"
#include "schedule/selection_table.h"

namespace talaria {

// Everything a choice depends on besides the call: equal on all ranks after init.
struct Selection {
  uint32_t nranks = 1;
  Form form = Form::kStaged;
  SelectionTable table{};
  std::string algorithms, protocols;  // NCCL_ALGO, NCCL_PROTO as given, for messages
  uint64_t direct_bytes = 0;          // see ChoiceLimits
};

struct Choice {
  const Algorithm* algorithm;
  Form form;
  Channel channel;
};

// kInvalidUsage naming NCCL_ALGO and NCCL_PROTO when they leave nothing for the operation.
Result<Choice> select(const Collective& collective, const Selection& selection);

}  // namespace talaria
