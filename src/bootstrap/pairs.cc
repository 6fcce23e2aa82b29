#include "bootstrap/pairs.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "base/log.h"
#include "base/os.h"
#include "bootstrap/address.h"
#include "bootstrap/lobby.h"
#include "bootstrap/port_range.h"
#include "bootstrap/retry.h"
#include "bootstrap/socket.h"

namespace talaria {
namespace {

constexpr int64_t kMostThreads = 16, kMostSockets = 64;
constexpr double kWelcomeUsec = 20e6;  // connections that are made already come in at once
constexpr int kLobbyMsec = 50;         // between two looks at who has departed

// What a rank tells the others so that they can connect to it.
struct Invitation {
  int32_t code;  // Code; not 0 if it gave up
  uint32_t sockets;
  UniqueId door;  // where it listens, and the secret to prove there
};

void tune(int socket, const Config& config) {
  const int seconds = static_cast<int>(std::clamp<int64_t>(config.link_timeout_sec, 1, 86400));
  // Silence with data on its way, and silence without, end a connection after about the same time.
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, seconds * 1000);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, std::max(seconds / 2, 1));
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, std::max(seconds / 4, 1));
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 2);
  if (config.socket_sndbuf > 0) set_option(socket, SOL_SOCKET, SO_SNDBUF, static_cast<int>(config.socket_sndbuf));
  if (config.socket_rcvbuf > 0) set_option(socket, SOL_SOCKET, SO_RCVBUF, static_cast<int>(config.socket_rcvbuf));
}

class PairMeeting {
 public:
  PairMeeting(OutOfBand& oob, const std::vector<bool>& wanted, const Config& config)
      : oob_(oob), wanted_(wanted), config_(config), sockets_(oob.nranks()) {}

  // The other ranks connect to a listener that is known to be there, and await nobody who has not connected: so a rank
  // that fails on the way leaves no one waiting.
  Result<std::vector<std::vector<UniqueFd>>> run() {
    invitations_ = TRY(oob_.all_gather_value(invite()));
    TRY(refuse_failures([&](uint32_t rank) { return invitations_[rank].code; }));
    TRY(agree(connect_to_lower()));
    TRY(agree(admit_higher()));
    return std::move(sockets_);
  }

 private:
  Invitation invite() {
    Invitation mine{};
    const Status status = open_door(mine);
    failure_ = status;
    mine.code = static_cast<int32_t>(status.code());
    return mine;
  }

  Status open_door(Invitation& mine) {
    listener_ = TRY(listen_at_free_port(oob_.address(), config_));
    mine.sockets = sockets_per_pair(config_);
    mine.door.address = local_address(listener_.get());
    fill_random(std::as_writable_bytes(std::span(mine.door.secret)));
    return check_descriptors(std::ranges::count(wanted_, true) * mine.sockets);
  }

  // Better one clear error now than connections that fail here and there.
  Status check_descriptors(uint64_t count) {
    std::vector<UniqueFd> held;
    for (uint64_t i = 0; i < count; ++i) {
      held.emplace_back(fcntl(listener_.get(), F_DUPFD_CLOEXEC, 0));
      if (held.back().valid()) continue;
      rlimit limit{};
      getrlimit(RLIMIT_NOFILE, &limit);
      return fail(Code::kSystem, "rank {} of {}: no file descriptors for the {} connections to other ranks, only {} "
                  "more of {} may be opened: raise the limit (ulimit -n)", oob_.rank(), oob_.nranks(), count, i,
                  limit.rlim_cur);
    }
    return Status();
  }

  Status connect_to_lower() {
    for (uint32_t peer = 0; peer < oob_.rank(); ++peer) {
      for (uint32_t i = 0; wanted_[peer] && i < sockets_with(peer); ++i) TRY(connect_to_peer(peer));
    }
    return Status();
  }

  Status connect_to_peer(uint32_t peer) {
    SocketAddress address = invitations_[peer].door.address;
    // The scope of a link-local address is a matter of each machine.
    if (is_link_local(address)) address.v6.sin6_scope_id = link_local_scope(oob_.address());
    const Greeting greeting = make_greeting(Secret(invitations_[peer].door), oob_.rank(), oob_.nranks());
    const double last_attempt = now_usec() + retry_budget_usec(config_);
    const Patience patience{oob_.abort_flag(), std::max(last_attempt, now_usec() + kWelcomeUsec)};
    for (int attempt = 1;; ++attempt) {
      UniqueFd socket;
      int error = connect_to(address, patience, socket);
      if (error == 0) {
        tune(socket.get(), config_);
        error = send_all(socket.get(), std::as_bytes(std::span(&greeting, 1)), patience);
      }
      if (error == 0) {
        sockets_[peer].push_back(std::move(socket));
        return Status();
      }
      oob_.listen();
      if (const auto fault = oob_.fault()) {
        return fail(Code::kRemote, "rank {} of {}: cannot connect to rank {}: {}", oob_.rank(), oob_.nranks(), peer,
                    describe(*fault));
      }
      const bool again = may_succeed_later(error) && now_usec() < last_attempt;
      if (again && pause_for(retry_pause_msec(config_, attempt), patience) == 0) continue;
      return fail(error == ECANCELED ? Code::kInternal : Code::kRemote,
                  "rank {} of {}: cannot connect to rank {} at {} after {} attempts: {}", oob_.rank(), oob_.nranks(),
                  peer, to_text(address), attempt, strerror(error));
    }
  }

