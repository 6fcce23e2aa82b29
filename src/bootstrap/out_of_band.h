// OutOfBand: the slow, reliable channel between the ranks of one communicator, used for set-up and tear-down only.
//
// Built by rendezvous(): every rank proves the id's secret to the root, learns its neighbour, and joins a ring of
// sockets. All calls are collective unless said otherwise and block until done, `abort` is set, or a peer fails
// (kRemote, naming the rank). One thread at a time makes collective calls; the others may come from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "base/unique.h"
#include "bootstrap/departure.h"
#include "bootstrap/stop_flag.h"
#include "bootstrap/unique_id.h"

namespace talaria {

class OutOfBand {
 public:
  virtual ~OutOfBand() = default;
  virtual uint32_t rank() const = 0;
  virtual uint32_t nranks() const = 0;
  // `all` holds nranks equal parts; part [rank] is given, the others are filled in.
  virtual Status all_gather(std::span<std::byte> all) = 0;
  virtual Status barrier() = 0;

  // Where this rank listens for as long as this object lives; empty for a single rank.
  virtual SocketAddress address() const { return {}; }
  // That listener, as a descriptor of its own, for ranks that meet again without this channel.
  virtual UniqueFd door() const { return {}; }
  // From now on a collective call fails that hears nothing for `usec`.
  virtual void set_patience(double) {}
  // Set when the communicator is aborted; what waits for peers by other means than this object looks at it too.
  virtual const StopFlag& abort_flag() const {
    static const StopFlag never;
    return never;
  }

  // --- who is still there. Not collective; none of these blocks or needs a peer.
  // Hears what neighbours say of departed ranks and passes it on; cheap, and rate-limited. News travels only through
  // ranks that listen: who waits for others does so about once a millisecond. While another thread is inside a
  // collective call this does nothing, because that call listens itself.
  virtual void listen() {}
  // What has been heard so far.
  virtual Departure departure_of(uint32_t) const { return Departure::kPresent; }
  // The first fault heard of, and since when (now_usec()).
  struct Fault : Departed {
    double heard_usec;
  };
  virtual std::optional<Fault> fault() const { return std::nullopt; }
  // The same once it is old enough to end waits for others too: a rank may end without goodbye after its last
  // operation, while the others are still finishing that one without its help.
  std::optional<Fault> settled_fault() const;
  // Tells the others, once, that this rank takes part no longer; without it the end of the object looks like a death.
  virtual void say_goodbye(Departure) {}
  // Tells the others what only this rank has found out: that one left although it was waited for, or died.
  virtual void report(const Departed&) {}

  template <typename T>
  Result<std::vector<T>> all_gather_value(const T& mine) {
    std::vector<T> all(nranks());
    all[rank()] = mine;
    if (Status status = all_gather(std::as_writable_bytes(std::span(all))); !status.ok()) return status;
    return all;
  }
};

// How long ranks wait for each other without a word: TALARIA_INIT_TIMEOUT.
double patience_usec(const Config& config);

// What a rank that waits for the others looks at.
struct Watch {
  Watch(const StopFlag& abort_flag, std::function<bool()> task = {})  // NOLINT: the flag is enough for most
      : abort(abort_flag), meanwhile(std::move(task)) {}
  const StopFlag& abort;            // may be set by another thread at any time; outlives what is made
  // Called about twenty times a second by who waits; false: in vain. May be empty.
  std::function<bool()> meanwhile;
};

// Joins the communicator of `ids`, the same on all ranks, each of which is a meeting point for its share of the ranks
// (root_share.h).
Result<std::unique_ptr<OutOfBand>> rendezvous(std::span<const UniqueId> ids, uint32_t rank, uint32_t nranks,
                                              const Config& config, const Watch& watch);
Result<std::unique_ptr<OutOfBand>> rendezvous(const UniqueId& id, uint32_t rank, uint32_t nranks, const Config& config,
                                              const Watch& watch);

}  // namespace talaria
