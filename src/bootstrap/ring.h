// Ring: the OutOfBand of several ranks, each connected to its successor and its predecessor.
//
// Data flows from predecessor to successor. Notices of departed ranks travel in both directions, so that ranks far away
// learn which rank it was: who hears one for the first time passes it on. A fault during a collective call ends the
// ring: every later one returns it again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/unique.h"
#include "bootstrap/out_of_band.h"

namespace talaria {

// In front of every part, and all of a notice.
struct RingHeader {
  enum class Kind : uint32_t { kData = 0x64617461, kNotice = 0x6e6f7465 };
  Kind kind;
  Departure how;      // of a notice
  uint32_t rank;      // the sender of data, or the departed rank
  uint32_t step;      // of the all-gather
  uint64_t sequence;  // all-gathers before this one
  uint64_t bytes;     // of the part
};

// What a successor can do besides taking our data.
struct SuccessorNews {
  enum class Kind : uint8_t { kNothing, kClosed, kNotice } kind;
  Departed departed;
};
SuccessorNews hear_successor(int socket);
void send_notice(int socket, const Departed& departed);

// The two connections of one rank; both sides of each have proven the secret.
struct RingSockets {
  UniqueFd predecessor, successor;
  UniqueFd listener{};  // where the predecessor came in
};

class Ring : public OutOfBand {
 public:
  // A collective call that hears nothing for `timeout_usec` fails.
  Ring(RingSockets sockets, uint32_t rank, uint32_t nranks, const StopFlag& abort,
       double timeout_usec = std::numeric_limits<double>::infinity());
  ~Ring() override;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  uint32_t rank() const override { return rank_; }
  uint32_t nranks() const override { return nranks_; }
  Status all_gather(std::span<std::byte> all) override;
  Status barrier() override;
  SocketAddress address() const override;
  UniqueFd door() const override;
  void set_patience(double usec) override { timeout_usec_ = usec; }
  const StopFlag& abort_flag() const override { return abort_; }
  void listen() override;
  Departure departure_of(uint32_t rank) const override;
  std::optional<Fault> fault() const override;
  void say_goodbye(Departure how) override;
  void report(const Departed& departed) override;

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
  Status wait(const Transfer& out, const Transfer& in, double until_usec);
  Status listen_to_successor(bool still_sending);
  Status lost(const Departed& departed);
  Status break_ring(const Departed& departed, Status status);
  Status refuse_departed();
  // One direction of the ring, as the listener sees it.
  struct Side {
    int socket;
    uint32_t neighbour;
    bool closed = false;
  };
  void hear(Side& from, const Side& to, bool ended);
  void look_behind_data(Side& from, const Side& to, bool ended);
  void pass_on(const Departed& departed, const Side& to);
  bool note(const Departed& departed);
  uint32_t predecessor() const { return (rank_ + nranks_ - 1) % nranks_; }
  uint32_t successor() const { return (rank_ + 1) % nranks_; }

  RingSockets sockets_;
  const uint32_t rank_, nranks_;
  const StopFlag& abort_;
  double timeout_usec_;
  const int owner_;              // process id: a forked child must not shut its parent's connections down
  std::mutex mutex_;             // guards what follows, except the atomics
  Side backward_, forward_;
  double listened_usec_ = 0;
  bool said_goodbye_ = false;
  std::vector<std::atomic<Departure>> departures_;  // by rank
  std::atomic<uint64_t> fault_{0};                  // the first: rank in the high half, Departure in the low
  std::atomic<double> fault_usec_{0};               // written before fault_
  uint64_t sequence_ = 0;
  bool mid_send_ = false;        // half a transfer is out: a notice to the successor would be read as its rest
  bool successor_left_ = false;  // it closed after taking all we had for it: harmless unless we send again
  double successor_closed_usec_ = std::numeric_limits<double>::infinity();  // when, if it did so without a goodbye
  Status broken_;
  std::string broken_text_;
};

}  // namespace talaria
