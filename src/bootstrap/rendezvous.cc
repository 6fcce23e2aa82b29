// rendezvous(): from a unique id to a ring of proven connections.
//
// Every rank greets the root, learns where its successor listens, connects to it, and lets its predecessor in.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/os.h"
#include "bootstrap/address.h"
#include "bootstrap/interfaces.h"
#include "bootstrap/lobby.h"
#include "bootstrap/out_of_band.h"
#include "bootstrap/ring.h"
#include "bootstrap/root.h"
#include "bootstrap/socket.h"

namespace talaria {
namespace {

constexpr double kWelcomeUsec = 20e6;   // a root that lives welcomes at once
constexpr double kBusyPortUsec = 3e6;   // another process may be about to leave NCCL_COMM_ID's port
constexpr double kDismissUsec = 1e6;    // for a root that serves a single rank
constexpr double kTellUsec = 5e5;       // for a predecessor that has yet to connect and should learn who is gone

struct Joining {
  const UniqueId& id;
  const Secret secret;
  const uint32_t rank, nranks;
  const Config& config;
  const std::atomic<bool>& abort;
  uint32_t successor() const { return (rank + 1) % nranks; }
  uint32_t predecessor() const { return (rank + nranks - 1) % nranks; }
  Status fail_aborted(std::string_view what) const {
    return fail(Code::kInternal, "rank {} of {}: aborted while waiting for {}", rank, nranks, what);
  }
};

// A single rank has nobody to talk to.
class Alone : public OutOfBand {
 public:
  uint32_t rank() const override { return 0; }
  uint32_t nranks() const override { return 1; }
  Status all_gather(std::span<std::byte>) override { return Status(); }
  Status barrier() override { return Status(); }
};

// A greeted root, and the socket on which this rank awaits its predecessor.
struct Introduction {
  UniqueFd root, listener;
  uint32_t scope = 0;  // interface index, if link-local addresses are in use
};

// NCCL_SOCKET_RETRY_CNT pauses that grow by NCCL_SOCKET_RETRY_SLEEP_MSEC each.
double retry_budget_usec(const Config& config) {
  const double count = std::clamp<double>(config.socket_retry_count, 0, 1e4);
  return std::clamp<double>(config.socket_retry_sleep_msec, 0, 1e6) * 1000 * count * (count + 1) / 2;
}

// Pauses begin short, because usually the other side is only milliseconds late, and reach NCCL's after a few attempts.
int pause_msec(const Config& config, int attempt) {
  const int64_t linear = std::clamp<int64_t>(config.socket_retry_sleep_msec, 1, 10000) * attempt;
  return static_cast<int>(std::min<int64_t>(linear, 1ll << std::min(attempt, 13)));
}

bool may_succeed_later(int error) {
  constexpr int kTransient[] = {ECONNREFUSED, ECONNRESET, ETIMEDOUT, EPIPE, EHOSTUNREACH, ENETUNREACH, ENETDOWN,
                                EAGAIN, EADDRNOTAVAIL, EINTR, EMFILE, ENFILE};
  return std::ranges::find(kTransient, error) != std::end(kTransient);
}

// The address other ranks can reach this one at: what the user chose, else what leads to the root.
Result<SocketAddress> own_address(const Joining& join, int root) {
  SocketAddress address = local_address(root);
  if (!join.config.socket_ifname.empty()) address = TRY(choose_interface(list_interfaces(), join.config)).address;
  set_port(address, 0);
  return address;
}

// One attempt; 0 or an errno, EPROTO when something else than our root answers. A Status when retrying is pointless.
Result<int> greet_root(const Joining& join, const Patience& patience, Introduction& introduction) {
  SocketAddress address = join.id.address;
  if (is_link_local(address)) {
    // A scope is a matter of each machine: the one in the id is that of the root's machine.
    const Interface mine = TRY(choose_interface(list_interfaces(), join.config));
    if (is_link_local(mine.address)) address.v6.sin6_scope_id = mine.address.v6.sin6_scope_id;
  }
  if (const int error = connect_to(address, patience, introduction.root); error != 0) return error;
  const SocketAddress own = TRY(own_address(join, introduction.root.get()));
  introduction.scope = link_local_scope(own);
  if (const int error = listen_at(own, introduction.listener); error != 0) {
    return fail(Code::kSystem, "rank {} of {}: cannot listen at {}: {}", join.rank, join.nranks, host_text(own),
                strerror(error));
  }
  Greeting greeting = make_greeting(join.secret, join.rank, join.nranks);
  greeting.listener = local_address(introduction.listener.get());
  const Patience prompt{patience.abort, std::min(patience.until_usec, now_usec() + kWelcomeUsec)};
  if (const int error = send_all(introduction.root.get(), std::as_bytes(std::span(&greeting, 1)), prompt)) return error;
  Proof welcome{};
  if (const int error = receive_all(introduction.root.get(), welcome, prompt)) return error;
  return same_proof(welcome, join.secret.host) ? 0 : EPROTO;
}

Result<Introduction> meet_root(const Joining& join) {
  const Patience patience{join.abort, now_usec() + std::max(retry_budget_usec(join.config), kWelcomeUsec)};
  const double last_attempt = now_usec() + retry_budget_usec(join.config);
  for (int attempt = 1;; ++attempt) {
    Introduction introduction;
    const int error = TRY(greet_root(join, patience, introduction));
    if (error == 0) return introduction;
    const std::string root = to_text(join.id.address);
    if (error == ECANCELED) return join.fail_aborted("the root at " + root);
    if (error == EPROTO) {
      return fail(Code::kRemote, "rank {} of {}: what listens at {} is not the root of this communicator", join.rank,
                  join.nranks, root);
    }
    if (!may_succeed_later(error) || now_usec() >= last_attempt) {
      return fail(Code::kRemote, "rank {} of {}: cannot reach the root at {} after {} attempts: {}", join.rank,
                  join.nranks, root, attempt, strerror(error));
    }
    if (pause_for(pause_msec(join.config, attempt), patience) == ECANCELED) {
      return join.fail_aborted("the root at " + root);
    }
  }
}

// Waits until all ranks have met; where the successor listens.
Result<SocketAddress> await_reply(const Joining& join, const Introduction& introduction) {
  Reply reply{};
  const int error = receive_all(introduction.root.get(), std::as_writable_bytes(std::span(&reply, 1)),
                                Patience{join.abort});
  if (error == ECANCELED) return join.fail_aborted("the other ranks to join");
  if (error != 0) {
    return fail(Code::kRemote, "rank {} of {}: lost the root at {}, in the process that {}: {}", join.rank,
                join.nranks, to_text(join.id.address),
                (join.id.flags & UniqueId::kFromCommId) != 0 ? "runs rank 0" : "made the unique id", strerror(error));
  }
  if (reply.code != 0) {
    const std::string_view text(reply.text, strnlen(reply.text, sizeof(reply.text)));
    return fail(static_cast<Code>(reply.code), "rank {} of {}: {}", join.rank, join.nranks, text);
  }
  if (is_link_local(reply.successor) && introduction.scope != 0) {
    reply.successor.v6.sin6_scope_id = introduction.scope;
  }
  return reply.successor;
}

// How one rank takes its place in the ring: it greets its successor, and awaits the welcome and its predecessor.
class RingJoin {
 public:
  RingJoin(const Joining& join, UniqueFd listener) : join_(join), lobby_(std::move(listener), join.secret) {}

