#include "bootstrap/ring.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/os.h"
#include "bootstrap/socket.h"

namespace talaria {
namespace {

constexpr double kListenEveryUsec = 300;
constexpr double kSettleUsec = 300e3;

bool try_again(int error) { return error == EAGAIN || error == EINTR; }

}  // namespace

std::string describe(const Departed& departed) {
  switch (departed.how) {
    case Departure::kPresent: return fmt::format("rank {} takes part", departed.rank);
    case Departure::kDied: return fmt::format("rank {} died", departed.rank);
    case Departure::kAborted: return fmt::format("rank {} aborted", departed.rank);
    case Departure::kMismatch: return fmt::format("rank {} met a mismatched call", departed.rank);
    case Departure::kFailed: return fmt::format("rank {} gave up an operation; see its log", departed.rank);
    case Departure::kMissed: return fmt::format("rank {} left although others waited for it", departed.rank);
    case Departure::kAbsent:
      return fmt::format("rank {} has not come in time (TALARIA_INIT_TIMEOUT)", departed.rank);
    case Departure::kRevoked: return fmt::format("rank {} revoked its communicator", departed.rank);
    case Departure::kLeft: return fmt::format("rank {} left (its communicator was destroyed)", departed.rank);
  }
  return fmt::format("rank {} departed", departed.rank);
}

std::optional<OutOfBand::Fault> OutOfBand::settled_fault() const {
  const std::optional<Fault> found = fault();
  return found && now_usec() - found->heard_usec >= kSettleUsec ? found : std::nullopt;
}

SuccessorNews hear_successor(int socket) {
  RingHeader header{};
  const ssize_t got = recv(socket, &header, sizeof(header), MSG_DONTWAIT | MSG_PEEK);
  if (got < 0 && try_again(errno)) return {SuccessorNews::Kind::kNothing, {}};
  // A notice is one small segment; anything else cannot come from a sane successor.
  if (got == sizeof(header) && header.kind == RingHeader::Kind::kNotice) {
    return {SuccessorNews::Kind::kNotice, {header.rank, header.how}};
  }
  return {SuccessorNews::Kind::kClosed, {}};
}

void send_notice(int socket, const Departed& departed) {
  RingHeader header{};
  header.kind = RingHeader::Kind::kNotice;
  header.rank = departed.rank;
  header.how = departed.how;
  // Best effort: who cannot take it notices the closed connection instead.
  [[maybe_unused]] const ssize_t sent = send(socket, &header, sizeof(header), MSG_NOSIGNAL | MSG_DONTWAIT);
}

Ring::Ring(RingSockets sockets, uint32_t rank, uint32_t nranks, const StopFlag& abort, double timeout_usec)
    : sockets_(std::move(sockets)), rank_(rank), nranks_(nranks), abort_(abort), timeout_usec_(timeout_usec),
      owner_(getpid()), backward_{sockets_.predecessor.get(), predecessor()},
      forward_{sockets_.successor.get(), successor()}, departures_(nranks) {}

Ring::~Ring() {
  if (getpid() != owner_) return;
  hang_up(sockets_.successor);
  hang_up(sockets_.predecessor);
  hang_up(sockets_.listener);
}

SocketAddress Ring::address() const { return local_address(sockets_.listener.get()); }

UniqueFd Ring::door() const { return UniqueFd(fcntl(sockets_.listener.get(), F_DUPFD_CLOEXEC, 0)); }

// Once around the ring with empty parts: rank r's header has then been caused by every other rank's call.
Status Ring::barrier() { return all_gather({}); }

// In step s each rank passes on the part of the rank s places before it.
Status Ring::all_gather(std::span<std::byte> all) {
  const std::lock_guard lock(mutex_);
  if (!broken_.ok()) return fail(broken_.code(), "{}", broken_text_);
  TRY(refuse_departed());
  if (all.size() % nranks_ != 0) {
    return fail(Code::kInternal, "rank {}: all_gather of {} bytes does not divide among {} ranks", rank_, all.size(),
                nranks_);
  }
  const size_t bytes = all.size() / nranks_;
  for (uint32_t step = 0; step + 1 < nranks_; ++step) {
    const uint32_t leaving = (rank_ + nranks_ - step) % nranks_;
    const uint32_t coming = (leaving + nranks_ - 1) % nranks_;
    const RingHeader header{RingHeader::Kind::kData, Departure::kPresent, rank_, step, sequence_, bytes};
    TRY(exchange({header, all.subspan(leaving * bytes, bytes)}, {header, all.subspan(coming * bytes, bytes)}));
  }
  ++sequence_;
  return Status();
}

Status Ring::exchange(Transfer out, Transfer in) {
  double until_usec = now_usec() + timeout_usec_;
  for (;;) {
    if (abort_.stopped()) {
      if (const auto reason = abort_.reason()) return lost(*reason);
      const uint32_t awaited = in.complete() ? successor() : predecessor();
      return break_ring({rank_, Departure::kAborted},
                        fail(Code::kInternal, "rank {} of {}: aborted while waiting for rank {}", rank_, nranks_,
                             awaited));
    }
    if (const auto fault = settled_fault()) return lost(*fault);
    // Without its successor this exchange may still come to its end; if it has not by now, it never will.
    if (now_usec() - successor_closed_usec_ >= kSettleUsec) return lost({successor(), Departure::kDied});
    const size_t before = out.done + in.done;
    TRY(push(out));
    TRY(pull(in, out.header));
    if (out.complete() && in.complete()) return Status();
    if (out.done + in.done == before) TRY(wait(out, in, until_usec));
    else until_usec = now_usec() + timeout_usec_;
  }
}

Status Ring::push(Transfer& out) {
  if (out.complete()) return Status();
  const size_t of_header = std::min(out.done, sizeof(out.header));
  const size_t of_part = out.done - of_header;
  std::array<iovec, 2> rest{
      iovec{reinterpret_cast<char*>(&out.header) + of_header, sizeof(out.header) - of_header},
      iovec{out.part.data() + of_part, out.part.size() - of_part}};
  msghdr message{};
  message.msg_iov = rest.data();
  message.msg_iovlen = rest.size();
  const ssize_t sent = sendmsg(sockets_.successor.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) return try_again(errno) ? Status() : listen_to_successor(true);
  out.done += static_cast<size_t>(sent);
  mid_send_ = out.done != 0 && !out.complete();
  return Status();
}

Status Ring::pull(Transfer& in, const RingHeader& expected) {
  while (!in.complete()) {
    const bool in_header = in.done < sizeof(in.header);
    std::byte* to = in_header ? reinterpret_cast<std::byte*>(&in.header) + in.done
                              : in.part.data() + (in.done - sizeof(in.header));
    const size_t bytes = (in_header ? sizeof(in.header) : sizeof(in.header) + in.part.size()) - in.done;
    const ssize_t got = recv(sockets_.predecessor.get(), to, bytes, MSG_DONTWAIT);
    if (got < 0 && try_again(errno)) return Status();
    if (got <= 0) return lost({predecessor(), Departure::kDied});
    in.done += static_cast<size_t>(got);
    if (in_header && in.done == sizeof(in.header)) TRY(check(in.header, expected));
  }
  return Status();
}

// The header of a predecessor that makes the same call differs from ours only in its rank.
Status Ring::check(const RingHeader& got, const RingHeader& expected) {
  if (got.kind == RingHeader::Kind::kNotice) return lost({got.rank, got.how});
  if (got.kind == expected.kind && got.sequence == expected.sequence && got.step == expected.step &&
      got.bytes == expected.bytes) {
    return Status();
  }
  return break_ring({rank_, Departure::kMismatch},
                    fail(Code::kInternal, "rank {} of {}: exchange {} has {} bytes per rank here, but rank {} is at "
                         "exchange {} with {} bytes", rank_, nranks_, expected.sequence, expected.bytes, predecessor(),
                         got.sequence, got.bytes));
}

Status Ring::wait(const Transfer& out, const Transfer& in, double until_usec) {
  // Entries that must not wake us have no descriptor: poll reports a hang-up whatever it is asked for.
  pollfd entries[2] = {
      {in.complete() ? -1 : sockets_.predecessor.get(), POLLIN, 0},
      {successor_left_ ? -1 : sockets_.successor.get(), static_cast<short>(out.complete() ? POLLIN : POLLIN | POLLOUT),
       0}};
  const int error = wait_for(entries, Patience{abort_, std::min(until_usec, now_usec() + kAbortPollMsec * 1e3)});
  if (error == ECANCELED) return Status();  // exchange() sees the flag
  if (error == ETIMEDOUT && now_usec() < until_usec) return Status();  // and faults that have settled
  if (error == ETIMEDOUT) {
    // The part that does not come is that of the rank to blame, whoever was to pass it on.
    const uint32_t owner = (predecessor() + nranks_ - out.header.step) % nranks_;
    return lost({in.complete() ? successor() : owner, Departure::kAbsent});
  }
  if (error != 0) return fail(Code::kSystem, "rank {} of {}: poll failed: {}", rank_, nranks_, strerror(error));
  if ((entries[1].revents & ~POLLOUT) != 0) return listen_to_successor(!out.complete());
  return Status();
}

Status Ring::listen_to_successor(bool still_sending) {
  const SuccessorNews news = hear_successor(sockets_.successor.get());
  if (news.kind == SuccessorNews::Kind::kNothing) return Status();
  // Who has left had received all it needed of this call, and so had our successor if it is the one that says so.
  const bool fault = news.kind == SuccessorNews::Kind::kNotice && news.departed.how != Departure::kLeft;
  if (fault || (news.kind == SuccessorNews::Kind::kNotice && still_sending)) return lost(news.departed);
  if (still_sending) return lost({successor(), Departure::kDied});
  successor_left_ = true;
  if (news.kind == SuccessorNews::Kind::kClosed) successor_closed_usec_ = now_usec();
  return Status();
}

Status Ring::lost(const Departed& departed) {
  return break_ring(departed, fail(Code::kRemote, "rank {} of {}: {}", rank_, nranks_, describe(departed)));
}

Status Ring::break_ring(const Departed& departed, Status status) {
  broken_ = status;
  broken_text_ = last_error_text();
  note(departed);
  send_notice(sockets_.predecessor.get(), departed);
  if (!mid_send_) send_notice(sockets_.successor.get(), departed);
  return broken_;
}

// An exchange needs every rank.
Status Ring::refuse_departed() {
  for (uint32_t r = 0; r < nranks_; ++r) {
    if (departure_of(r) != Departure::kPresent) return lost({r, departure_of(r)});
  }
  return Status();
}

Departure Ring::departure_of(uint32_t rank) const { return departures_[rank].load(std::memory_order_acquire); }

std::optional<OutOfBand::Fault> Ring::fault() const {
  const uint64_t packed = fault_.load(std::memory_order_acquire);
  if (packed == 0) return std::nullopt;
  return Fault{{static_cast<uint32_t>(packed >> 32), static_cast<Departure>(packed & UINT32_MAX)},
               fault_usec_.load(std::memory_order_relaxed)};
}

// True for news. The first word about a rank stands, except that one that left may turn out to be missed.
bool Ring::note(const Departed& departed) {
  if (departed.rank >= nranks_ || departed.how == Departure::kPresent) return false;
  std::atomic<Departure>& known = departures_[departed.rank];
  const bool missed = known == Departure::kLeft && departed.how == Departure::kMissed;
  if (known != Departure::kPresent && !missed) return false;
  known.store(departed.how, std::memory_order_release);
  if (is_fault(departed.how) && fault_.load(std::memory_order_relaxed) == 0) {
    fault_usec_.store(now_usec(), std::memory_order_relaxed);
    fault_.store(uint64_t{departed.rank} << 32 | static_cast<uint32_t>(departed.how), std::memory_order_release);
  }
  return true;
}

void Ring::listen() {
  if (getpid() != owner_) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !broken_.ok()) return;
  const double now = now_usec();
  if (now - listened_usec_ < kListenEveryUsec) return;
  listened_usec_ = now;
  pollfd entries[2] = {{backward_.closed ? -1 : backward_.socket, POLLIN | POLLRDHUP, 0},
                       {forward_.closed ? -1 : forward_.socket, POLLIN | POLLRDHUP, 0}};
  if (poll(entries, 2, 0) <= 0) return;
  constexpr short kEnd = POLLRDHUP | POLLHUP | POLLERR;
  if (entries[0].revents != 0) hear(backward_, forward_, (entries[0].revents & kEnd) != 0);
  if (entries[1].revents != 0) hear(forward_, backward_, (entries[1].revents & kEnd) != 0);
}

