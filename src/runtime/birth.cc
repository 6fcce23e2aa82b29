// How a communicator is made of another one: split, shrink, grow.
#include <numeric>
#include <string>
#include <utility>

#include "runtime/communicator.h"
#include "runtime/parent_watch.h"

namespace talaria {
namespace {

// How a rank has ended so that it takes part in nothing any more; kPresent if it may come, as far as is seen here.
Departure end_of(uint32_t rank, OutOfBand& oob, const Engine& engine) {
  oob.listen();
  const Departure how = oob.departure_of(rank);
  switch (how) {
    case Departure::kDied:
    case Departure::kAborted:
    case Departure::kMissed:
    case Departure::kLeft: return how;
    default: return engine.gone(rank) ? Departure::kDied : Departure::kPresent;
  }
}

}  // namespace

class Communicator::Birth {
 public:
  Birth(Communicator& parent, Communicator& child) : parent_(parent) {
    const std::lock_guard lock(parent_.child_mutex_);
    parent_.child_ = &child;
    if (parent_.aborted_.load()) child.abort();
  }
  ~Birth() {
    const std::lock_guard lock(parent_.child_mutex_);
    parent_.child_ = nullptr;
  }
  Birth(const Birth&) = delete;
  Birth& operator=(const Birth&) = delete;

