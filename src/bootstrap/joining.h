// Joining: what the steps of one rank's rendezvous share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "base/config.h"
#include "base/status.h"
#include "bootstrap/lobby.h"
#include "bootstrap/out_of_band.h"
#include "bootstrap/root_share.h"
#include "bootstrap/socket.h"
#include "bootstrap/unique_id.h"

namespace talaria {

struct Joining {
  std::span<const UniqueId> ids;  // one root each
  const Secret secret;            // between ring neighbours: of the first id, which all ranks have
  const uint32_t rank, nranks;
  const Config& config;
  const Watch& watch;
  const double until_usec = std::numeric_limits<double>::infinity();  // TALARIA_INIT_TIMEOUT
  // Who waits at a root learns most about who is missing. So the later steps are a little more patient, the last most,
  // and hear the names instead of blaming a neighbour that waits itself.
  static constexpr double kLaterUsec = 1e6;

  uint32_t nroots() const { return static_cast<uint32_t>(ids.size()); }
  uint32_t successor() const { return (rank + 1) % nranks; }
  uint32_t predecessor() const { return (rank + nranks - 1) % nranks; }
  RootShare share() const { return share_of(root_of(rank, nranks, nroots()), nranks, nroots()); }
  bool aborted() const { return watch.abort.stopped(); }
  // Not longer than until `usec`.
  Patience patience(double usec = std::numeric_limits<double>::infinity()) const {
    return Patience{watch.abort, std::min(until_usec, usec), &watch.meanwhile};
  }
  Patience ring_patience() const { return Patience{watch.abort, until_usec + kLaterUsec, &watch.meanwhile}; }
  Status fail_aborted(std::string_view what) const {
    if (const auto reason = watch.abort.reason()) {
      return fail(Code::kRemote, "rank {} of {}: {}", rank, nranks, describe(*reason));
    }
    return fail(Code::kInternal, "rank {} of {}: aborted while waiting for {}", rank, nranks, what);
  }
  Status fail_impatient(std::string_view what) const {
    return fail(Code::kRemote, "rank {} of {}: waited {} s (TALARIA_INIT_TIMEOUT) for {}", rank, nranks,
                config.init_timeout_sec, what);
  }
};

}  // namespace talaria
