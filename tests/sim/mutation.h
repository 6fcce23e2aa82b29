// Mutation: every small way to break a plan, one at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "schedule/plan.h"

namespace talaria::sim {

enum class Change : uint8_t {
  kDropWait,
  kDropSignal,
  kWeakenSignal,     // the signal no longer orders the stores before it
  kDropRaw,
  kDropFinal,
  kSwapSources,      // two neighbours in addition order
  kOtherFifo,
  kOtherPeer,
  kDropImpliedAck,
  kAddImpliedAck,
  kDropCreditAtStart,
};
const char* name_of(Change change);
const char* name_of(Place place);

struct Mutant {
  Change change;
  Place place;      // of the Ref changed; kInput where a step or a peer's use is changed
  bool source;
  uint32_t steps_after;  // steps of the stream after the changed one
  std::string where;
  std::string key;  // equal for the same change in another rank's plan
  std::shared_ptr<const Plan> plan;
};

std::vector<Mutant> mutants_of(const Plan& plan);

}  // namespace talaria::sim
