// Child communicators: who belongs to one, and where its ranks meet. The parent's channel is all that is needed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "bootstrap/out_of_band.h"
#include "bootstrap/root_thread.h"
#include "bootstrap/unique_id.h"

namespace talaria {

// A rank's place in a communicator to be, and where its ranks meet.
struct Seat {
  uint32_t rank = 0;
  uint32_t nranks = 0;  // 0: this rank gets no communicator
  std::vector<UniqueId> ids;
  // Of a child: each of its ranks as the parent numbers it, and the meeting point, if it is here.
  std::vector<uint32_t> origins = {};
  std::shared_ptr<OwnedRoot> root = {};
};

// What one rank wants of a split.
struct SplitRequest {
  static constexpr int32_t kNoColor = -1;  // NCCL_SPLIT_NOCOLOR
  int32_t color;  // ranks of one color make one communicator
  int32_t key;    // their order there; the parent's where keys are equal
};

// Collective over the parent. What is wrong on one rank is an error on all, so that none waits for a child in vain.
Result<Seat> seat_by_color(OutOfBand& parent, const SplitRequest& mine, const Config& config);

}  // namespace talaria