 private:
  Communicator& parent_;
};

// The parent is in use no longer than needed, so that its abort need not wait for the child.
Result<std::pair<Seat, Communicator::Settings>> Communicator::meet_for(const Communicator& child,
                                                                       const std::optional<InitOptions>& options,
                                                                       const SeatBy& seat_by) {
  const Use use(*this);
  const Channel channel = TRY(channel_for(child));
  Settings settings = inheritance(options);
  Seat seat = TRY(seat_by(*channel.all, settings.second));
  return std::pair(std::move(seat), std::move(settings));
}

Status Communicator::init_by_split(Communicator& parent, const SplitRequest& request,
                                   const std::optional<InitOptions>& options) {
  const Birth birth(parent, *this);
  auto [seat, settings] = TRY(parent.meet_for(*this, options, [&](OutOfBand& all, const Config& config) {
    return seat_by_color(all, request, config);
  }));
  if (seat.nranks == 0) return Status();
  // What a revoked parent hears is no news.
  if (parent.revoked_.load()) return init(seat, settings.first, std::move(settings.second));
  ParentWatch watch(parent, seat, stop_init_);
  const Status made = init(seat, settings.first, std::move(settings.second));
  watch.end();
  if (!made.ok()) return explain_to_parent(watch, seat, made);
  // Bad news that came too late concerns the parent only.
  stop_init_.forget_reason(aborted_);
  return made;
}

Status Communicator::explain_to_parent(const ParentWatch& parent, const Seat& seat, Status status) const {
  constexpr double kNewsUsec = 5e5;  // the same fault has to come around the parent's ring
  constexpr size_t kMostListed = 32;
  const std::string text = last_error_text();
  const bool by_peer = status.code() == Code::kRemote || status.code() == Code::kInternal;
  if (const auto fault = parent.await_fault(by_peer && !aborted_.load() ? kNewsUsec : 0)) {
    return fail(Code::kRemote, "ncclCommSplit: {} (the new communicator was left in this state: {})", describe(*fault),
                text);
  }
  std::string origins;
  for (uint32_t r = 0; r < seat.nranks && r < kMostListed; ++r) {
    origins += fmt::format("{}{}", r == 0 ? "" : ", ", seat.origins[r]);
  }
  return fail(status.code(), "ncclCommSplit: {} (these are ranks of the new communicator, in the parent ranks {}{})",
              text, origins, seat.nranks > kMostListed ? ", ..." : "");
}

Status Communicator::init_by_shrink(Communicator& parent, const ShrinkRequest& request,
                                    const std::optional<InitOptions>& options) {
  const Birth birth(parent, *this);
  const Use use(parent);  // its channel tells who is gone, until all are there
  TRY(parent.refuse_children());
  if (request.abort) parent.end_operations();
  auto [wanted, config] = parent.inheritance(options);
  const Status status = init(TRY(parent.seat_among(request.members)), wanted, std::move(config));
  return status.code() == Code::kRemote ? parent.explain_absence(request.members, status) : status;
}

Status Communicator::init_by_growth(Communicator& parent, const GrowRequest& request,
                                    const std::optional<InitOptions>& options) {
  const Birth birth(parent, *this);
  auto [seat, settings] = TRY(parent.meet_for(*this, options, [&](OutOfBand& all, const Config&) {
    const auto made_here = std::exchange(parent.resources_->growth_id, std::nullopt);
    return seat_by_growth(all, {request.nranks, request.id ? request.id : made_here});
  }));
  return init(seat, settings.first, std::move(settings.second));
}

Result<UniqueId> Communicator::open_for_growth() {
  const Use use(*this);
  TRY(refuse_children());
  resources_->growth_id = TRY(create_growth_id(resources_->config));
  return *resources_->growth_id;
}

Status Communicator::refuse_children() const {
  if (released() || !ready()) {
    return fail(Code::kInvalidArgument, "comm {} rank {} {}: it makes no other communicators",
                static_cast<const void*>(this), rank_, released() ? "has been destroyed" : "is not initialized");
  }
  if (!aborted_.load()) return Status();
  return fail(Code::kRemote, "comm {} rank {} was aborted: it makes no more communicators",
              static_cast<const void*>(this), rank_);
}

Result<Communicator::Channel> Communicator::channel_for(const Communicator& child) {
  if (!revoked_.load()) {
    TRY(refuse_channel());
    return Channel{resources_->oob.get(), nullptr};
  }
  TRY(refuse_children());
  TRY(refuse_while_suspended());
  std::vector<uint32_t> everyone(nranks_);
  std::iota(everyone.begin(), everyone.end(), 0);
  const Seat seat = TRY(seat_among(everyone));
  std::unique_ptr<OutOfBand> own = TRY(rendezvous(seat.ids, rank_, nranks_, with_patience(resources_->config, seat),
                                                  {child.stop_init_, seat.meanwhile}));
  return Channel{own.get(), std::move(own)};
}

Status Communicator::refuse_channel() const {
  TRY(refuse_children());
  TRY(refuse_while_suspended());
  if (revoked_.load()) {
    return fail(Code::kInvalidUsage, "comm {} rank {} was revoked", static_cast<const void*>(this), rank_);
  }
  TRY(refuse_after_fault());
  if (!faulted_.load()) return Status();
  return fail(Code::kRemote, "comm {} rank {} gave up an operation half done: only ncclCommShrink makes another "
              "communicator of it", static_cast<const void*>(this), rank_);
}

Result<Seat> Communicator::seat_among(const std::vector<uint32_t>& members) {
  const auto gone = [oob = resources_->oob.get(), engine = resources_->engine.get()](uint32_t rank) {
    return end_of(rank, *oob, *engine) != Departure::kPresent;
  };
  return resources_->reunion->seat_among(members, gone);
}

Status Communicator::explain_absence(const std::vector<uint32_t>& members, Status status) const {
  std::string text;
  for (uint32_t rank : members) {
    const Departure how = end_of(rank, *resources_->oob, *resources_->engine);
    if (how != Departure::kPresent) text += fmt::format("{} {}", text.empty() ? "" : ",", describe({rank, how}));
  }
  if (text.empty()) return status;
  return fail(status.code(), "ncclCommShrink: of the ranks of the parent communicator that should remain:{}", text);
}

Communicator::Settings Communicator::inheritance(const std::optional<InitOptions>& options) const {
  return {options.value_or(resources_->options), resources_->config};
}

}  // namespace talaria
