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

// A value as far as messages show it, and its hash. Case does not count.
struct ChoiceText {
  uint64_t hash;
  char text[40];
};
inline constexpr int kMostChoices = 8;

struct ChoiceInputs {
  uint32_t version;         // of this struct and of the plans
  EngineKind kind;
  bool failed;                 // this rank cannot go on and has said why
  uint8_t reserved[2];
  int32_t min_ctas, max_ctas;  // 0: no wish
  ChoiceText choices[kMostChoices];  // of the variables that must be equal, in the order of their rows
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

// Other versions of the plans are refused, or warned of if `refuse_versions` is false.
Result<Agreement> agree(std::span<const ChoiceInputs> all, bool refuse_versions = true);

// Collective: the selection table of rank 0, which fills it from `limits`. kInvalidUsage naming a rank to which the
// table means something else.
Result<Selection> agree_on_selection(const ChoiceLimits& limits, const Config& config, OutOfBand& oob);

}  // namespace talaria
