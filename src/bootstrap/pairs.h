// connect_pairs(): sockets for data between pairs of ranks, set up through the ring.
#pragma once

#include <cstdint>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "base/unique.h"
#include "bootstrap/out_of_band.h"

namespace talaria {

// Sockets per pair that the configuration asks for: 1 to 64.
uint32_t sockets_per_pair(const Config& config);

// Connects this rank with every `wanted` one; the wish is mutual. Returns, by rank, as many sockets as both sides ask
// for: non-blocking, proven by a secret that only ranks of the communicator know. Collective over all ranks of `oob`,
// also those that want nobody. If any rank fails, all do, and each is told which one it was.
Result<std::vector<std::vector<UniqueFd>>> connect_pairs(OutOfBand& oob, const std::vector<bool>& wanted,
                                                         const Config& config);

}  // namespace talaria
