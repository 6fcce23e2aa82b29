// Checks on the cards of all ranks that need no device: every rank comes to the same verdict.
#pragma once

#include <cstdint>
#include <span>

#include "base/config.h"
#include "base/status.h"
#include "runtime/engine.h"

namespace talaria {

// kInvalidUsage naming both ranks if two share a GPU and NCCL_MULTI_RANK_GPU_ENABLE is not 1.
Status check_duplicate_gpus(std::span<const RankCard> cards, const Config& config);

// A bus id "0000:1b:00.0" as NCCL prints it: its hexadecimal digits as one number.
uint64_t bus_number(const RankCard& card);

// Tells the communicators alive at one time apart, equally on all their ranks.
uint64_t communicator_identity(std::span<const RankCard> cards);

}  // namespace talaria
