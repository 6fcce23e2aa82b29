// Ring: the OutOfBand of several ranks, each connected to its successor and its predecessor.
//
// Data flows from predecessor to successor; against that direction travels only the notice of a fault, so that ranks
// far from the fault learn which rank it was. The first fault ends the ring: every later call returns it again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "base/unique.h"
#include "bootstrap/out_of_band.h"

namespace talaria {

// In front of every part, and all of a fault's notice.
struct RingHeader {
  enum class Kind : uint32_t { kData = 0x64617461, kFault = 0x6661756c };
  enum class Cause : uint32_t { kGone, kAborted, kMismatch };
  Kind kind;
  Cause cause;        // of a fault
  uint32_t rank;      // the sender of data, or the rank at fault
  uint32_t step;      // of the all-gather
  uint64_t sequence;  // all-gathers before this one
  uint64_t bytes;     // of the part
};

// What a successor can do besides taking our data.
struct SuccessorNews {
  enum class Kind : uint8_t { kNothing, kClosed, kFault } kind;
  RingHeader fault;
};
SuccessorNews hear_successor(int socket);
void send_fault(int socket, uint32_t rank, RingHeader::Cause cause);
// "rank 3 has gone (its connection closed)"
std::string describe_fault(uint32_t rank, RingHeader::Cause cause);

// The two connections of one rank; both sides of each have proven the secret.
struct RingSockets {
  UniqueFd predecessor, successor;
};

class Ring : public OutOfBand {
 public:
  Ring(RingSockets sockets, uint32_t rank, uint32_t nranks, const std::atomic<bool>& abort);
  ~Ring() override;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  uint32_t rank() const override { return rank_; }
  uint32_t nranks() const override { return nranks_; }
  Status all_gather(std::span<std::byte> all) override;
  Status barrier() override;

 private:
  // A header and a part on their way, as one count of bytes over both.
  struct Transfer {
    RingHeader header;
    std::span<std::byte> part;
    size_t done = 0;
    bool complete() const { return done == sizeof(header) + part.size(); }
  };

  Status exchange(Transfer out, Transfer in);
  Status push(Transfer& out);
  Status pull(Transfer& in, const RingHeader& expected);
  Status check(const RingHeader& got, const RingHeader& expected);
  Status wait(const Transfer& out, const Transfer& in);
  Status listen_to_successor(bool still_sending);
  Status lost(uint32_t rank, RingHeader::Cause cause);
  Status break_ring(uint32_t rank, RingHeader::Cause cause, Status status);
  uint32_t predecessor() const { return (rank_ + nranks_ - 1) % nranks_; }
  uint32_t successor() const { return (rank_ + 1) % nranks_; }

  RingSockets sockets_;
  const uint32_t rank_, nranks_;
  const std::atomic<bool>& abort_;
  const int owner_;              // process id: a forked child must not shut its parent's connections down
  uint64_t sequence_ = 0;
  bool mid_send_ = false;        // half a transfer is out: a notice to the successor would be read as its rest
  bool successor_left_ = false;  // it closed after taking all we had for it: harmless unless we send again
  Status broken_;
};

}  // namespace talaria
