// Which pairs of CPU ranks share memory: what each rank could open, agreed on by all.
#pragma once

#include <vector>

#include "base/status.h"
#include "bootstrap/out_of_band.h"

namespace talaria {

struct Reach {
  std::vector<bool> mapped;  // by rank: both sides have opened each other's mailbox
  bool everyone;             // every pair of the communicator has
};

// `opened`: by rank, whose mailbox this rank can store to; itself included. Collective; a rank that has failed takes
// part too. Its failure is everybody's: each is told which rank it was.
Result<Reach> agree_on_reach(OutOfBand& oob, Status mine, const std::vector<bool>& opened);

}  // namespace talaria
