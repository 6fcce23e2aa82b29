// RingJoin: how one rank takes its place in the ring. It greets its successor, and awaits the welcome and its
// predecessor. A rank that gives up tells its predecessor who is gone; so the news goes round the ring.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "base/unique.h"
#include "bootstrap/joining.h"
#include "bootstrap/lobby.h"
#include "bootstrap/ring.h"

namespace talaria {

class RingJoin {
 public:
  RingJoin(const Joining& join, UniqueFd listener) : join_(join), lobby_(std::move(listener), join.secret) {}

  Status greet_successor(const SocketAddress& address);
  Result<RingSockets> finish();
  // Waits a moment for the predecessor and tells it: else it would find this rank's port closed, and name this rank
  // instead of the one that is gone.
  void tell_predecessor(const Departed& departed);

 private:
  void admit(Guest guest);
  Status hear();
  Status lost(const Departed& departed);

  const Joining& join_;
  Lobby lobby_;
  RingSockets sockets_;
  Proof welcome_{};
  size_t welcomed_ = 0;
};

}  // namespace talaria