// Takes the notices waiting on one side and passes the new ones on. `ended`: nothing more will come.
void Ring::hear(Side& from, const Side& to, bool ended) {
  for (;;) {
    RingHeader header{};
    ssize_t got = recv(from.socket, &header, sizeof(header), MSG_DONTWAIT | MSG_PEEK);
    if (got < 0 && try_again(errno)) return;
    if (got > 0 && got < static_cast<ssize_t>(sizeof(header))) return;
    if (got <= 0) {
      from.closed = true;
      return pass_on({from.neighbour, Departure::kDied}, to);
    }
    if (header.kind != RingHeader::Kind::kNotice) return look_behind_data(from, to, ended);
    [[maybe_unused]] const ssize_t taken = recv(from.socket, &header, sizeof(header), MSG_DONTWAIT);
    pass_on({header.rank, header.how}, to);
  }
}

// Data stays: it belongs to an exchange that this rank has yet to enter. It must not hide the news behind it.
void Ring::look_behind_data(Side& from, const Side& to, bool ended) {
  std::vector<std::byte> seen(size_t{64} << 10);
  const ssize_t got = recv(from.socket, seen.data(), seen.size(), MSG_DONTWAIT | MSG_PEEK);
  if (got <= 0) return;
  RingHeader header{};
  for (size_t at = 0; at + sizeof(header) <= static_cast<size_t>(got);) {
    std::memcpy(&header, seen.data() + at, sizeof(header));
    if (header.kind == RingHeader::Kind::kNotice) pass_on({header.rank, header.how}, to);
    const size_t bytes = sizeof(header) + (header.kind == RingHeader::Kind::kData ? header.bytes : 0);
    if (bytes > seen.size()) return;
    at += bytes;
  }
  if (ended && static_cast<size_t>(got) < seen.size()) pass_on({from.neighbour, Departure::kDied}, to);
}

void Ring::pass_on(const Departed& departed, const Side& to) {
  if (note(departed) && !to.closed) send_notice(to.socket, departed);
}

void Ring::say_goodbye(Departure how) {
  if (getpid() != owner_) return;
  const std::lock_guard lock(mutex_);
  if (std::exchange(said_goodbye_, true) || !broken_.ok()) return;
  for (const Side* side : {&backward_, &forward_}) send_notice(side->socket, {rank_, how});
}

void Ring::report(const Departed& departed) {
  if (getpid() != owner_) return;
  const std::lock_guard lock(mutex_);
  if (!note(departed)) return;
  for (const Side* side : {&backward_, &forward_}) send_notice(side->socket, departed);
}

}  // namespace talaria