  Status greet_successor(const SocketAddress& address) {
    const Patience patience{join_.abort};
    int error = connect_to(address, patience, sockets_.successor);
    const Greeting greeting = make_greeting(join_.secret, join_.rank, join_.nranks);
    if (error == 0) error = send_all(sockets_.successor.get(), std::as_bytes(std::span(&greeting, 1)), patience);
    if (error == 0) return Status();
    if (error == ECANCELED) return join_.fail_aborted(fmt::format("rank {} to answer", join_.successor()));
    await_predecessor();
    tell_predecessor({join_.successor(), Departure::kDied});
    return fail(Code::kRemote, "rank {} of {}: cannot connect to rank {} at {}: {}", join_.rank, join_.nranks,
                join_.successor(), to_text(address), strerror(error));
  }

  Result<RingSockets> finish() {
    while (!sockets_.predecessor.valid() || welcomed_ < welcome_.size()) {
      if (join_.abort.load(std::memory_order_relaxed)) {
        tell_predecessor({join_.rank, Departure::kAborted});
        return join_.fail_aborted(fmt::format(
            "rank {} to connect", sockets_.predecessor.valid() ? join_.successor() : join_.predecessor()));
      }
      pollfd successor{sockets_.successor.get(), POLLIN, 0};
      for (Guest& guest : lobby_.wait(kAbortPollMsec, std::span(&successor, 1))) admit(std::move(guest));
      if (successor.revents != 0) TRY(hear());
    }
    return std::move(sockets_);
  }

