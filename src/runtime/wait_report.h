// What a CPU rank waits for, in words: for the text of a fault, and for the log when a wait has taken too long.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/host/executor.h"
#include "engine/work.h"

namespace talaria {

// "operation 7 (AllReduce), waiting for rank 2 at step 3 of round 0"
std::string describe(const HostWait& wait);

// Logs, as warnings, every wait of `rank` and the operations of its group that come after them.
void log_pending(uint32_t rank, std::span<const HostWait> waits, std::span<const Work> works);

}  // namespace talaria
