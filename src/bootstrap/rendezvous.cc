// rendezvous(): from unique ids to a ring of proven connections.
//
// Every rank greets its root, learns where its successor listens, connects to it, and lets its predecessor in.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/os.h"
#include "bootstrap/address.h"
#include "bootstrap/introduction.h"
#include "bootstrap/joining.h"
#include "bootstrap/out_of_band.h"
#include "bootstrap/retry.h"
#include "bootstrap/ring.h"
#include "bootstrap/ring_join.h"
#include "bootstrap/root.h"
#include "bootstrap/root_thread.h"
#include "bootstrap/socket.h"

namespace talaria {
namespace {

constexpr double kBusyPortUsec = 3e6;  // another process may be about to leave NCCL_COMM_ID's port

// A single rank has nobody to talk to.
class Alone : public OutOfBand {
 public:
  uint32_t rank() const override { return 0; }
  uint32_t nranks() const override { return 1; }
  Status all_gather(std::span<std::byte>) override { return Status(); }
  Status barrier() override { return Status(); }
};

bool from_comm_id(const UniqueId& id) { return (id.flags & UniqueId::kFromCommId) != 0; }
Status check_ids(std::span<const UniqueId> ids, uint32_t nranks) {
  if (ids.empty() || ids.size() > nranks) {
    return fail(Code::kInvalidArgument, "{} unique ids for {} ranks: give at least one and at most one per rank",
                ids.size(), nranks);
  }
  std::vector<std::string_view> secrets;
  for (const UniqueId& id : ids) {
    if (id.magic != UniqueId::kMagic || id.version != UniqueId::kVersion || length_of(id.address) == 0) {
      return fail(Code::kInvalidArgument, "the unique id was not made by this library (ncclGetUniqueId)");
    }
    if (from_comm_id(id) && ids.size() > 1) {
      return fail(Code::kInvalidUsage, "{} unique ids, but NCCL_COMM_ID names one address for all ranks: unset it",
                  ids.size());
    }
    secrets.emplace_back(reinterpret_cast<const char*>(id.secret), sizeof(id.secret));
  }
  std::ranges::sort(secrets);
  if (std::ranges::adjacent_find(secrets) == secrets.end()) return Status();
  return fail(Code::kInvalidArgument, "one of the {} unique ids is given twice: each needs an ncclGetUniqueId of its "
              "own", ids.size());
}

// The root of an id made from NCCL_COMM_ID, in the process of rank 0.
Result<std::unique_ptr<OwnedRoot>> start_own_root(const Joining& join) {
  const SocketAddress& address = join.ids[0].address;
  const double until = now_usec() + std::min(kBusyPortUsec, retry_budget_usec(join.config));
  for (int attempt = 1;; ++attempt) {
    UniqueFd listener;
    const int error = listen_at(address, listener);
    if (error == 0) return OwnedRoot::start(std::move(listener), join.secret);
    if (error != EADDRINUSE || now_usec() >= until) {
      return fail(Code::kSystem, "NCCL_COMM_ID: rank 0 cannot listen at port {} ({}): {}", port_of(address),
                  to_text(address), strerror(error));
    }
    if (pause_for(retry_pause_msec(join.config, attempt), join.patience()) == ECANCELED) {
      return join.fail_aborted(fmt::format("port {} to become free", port_of(address)));
    }
  }
}

}  // namespace

double patience_usec(const Config& config) {
  return config.init_timeout_sec > 0 ? static_cast<double>(config.init_timeout_sec) * 1e6
                                     : std::numeric_limits<double>::infinity();
}

Result<std::unique_ptr<OutOfBand>> rendezvous(std::span<const UniqueId> ids, uint32_t rank, uint32_t nranks,
                                              const Config& config, const Watch& watch) {
  if (rank >= nranks) return fail(Code::kInvalidArgument, "Invalid rank requested : {}/{}", rank, nranks);
  if (nranks == 1 && !ids.empty() && ids[0].is_standing()) return std::unique_ptr<OutOfBand>(new Alone);
  TRY(check_ids(ids, nranks));
  const double start = now_usec();
  const Joining join{ids, Secret(ids[0]), rank, nranks, config, watch, start + patience_usec(config)};
  if (nranks == 1) {
    if (!from_comm_id(ids[0])) dismiss_root(join);
    return std::unique_ptr<OutOfBand>(new Alone);
  }
  std::unique_ptr<OwnedRoot> root;
  if (from_comm_id(ids[0]) && rank == 0) root = TRY(start_own_root(join));
  Introduction introduction(join);
  TRY(introduction.greet());
  Result<SocketAddress> successor = introduction.await_replies();
  RingJoin ring(join, introduction.take_listener());
  if (!successor.ok()) {
    // The rank before belongs to another root, and may know nothing of this.
    const bool other_root_before = join.nroots() > 1 && rank == join.share().first;
    if (other_root_before && introduction.absent() != Reply::kNobody) {
      ring.tell_predecessor({introduction.absent(), Departure::kAbsent});
    }
    return successor.status();
  }
  TRY(ring.greet_successor(*successor));
  RingSockets sockets = TRY(ring.finish());
  log_info(kLogBootstrap, "Bootstrap: rank {} of {} joined in {:.1f} ms", rank, nranks, (now_usec() - start) / 1000);
  return std::unique_ptr<OutOfBand>(new Ring(std::move(sockets), rank, nranks, watch.abort,
                                             patience_usec(config) + 2 * Joining::kLaterUsec));
}

Result<std::unique_ptr<OutOfBand>> rendezvous(const UniqueId& id, uint32_t rank, uint32_t nranks, const Config& config,
                                              const Watch& watch) {
  return rendezvous(std::span(&id, 1), rank, nranks, config, watch);
}

}  // namespace talaria
