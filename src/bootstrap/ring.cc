#include "bootstrap/ring.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "bootstrap/socket.h"

namespace talaria {
namespace {

bool try_again(int error) { return error == EAGAIN || error == EINTR; }

}  // namespace

SuccessorNews hear_successor(int socket) {
  RingHeader header{};
  const ssize_t got = recv(socket, &header, sizeof(header), MSG_DONTWAIT);
  if (got < 0 && try_again(errno)) return {SuccessorNews::Kind::kNothing, {}};
  // A notice is one small segment; anything else cannot come from a sane successor.
  if (got == sizeof(header) && header.kind == RingHeader::Kind::kFault) return {SuccessorNews::Kind::kFault, header};
  return {SuccessorNews::Kind::kClosed, {}};
}

void send_fault(int socket, uint32_t rank, RingHeader::Cause cause) {
  RingHeader header{};
  header.kind = RingHeader::Kind::kFault;
  header.rank = rank;
  header.cause = cause;
  // Best effort: who cannot take it notices the closed connection instead.
  [[maybe_unused]] const ssize_t sent = send(socket, &header, sizeof(header), MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::string describe_fault(uint32_t rank, RingHeader::Cause cause) {
  switch (cause) {
    case RingHeader::Cause::kAborted: return fmt::format("rank {} aborted", rank);
    case RingHeader::Cause::kMismatch: return fmt::format("rank {} met a mismatched call", rank);
    default: return fmt::format("rank {} has gone (its connection closed)", rank);
  }
}

Ring::Ring(RingSockets sockets, uint32_t rank, uint32_t nranks, const std::atomic<bool>& abort)
    : sockets_(std::move(sockets)), rank_(rank), nranks_(nranks), abort_(abort), owner_(getpid()) {}

Ring::~Ring() {
  if (getpid() != owner_) return;
  hang_up(sockets_.successor);
  hang_up(sockets_.predecessor);
}

// Once around the ring with empty parts: rank r's header has then been caused by every other rank's call.
Status Ring::barrier() { return all_gather({}); }

// In step s each rank passes on the part of the rank s places before it.
Status Ring::all_gather(std::span<std::byte> all) {
  if (!broken_.ok()) return broken_;
  if (all.size() % nranks_ != 0) {
    return fail(Code::kInternal, "rank {}: all_gather of {} bytes does not divide among {} ranks", rank_, all.size(),
                nranks_);
  }
  const size_t bytes = all.size() / nranks_;
  for (uint32_t step = 0; step + 1 < nranks_; ++step) {
    const uint32_t leaving = (rank_ + nranks_ - step) % nranks_;
    const uint32_t coming = (leaving + nranks_ - 1) % nranks_;
    const RingHeader header{RingHeader::Kind::kData, RingHeader::Cause::kGone, rank_, step, sequence_, bytes};
    TRY(exchange({header, all.subspan(leaving * bytes, bytes)}, {header, all.subspan(coming * bytes, bytes)}));
  }
  ++sequence_;
  return Status();
}

Status Ring::exchange(Transfer out, Transfer in) {
  for (;;) {
    if (abort_.load(std::memory_order_relaxed)) {
      const uint32_t awaited = in.complete() ? successor() : predecessor();
      return break_ring(rank_, RingHeader::Cause::kAborted,
                        fail(Code::kInternal, "rank {} of {}: aborted while waiting for rank {}", rank_, nranks_,
                             awaited));
    }
    const size_t before = out.done + in.done;
    TRY(push(out));
    TRY(pull(in, out.header));
    if (out.complete() && in.complete()) return Status();
    if (out.done + in.done == before) TRY(wait(out, in));
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
    if (got <= 0) return lost(predecessor(), RingHeader::Cause::kGone);
    in.done += static_cast<size_t>(got);
    if (in_header && in.done == sizeof(in.header)) TRY(check(in.header, expected));
  }
  return Status();
}

// The header of a predecessor that makes the same call differs from ours only in its rank.
Status Ring::check(const RingHeader& got, const RingHeader& expected) {
  if (got.kind == RingHeader::Kind::kFault) return lost(got.rank, got.cause);
  if (got.kind == expected.kind && got.sequence == expected.sequence && got.step == expected.step &&
      got.bytes == expected.bytes) {
    return Status();
  }
  return break_ring(rank_, RingHeader::Cause::kMismatch,
                    fail(Code::kInternal, "rank {} of {}: exchange {} has {} bytes per rank here, but rank {} is at "
                         "exchange {} with {} bytes", rank_, nranks_, expected.sequence, expected.bytes, predecessor(),
                         got.sequence, got.bytes));
}

Status Ring::wait(const Transfer& out, const Transfer& in) {
  // Entries that must not wake us have no descriptor: poll reports a hang-up whatever it is asked for.
  pollfd entries[2] = {
      {in.complete() ? -1 : sockets_.predecessor.get(), POLLIN, 0},
      {successor_left_ ? -1 : sockets_.successor.get(), static_cast<short>(out.complete() ? POLLIN : POLLIN | POLLOUT),
       0}};
  const int error = wait_for(entries, Patience{abort_});
  if (error == ECANCELED) return Status();  // exchange() sees the flag
  if (error != 0) return fail(Code::kSystem, "rank {} of {}: poll failed: {}", rank_, nranks_, strerror(error));
  if ((entries[1].revents & ~POLLOUT) != 0) return listen_to_successor(!out.complete());
  return Status();
}

Status Ring::listen_to_successor(bool still_sending) {
  const SuccessorNews news = hear_successor(sockets_.successor.get());
  if (news.kind == SuccessorNews::Kind::kFault) return lost(news.fault.rank, news.fault.cause);
  if (news.kind == SuccessorNews::Kind::kNothing) return Status();
  if (still_sending) return lost(successor(), RingHeader::Cause::kGone);
  successor_left_ = true;
  return Status();
}

Status Ring::lost(uint32_t rank, RingHeader::Cause cause) {
  return break_ring(rank, cause,
                    fail(Code::kRemote, "rank {} of {}: {}", rank_, nranks_, describe_fault(rank, cause)));
}

Status Ring::break_ring(uint32_t rank, RingHeader::Cause cause, Status status) {
  broken_ = status;
  send_fault(sockets_.predecessor.get(), rank, cause);
  if (!mid_send_) send_fault(sockets_.successor.get(), rank, cause);
  return broken_;
}

}  // namespace talaria
