// OutOfBand: the slow, reliable channel between the ranks of one communicator, used for set-up and tear-down only.
//
// Built by rendezvous(): every rank proves the id's secret to the root, learns its neighbour, and joins a ring of
// sockets. All calls are collective unless said otherwise and block until done, `abort` is set, or a peer fails
// (kRemote, naming the rank). Not thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/config.h"
#include "base/status.h"
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

  template <typename T>
  Result<std::vector<T>> all_gather_value(const T& mine) {
    std::vector<T> all(nranks());
    all[rank()] = mine;
    if (Status status = all_gather(std::as_writable_bytes(std::span(all))); !status.ok()) return status;
    return all;
  }
};

// Joins the communicator of `id`. `abort` may be set by another thread at any time; it must outlive the result.
Result<std::unique_ptr<OutOfBand>> rendezvous(const UniqueId& id, uint32_t rank, uint32_t nranks, const Config& config,
                                              const std::atomic<bool>& abort);

}  // namespace talaria