  // Every socket of a higher rank is connected by now; the greetings and welcomes are on their way.
  Status admit_higher() {
    const Patience patience{oob_.abort_flag(), now_usec() + kWelcomeUsec};
    Lobby lobby(std::move(listener_), Secret(invitations_[oob_.rank()].door));
    while (const std::optional<uint32_t> missing = missing_peer()) {
      if (patience.abort.stopped()) {
        return fail(Code::kInternal, "rank {} of {}: aborted while waiting for rank {} to connect", oob_.rank(),
                    oob_.nranks(), *missing);
      }
      oob_.listen();
      const auto fault = oob_.fault();
      if (fault || now_usec() > patience.until_usec) {
        return fail(Code::kRemote, "rank {} of {}: rank {} did not connect{}{}", oob_.rank(), oob_.nranks(), *missing,
                    fault ? ": " : "", fault ? describe(*fault) : "");
      }
      for (Guest& guest : lobby.wait(kLobbyMsec, {})) admit(std::move(guest));
    }
    for (uint32_t peer = 0; peer < oob_.rank(); ++peer) {
      for (const UniqueFd& socket : sockets_[peer]) TRY(take_welcome(peer, socket.get(), patience));
    }
    return Status();
  }

  void admit(Guest guest) {
    const Greeting& greeting = guest.greeting;
    const bool expected = greeting.version == Greeting::kVersion && greeting.nranks == oob_.nranks() &&
                          greeting.rank > oob_.rank() && greeting.rank < oob_.nranks() && wanted_[greeting.rank] &&
                          sockets_[greeting.rank].size() < sockets_with(greeting.rank);
    if (!expected) {
      return log_info(kLogNet, "NET/Socket: rank {} dropped {}, which it did not expect", oob_.rank(),
                      describe(greeting));
    }
    tune(guest.socket.get(), config_);
    sockets_[greeting.rank].push_back(std::move(guest.socket));
  }

  Status take_welcome(uint32_t peer, int socket, const Patience& patience) {
    Proof welcome{};
    const int error = receive_all(socket, welcome, patience);
    if (error != 0) {
      return fail(Code::kRemote, "rank {} of {}: rank {} did not take the connection: {}", oob_.rank(), oob_.nranks(),
                  peer, strerror(error));
    }
    if (same_proof(welcome, Secret(invitations_[peer].door).host)) return Status();
    return fail(Code::kRemote, "rank {} of {}: what listens in place of rank {} does not know the secret", oob_.rank(),
                oob_.nranks(), peer);
  }

  std::optional<uint32_t> missing_peer() const {
    for (uint32_t peer = oob_.rank() + 1; peer < oob_.nranks(); ++peer) {
      if (wanted_[peer] && sockets_[peer].size() < sockets_with(peer)) return peer;
    }
    return std::nullopt;
  }

  uint32_t sockets_with(uint32_t peer) const {
    return std::min(invitations_[peer].sockets, invitations_[oob_.rank()].sockets);
  }

  // Every rank tells how it fared.
  Status agree(Status mine) {
    failure_ = mine;
    const auto codes = TRY(oob_.all_gather_value(static_cast<int32_t>(mine.code())));
    return refuse_failures([&](uint32_t rank) { return codes[rank]; });
  }

  template <typename CodeOf>
  Status refuse_failures(CodeOf code_of) {
    TRY(failure_);
    for (uint32_t rank = 0; rank < oob_.nranks(); ++rank) {
      if (code_of(rank) == 0) continue;
      return fail(Code::kRemote, "rank {} of {}: rank {} could not connect to its peers; see its log", oob_.rank(),
                  oob_.nranks(), rank);
    }
    return Status();
  }

  OutOfBand& oob_;
  const std::vector<bool>& wanted_;
  const Config& config_;
  UniqueFd listener_;
  std::vector<Invitation> invitations_;
  std::vector<std::vector<UniqueFd>> sockets_;
  Status failure_;
};

}  // namespace

uint32_t sockets_per_pair(const Config& config) {
  const int64_t threads = std::clamp<int64_t>(config.socket_nthreads, 1, kMostThreads);
  const int64_t each = std::clamp<int64_t>(config.nsocks_per_thread, 1, kMostSockets);
  return static_cast<uint32_t>(std::min(threads * each, kMostSockets));
}

Result<std::vector<std::vector<UniqueFd>>> connect_pairs(OutOfBand& oob, const std::vector<bool>& wanted,
                                                         const Config& config) {
  return PairMeeting(oob, wanted, config).run();
}

}  // namespace talaria
