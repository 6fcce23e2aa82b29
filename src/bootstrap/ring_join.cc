#include "bootstrap/ring_join.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/os.h"
#include "bootstrap/address.h"
#include "bootstrap/socket.h"

namespace talaria {
namespace {

constexpr double kTellUsec = 5e5;  // for a predecessor that has yet to connect and should learn who is gone

}  // namespace

Status RingJoin::greet_successor(const SocketAddress& address) {
  const Patience patience = join_.ring_patience();
  int error = connect_to(address, patience, sockets_.successor);
  const Greeting greeting = make_greeting(join_.secret, join_.rank, join_.nranks);
  if (error == 0) error = send_all(sockets_.successor.get(), std::as_bytes(std::span(&greeting, 1)), patience);
  if (error == 0) return Status();
  if (error == ECANCELED) return join_.fail_aborted(fmt::format("rank {} to answer", join_.successor()));
  tell_predecessor({join_.successor(), Departure::kDied});
  return fail(Code::kRemote, "rank {} of {}: cannot connect to rank {} at {}: {}", join_.rank, join_.nranks,
              join_.successor(), to_text(address), strerror(error));
}

Result<RingSockets> RingJoin::finish() {
  while (!sockets_.predecessor.valid() || welcomed_ < welcome_.size()) {
    const uint32_t awaited = sockets_.predecessor.valid() ? join_.successor() : join_.predecessor();
    if (join_.aborted()) {
      const Departed departed = join_.watch.abort.reason().value_or(Departed{join_.rank, Departure::kAborted});
      if (sockets_.predecessor.valid()) send_notice(sockets_.predecessor.get(), departed);
      return join_.fail_aborted(fmt::format("rank {} to connect", awaited));
    }
    if (now_usec() >= join_.ring_patience().until_usec) {
      const Status status = join_.fail_impatient(fmt::format("rank {} to connect", awaited));
      tell_predecessor({awaited, Departure::kAbsent});
      return status;
    }
    pollfd successor{sockets_.successor.get(), POLLIN, 0};
    for (Guest& guest : lobby_.wait(kAbortPollMsec, std::span(&successor, 1))) admit(std::move(guest));
    if (successor.revents != 0) TRY(hear());
  }
  sockets_.listener = lobby_.take_listener();
  return std::move(sockets_);
}

void RingJoin::admit(Guest guest) {
  const Greeting& greeting = guest.greeting;
  const bool expected = greeting.version == Greeting::kVersion && greeting.rank == join_.predecessor() &&
                        greeting.nranks == join_.nranks && !sockets_.predecessor.valid();
  if (expected) sockets_.predecessor = std::move(guest.socket);
  else log_info(kLogBootstrap, "Bootstrap: rank {} dropped {}, which it did not expect", join_.rank,
                describe(greeting));
}

// The welcome, or the news that there will be no ring.
Status RingJoin::hear() {
  if (welcomed_ == welcome_.size()) {
    const SuccessorNews news = hear_successor(sockets_.successor.get());
    if (news.kind == SuccessorNews::Kind::kNothing) return Status();
    if (news.kind == SuccessorNews::Kind::kNotice) return lost(news.departed);
    return lost({join_.successor(), Departure::kDied});
  }
  const ssize_t got = recv(sockets_.successor.get(), welcome_.data() + welcomed_, welcome_.size() - welcomed_, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Status();
  if (got <= 0) return lost({join_.successor(), Departure::kDied});
  welcomed_ += static_cast<size_t>(got);
  if (welcomed_ < welcome_.size() || same_proof(welcome_, join_.secret.host)) return Status();
  return fail(Code::kRemote, "rank {} of {}: what listens in place of rank {} does not know the secret", join_.rank,
              join_.nranks, join_.successor());
}

Status RingJoin::lost(const Departed& departed) {
  tell_predecessor(departed);
  return fail(Code::kRemote, "rank {} of {}: {}", join_.rank, join_.nranks, describe(departed));
}

void RingJoin::tell_predecessor(const Departed& departed) {
  const double until = now_usec() + kTellUsec;
  while (!sockets_.predecessor.valid() && now_usec() < until && !join_.aborted()) {
    for (Guest& guest : lobby_.wait(kAbortPollMsec, {})) admit(std::move(guest));
  }
  if (sockets_.predecessor.valid()) send_notice(sockets_.predecessor.get(), departed);
}

}  // namespace talaria
