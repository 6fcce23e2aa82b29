// Child communicators: who belongs to one, and where its ranks meet. The parent's channel is all that is needed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
  // How long the ranks wait for each other where TALARIA_INIT_TIMEOUT does not say; 0: for ever.
  int64_t patience_sec = 0;
  std::function<bool()> meanwhile = {};  // what to do while they are awaited; false: in vain
};

// What one rank wants of a split.
struct SplitRequest {
  static constexpr int32_t kNoColor = -1;  // NCCL_SPLIT_NOCOLOR
  int32_t color;  // ranks of one color make one communicator
  int32_t key;    // their order there; the parent's where keys are equal
};

// What a rank wants of a shrink.
struct ShrinkRequest {
  std::vector<uint32_t> members;  // ranks of the parent that remain, ascending
  bool abort;                     // the parent's operations end first
};

// What a rank of the parent knows of its growth.
struct GrowRequest {
  int32_t nranks;               // of the child
  std::optional<UniqueId> id;   // where the newcomers come; one rank of the parent knows
};

// A meeting point for the ranks of a growth.
Result<UniqueId> create_growth_id(Config config);

// Collective over the parent. What is wrong on one rank is an error on all, so that none waits for a child in vain.
Result<Seat> seat_by_color(OutOfBand& parent, const SplitRequest& mine, const Config& config);
Result<Seat> seat_by_growth(OutOfBand& parent, const GrowRequest& mine);

}  // namespace talaria