 private:
  void admit(Guest guest) {
    const Greeting& greeting = guest.greeting;
    const bool expected = greeting.version == Greeting::kVersion && greeting.rank == join_.predecessor() &&
                          greeting.nranks == join_.nranks && !sockets_.predecessor.valid();
    if (expected) sockets_.predecessor = std::move(guest.socket);
    else log_info(kLogBootstrap, "Bootstrap: rank {} dropped {}, which it did not expect", join_.rank,
                  describe(greeting));
  }

  // The welcome, or the news that there will be no ring.
  Status hear() {
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

  Status lost(const Departed& departed) {
    await_predecessor();
    tell_predecessor(departed);
    return fail(Code::kRemote, "rank {} of {}: {}", join_.rank, join_.nranks, describe(departed));
  }

  // Else it would find this rank's port closed, and name this rank instead of the one that is gone.
  void await_predecessor() {
    const double until = now_usec() + kTellUsec;
    while (!sockets_.predecessor.valid() && now_usec() < until && !join_.abort.load(std::memory_order_relaxed)) {
      for (Guest& guest : lobby_.wait(kAbortPollMsec, {})) admit(std::move(guest));
    }
  }

  void tell_predecessor(const Departed& departed) {
    if (sockets_.predecessor.valid()) send_notice(sockets_.predecessor.get(), departed);
  }

  const Joining& join_;
  Lobby lobby_;
  RingSockets sockets_;
  Proof welcome_{};
  size_t welcomed_ = 0;
};

// The root of an id made from NCCL_COMM_ID, in the process of rank 0.
Result<std::unique_ptr<OwnedRoot>> start_own_root(const Joining& join) {
  const double until = now_usec() + std::min(kBusyPortUsec, retry_budget_usec(join.config));
  for (int attempt = 1;; ++attempt) {
    UniqueFd listener;
    const int error = listen_at(join.id.address, listener);
    if (error == 0) return OwnedRoot::start(std::move(listener), join.secret);
    if (error != EADDRINUSE || now_usec() >= until) {
      return fail(Code::kSystem, "NCCL_COMM_ID: rank 0 cannot listen at port {} ({}): {}", port_of(join.id.address),
                  to_text(join.id.address), strerror(error));
    }
    if (pause_for(pause_msec(join.config, attempt), Patience{join.abort}) == ECANCELED) {
      return join.fail_aborted(fmt::format("port {} to become free", port_of(join.id.address)));
    }
  }
}

// Lets the root of a single rank end. It does not matter if there is none: the rank needs nothing from it.
void dismiss_root(const Joining& join) {
  Introduction introduction;
  const Patience patience{join.abort, now_usec() + kDismissUsec};
  if (connect_to(join.id.address, patience, introduction.root) != 0) return;
  const Greeting greeting = make_greeting(join.secret, join.rank, join.nranks);
  if (send_all(introduction.root.get(), std::as_bytes(std::span(&greeting, 1)), patience) != 0) return;
  std::byte answer[sizeof(Proof) + sizeof(Reply)];
  if (receive_all(introduction.root.get(), answer, patience) != 0) {
    log_info(kLogBootstrap, "Bootstrap: the root at {} did not answer its only rank", to_text(join.id.address));
  }
}

}  // namespace

Result<std::unique_ptr<OutOfBand>> rendezvous(const UniqueId& id, uint32_t rank, uint32_t nranks, const Config& config,
                                              const std::atomic<bool>& abort) {
  if (id.magic != UniqueId::kMagic || id.version != UniqueId::kVersion || length_of(id.address) == 0) {
    return fail(Code::kInvalidArgument, "the unique id was not made by this library (ncclGetUniqueId)");
  }
  if (rank >= nranks) return fail(Code::kInvalidArgument, "Invalid rank requested : {}/{}", rank, nranks);
  const Joining join{id, Secret(id), rank, nranks, config, abort};
  const bool from_comm_id = (id.flags & UniqueId::kFromCommId) != 0;
  if (nranks == 1) {
    if (!from_comm_id) dismiss_root(join);
    return std::unique_ptr<OutOfBand>(new Alone);
  }
  const double start = now_usec();
  std::unique_ptr<OwnedRoot> root;
  if (from_comm_id && rank == 0) root = TRY(start_own_root(join));
  Introduction introduction = TRY(meet_root(join));
  const SocketAddress successor_address = TRY(await_reply(join, introduction));
  RingJoin ring(join, std::move(introduction.listener));
  TRY(ring.greet_successor(successor_address));
  RingSockets sockets = TRY(ring.finish());
  log_info(kLogBootstrap, "Bootstrap: rank {} of {} joined in {:.1f} ms", rank, nranks, (now_usec() - start) / 1000);
  return std::unique_ptr<OutOfBand>(new Ring(std::move(sockets), rank, nranks, abort));
}

}  // namespace talaria
