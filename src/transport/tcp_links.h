// TcpLinks: reaches the mailboxes of peers on other hosts, by carrying out Puts over TCP.
//
// One object per rank. A link is the sockets of one pair: small Puts use the first, large ones are cut into pieces for
// all. The rank's own thread drives the sockets of the first share by drive(); helper threads of the process drive the
// other shares while the rank is inside an operation (NCCL_SOCKET_NTHREADS). Not thread-safe: one thread at a time, as
// its rank. Its end lets what was sent arrive, also at peers that are slow to read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/unique.h"
#include "service/helper_threads.h"
#include "transport/frame.h"
#include "transport/put.h"
#include "transport/shared_memory.h"
#include "transport/tcp_wire.h"

namespace talaria {

class TcpLinks {
 public:
  // `mailbox` is this rank's own and outlives the object. Wires beyond the first `wires_per_thread` of each link are
  // driven by helper threads.
  TcpLinks(uint32_t nranks, std::span<std::byte> mailbox, uint32_t wires_per_thread);
  ~TcpLinks();
  TcpLinks(const TcpLinks&) = delete;
  TcpLinks& operator=(const TcpLinks&) = delete;

  // Links `peer` by connected, non-blocking sockets. Returns the mirror of its mailbox: payloads of Puts lie there.
  Result<std::byte*> add(uint32_t peer, std::vector<UniqueFd> sockets);
  // After the last add(): starts what threads are needed.
  Status start();

  // An operation begins or ends: helper threads work, or sleep.
  void work(bool busy);
  // Takes over the Puts for `peer`, in order.
  void put(uint32_t peer, PutList& puts);
  // Moves what can be moved; true if anything did.
  bool drive();
  // Has the system taken everything that was put?
  bool flushed() const;
  // Will nothing more come from `peer`? True also for a peer without a link.
  bool ended(uint32_t peer) const;
  bool linked(uint32_t peer) const { return links_[peer] != nullptr; }
  // Why, once ended; of a peer with a link.
  std::string reason(uint32_t peer) const;

 private:
  struct Link {
    Link(SharedMemory memory, std::span<std::byte> mailbox) : mirror(std::move(memory)), arrivals(mailbox) {}
    SharedMemory mirror;
    Arrivals arrivals;
    std::vector<std::unique_ptr<TcpWire>> wires;
    uint64_t order = 0;  // frames so far
    size_t turn = 0;     // the wire that gets the next piece
  };
  void queue(Link& link, const Put& put);
  bool pull_ready();

  const std::span<std::byte> mailbox_;
  const size_t wires_per_thread_;
  const int owner_;                           // process id: a forked child leaves its parent's connections alone
  std::vector<std::unique_ptr<Link>> links_;  // by rank; null: reached otherwise
  std::vector<TcpWire*> own_wires_;           // driven by drive()
  std::vector<std::vector<TcpWire*>> shares_;  // of the helper threads
  std::vector<HelperThreads::Job> jobs_;
  UniqueFd epoll_;                            // over own_wires_, if there are several
};

}  // namespace talaria
