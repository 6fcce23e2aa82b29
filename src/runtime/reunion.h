// Reunion: how ranks of a communicator meet again without its ring, which a dead or an uninvited rank breaks.
//
// Every rank goes on listening where its ring predecessor came in, and has learned at init where the others do. The
// first of those who are to meet runs a root there, and goes on listening afterwards. The root's secret depends on who
// is to meet: so who comes for another meeting stays outside until it begins. While ranks wait for each other they pass
// on what the ring says of ranks that are gone. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "bootstrap/out_of_band.h"
#include "bootstrap/root_thread.h"
#include "bootstrap/unique_id.h"
#include "runtime/child.h"

namespace talaria {

class Reunion {
 public:
  // Where ranks of a communicator listen, by rank, and what only they know.
  struct Doors {
    std::vector<SocketAddress> addresses;
    std::string secret;
  };
  // `own` outlives this object and what waits at its seats.
  Reunion(Doors doors, OutOfBand& own) : doors_(std::move(doors)), own_(own) {}

  using Gone = std::function<bool(uint32_t rank)>;
  // This rank's seat among `members`, ascending, which all call alike. They ask `gone`, the first of them from another
  // thread until the meeting ends or this object does, whether a rank can come no more: the meeting then fails, and so
  // it does when some have not come after a time.
  Result<Seat> seat_among(const std::vector<uint32_t>& members, const Gone& gone);

 private:
  UniqueId id_for(const std::vector<uint32_t>& members) const;

  const Doors doors_;
  OutOfBand& own_;
  // Of the last meeting here.
  std::unique_ptr<OwnedRoot> root_;
};

}  // namespace talaria
