// Agreement: what the ranks of a communicator must know of each other before they can choose alike.
//
// Every rank sends its choice inputs; limits are combined (maxCTAs: minimum, minCTAs: maximum), anything else that
// differs is an invalid usage that names the variable, the ranks and the values.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/config.h"
#include "base/status.h"
#include "bootstrap/out_of_band.h"
#include "runtime/engine.h"
#include "schedule/planner.h"

namespace talaria {

struct ChoiceInputs {
  uint32_t version;         // of this struct and of the plans
  EngineKind kind;
  uint8_t reserved[3];
  int32_t min_ctas, max_ctas;  // 0: no wish
  char algorithm[16], protocol[16];
  char bus_id[16];
  uint64_t host_hash;
  uint32_t multiprocessors;  // of the rank's GPU
};

ChoiceInputs choice_inputs_of(const Config& config, const Engine& engine, int min_ctas, int max_ctas);

// What all ranks computed alike from everybody's inputs.
struct Agreement {
  ChoiceLimits limits;      // form still open: known after connect
  MailboxLayout layout;
  ChannelRoom rooms[kChannels];
};

Result<Agreement> agree(std::span<const ChoiceInputs> all);

}  // namespace talaria
