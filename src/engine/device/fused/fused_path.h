// Fused paths: kernels that carry out a whole named plan without interpreting it, where steps cost more than the wire.
//
// A fused path does exactly what the interpreter would do with the plan: same messages, counters, order of additions. A
// work takes it when its `fused` names it and the launch allows it (one work, its rank's only one, in the parameters);
// otherwise, and with the paths switched off, the interpreter runs the same plan.
#pragma once

#include <cstdint>

#include "engine/work.h"

namespace talaria {

enum class FusedPath : uint8_t {
  kNone,
  kOneShot,  // fused/one_shot.cuh: the plan of algorithm one_shot, in one round of packets
};
inline constexpr uint32_t kMaxFusedRanks = 8;

// The path that can stand in for the work's plan. Reads the plan's steps: give it the host's, before they are replaced.
FusedPath fused_path_of(const Work& work);

}  // namespace talaria
