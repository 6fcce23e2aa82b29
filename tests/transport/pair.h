// Two ranks that reach each other's mailbox, by each transport in turn: what the conformance suite runs on.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "transport/put.h"

namespace talaria::test {

// One rank's view of the other.
class End {
 public:
  virtual ~End() = default;
  // Own mailbox: words are loaded from here, messages read.
  virtual std::byte* mailbox() = 0;
  // Where to store the payload that belongs at `offset` of the peer's mailbox.
  virtual std::byte* place(uint64_t offset) = 0;
  // Raises a word at the peer, after the payload.
  virtual void put(const Put& put) = 0;
  // Makes progress, as a rank that waits does.
  virtual void drive() {}
  // Has everything left this rank?
  virtual bool flushed() { return true; }
  virtual bool ended() { return false; }

  uint64_t load(uint64_t word) {
    return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(mailbox() + word)).load(std::memory_order_acquire);
  }
};

using Ends = std::pair<std::unique_ptr<End>, std::unique_ptr<End>>;

struct TransportCase {
  std::string name;
  std::function<Ends(size_t mailbox_bytes)> connect;
};

TransportCase process_memory();
TransportCase shared_memory();
// `own`: sockets that the rank drives itself; `helped`: by threads of the process, as many each.
TransportCase tcp(uint32_t own, uint32_t helpers);

// A connected pair of non-blocking TCP sockets.
std::pair<int, int> connected_sockets();

}  // namespace talaria::test
