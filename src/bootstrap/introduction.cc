#include "bootstrap/introduction.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/log.h"
#include "base/os.h"
#include "bootstrap/address.h"
#include "bootstrap/interfaces.h"
#include "bootstrap/port_range.h"
#include "bootstrap/retry.h"
#include "bootstrap/root.h"

namespace talaria {
namespace {

constexpr double kWelcomeUsec = 20e6;  // a root that lives welcomes at once
constexpr double kRefusedUsec = 1e6;   // a root that was there when its id was made, and has gone, stays away
constexpr int kStandingPauseMsec = 50;
constexpr double kDismissUsec = 1e6;   // for a root that serves a single rank

// The address other ranks can reach this one at: what the user chose, else what leads to the root.
Result<SocketAddress> own_address(const Joining& join, int root) {
  SocketAddress address = local_address(root);
  if (!join.config.socket_ifname.empty()) address = TRY(choose_interface(list_interfaces(), join.config)).address;
  return address;
}

// Many ranks of one root come one after another, at NCCL_UID_STAGGER_RATE.
int stagger_msec(const Joining& join, const RootShare& share) {
  const int64_t threshold = join.config.uid_stagger_threshold, rate = join.config.uid_stagger_rate;
  if (threshold <= 0 || rate <= 0 || share.size() <= threshold || !share.holds(join.rank)) return 0;
  return static_cast<int>(std::min<int64_t>(int64_t{join.rank - share.first} * 1000 / rate, 600000));
}

}  // namespace

Status Introduction::greet() {
  const uint32_t root = root_of(join_.rank, join_.nranks, join_.nroots());
  const RootShare share = join_.share();
  pause_for(stagger_msec(join_, share), join_.patience());
  TRY(greet_root(root, own_));
  if (join_.rank != share.first || join_.nroots() == 1) return Status();
  return greet_root((root + join_.nroots() - 1) % join_.nroots(), visited_);
}

Status Introduction::greet_root(uint32_t root, UniqueFd& socket) {
  // Who keeps a standing root listens already, and may serve others before us; once it does not listen, it is gone.
  const bool standing = join_.ids[root].is_standing();
  const bool may_start_late = (join_.ids[root].flags & UniqueId::kFromCommId) != 0;
  const double budget = standing ? std::numeric_limits<double>::infinity() : retry_budget_usec(join_.config);
  const Patience patience = join_.patience(now_usec() + std::max(budget, kWelcomeUsec));
  const double began = now_usec(), last_attempt = std::min(join_.until_usec, began + budget);
  const double refused_until = may_start_late ? last_attempt : standing ? began : began + kRefusedUsec;
  for (int attempt = 1;; ++attempt) {
    const int error = TRY(try_to_greet(root, patience, socket));
    if (error == 0) return Status();
    const double until = error == ECONNREFUSED ? std::min(refused_until, last_attempt) : last_attempt;
    if (!may_succeed_later(error) || now_usec() >= until) return fail_to_greet(root, error, attempt);
    const int pause_msec = retry_pause_msec(join_.config, attempt);
    if (pause_for(standing ? std::min(pause_msec, kStandingPauseMsec) : pause_msec, patience) == ECANCELED) {
      return fail_to_greet(root, ECANCELED, attempt);
    }
  }
}

Status Introduction::fail_to_greet(uint32_t root, int error, int attempts) const {
  const UniqueId& id = join_.ids[root];
  const std::string where = to_text(id.address);
  if (error == ECANCELED) return join_.fail_aborted("the root at " + where);
  if (error == EPROTO) {
    return fail(Code::kRemote, "rank {} of {}: what listens at {} is not the root of this communicator", join_.rank,
                join_.nranks, where);
  }
  if (!id.is_standing()) {
    return fail(Code::kRemote, "rank {} of {}: cannot reach {} after {} attempts: {}", join_.rank, join_.nranks,
                name_root(root), attempts, strerror(error));
  }
  const std::string keeper = fmt::format("rank {} of the parent communicator at {}", id.keeper, where);
  if (error == EOWNERDEAD) {
    return fail(Code::kRemote, "rank {} of {}: not all will come to {}", join_.rank, join_.nranks, keeper);
  }
  if (error != ECONNREFUSED) return join_.fail_impatient(keeper + ", where the others meet");
  return fail(Code::kRemote, "rank {} of {}: cannot meet the others: {} has died or destroyed its communicator",
              join_.rank, join_.nranks, keeper);
}

// One attempt; 0 or an errno, EPROTO when something else than our root answers. A Status when retrying is pointless.
Result<int> Introduction::try_to_greet(uint32_t root, const Patience& patience, UniqueFd& socket) {
  SocketAddress address = join_.ids[root].address;
  if (is_link_local(address)) {
    // A scope is a matter of each machine: the one in the id is that of the root's machine.
    const Interface mine = TRY(choose_interface(list_interfaces(), join_.config));
    if (is_link_local(mine.address)) address.v6.sin6_scope_id = mine.address.v6.sin6_scope_id;
  }
  if (const int error = connect_to(address, patience, socket); error != 0) return error;
  if (!listener_.valid()) TRY(listen_for_predecessor(socket.get()));
  const Secret secret(join_.ids[root]);
  Greeting greeting = make_greeting(secret, join_.rank, join_.nranks);
  greeting.listener = local_address(listener_.get());
  greeting.root = root;
  greeting.nroots = join_.nroots();
  greeting.patience_msec = static_cast<uint32_t>(std::clamp<int64_t>(join_.config.init_timeout_sec, 0, 4000000) * 1000);
  const double welcome_usec = join_.ids[root].is_standing() ? patience.until_usec : now_usec() + kWelcomeUsec;
  const Patience prompt = join_.patience(std::min(patience.until_usec, welcome_usec));
  if (const int error = send_all(socket.get(), std::as_bytes(std::span(&greeting, 1)), prompt)) return error;
  Proof welcome{};
  if (const int error = receive_all(socket.get(), welcome, prompt)) return error;
  return same_proof(welcome, secret.host) ? 0 : EPROTO;
}

Status Introduction::listen_for_predecessor(int root_socket) {
  const SocketAddress own = TRY(own_address(join_, root_socket));
  listener_ = TRY(listen_at_free_port(own, join_.config));
  scope_ = link_local_scope(own);
  return Status();
}

Result<SocketAddress> Introduction::await_replies() {
  const uint32_t root = root_of(join_.rank, join_.nranks, join_.nroots());
  const SocketAddress successor = TRY(await_reply(root, own_.get()));
  if (visited_.valid()) TRY(await_reply((root + join_.nroots() - 1) % join_.nroots(), visited_.get()).status());
  own_.reset();
  visited_.reset();
  return successor;
}

Result<SocketAddress> Introduction::await_reply(uint32_t root, int socket) {
  Reply reply{};
  int error = 0;
  do {
    error = receive_all(socket, std::as_writable_bytes(std::span(&reply, 1)), join_.ring_patience());
    if (error == 0 && reply.code == static_cast<int>(Code::kInProgress)) hosts_[root] = reply.whom;
  } while (error == 0 && reply.code == static_cast<int>(Code::kInProgress));
  if (error == ECANCELED) return join_.fail_aborted("the other ranks to join");
  if (error == ETIMEDOUT) return join_.fail_impatient(name_root(root) + ", which does not answer");
  if (error != 0) {
    return fail(Code::kRemote, "rank {} of {}: lost {}: {}", join_.rank, join_.nranks, name_root(root),
                strerror(error));
  }
  if (reply.code != 0) {
    absent_ = reply.whom;
    const std::string_view text(reply.text, strnlen(reply.text, sizeof(reply.text)));
    return fail(static_cast<Code>(reply.code), "rank {} of {}: {}", join_.rank, join_.nranks, text);
  }
  if (is_link_local(reply.successor) && scope_ != 0) reply.successor.v6.sin6_scope_id = scope_;
  return reply.successor;
}

// "the root at 10.0.0.1:4321, which is in the process of rank 0"
std::string Introduction::name_root(uint32_t root) const {
  const UniqueId& id = join_.ids[root];
  const std::string where = "the root at " + to_text(id.address);
  if (const auto host = hosts_.find(root); host != hosts_.end()) {
    return fmt::format("{}, which is in the process of rank {}", where, host->second);
  }
  if (id.is_standing()) return fmt::format("{}, which is in the process of rank {} of the parent communicator", where,
                                           id.keeper);
  if ((id.flags & UniqueId::kOfRankZero) != 0) return where + ", which is in the process of rank 0";
  return fmt::format("{}, which is in the process that made the unique id ({})", where, id.process);
}

void dismiss_root(const Joining& join) {
  UniqueFd root;
  const Patience patience{join.watch.abort, now_usec() + kDismissUsec};
  if (connect_to(join.ids[0].address, patience, root) != 0) return;
  const Greeting greeting = make_greeting(join.secret, join.rank, join.nranks);
  if (send_all(root.get(), std::as_bytes(std::span(&greeting, 1)), patience) != 0) return;
  std::byte answer[sizeof(Proof) + sizeof(Reply)];
  if (receive_all(root.get(), answer, patience) != 0) {
    log_info(kLogBootstrap, "Bootstrap: the root at {} did not answer its only rank", to_text(join.ids[0].address));
  }
}

}  // namespace talaria
