#include "bootstrap/root.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/os.h"
#include "bootstrap/socket.h"

namespace talaria {
namespace {

constexpr double kAskEveryUsec = 1e5;

// Replies fit the empty send buffer of a connection that has carried only the welcome; one that fails belongs to a rank
// that is gone, which its ring neighbours will find out.
void tell(const Guest& guest, const Reply& reply) {
  if (send(guest.socket.get(), &reply, sizeof(reply), MSG_NOSIGNAL) != sizeof(reply)) {
    log_info(kLogBootstrap, "Bootstrap: {} left before it was answered", describe(guest.greeting));
  }
}

// A seated rank has nothing to say: whatever arrives from it means that it left or is broken.
bool has_left(const Guest& guest) {
  char byte;
  return recv(guest.socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EINTR);
}

// Is it a rank of this process?
bool is_here(const Guest& guest) {
  return guest.greeting.process == getpid() && host_name().starts_with(guest.greeting.host);
}

Reply refusal(Code code, const std::string& text) {
  Reply reply{};
  reply.code = static_cast<int32_t>(code);
  reply.whom = Reply::kNobody;
  text.copy(reply.text, sizeof(reply.text) - 1);
  return reply;
}

// What is left of the process's descriptors is for the application: half of few, a fixed number of many.
size_t seats_allowed(const RootLimits& limits) {
  constexpr rlim_t kOthers = 64;
  rlimit descriptors{};
  if (limits.seats != 0) return limits.seats;
  if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0 || descriptors.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return descriptors.rlim_cur - std::min(descriptors.rlim_cur / 2, kOthers);
}

}  // namespace

std::string list_ranks(const std::vector<uint32_t>& ranks, size_t most) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (!text.empty()) text += ", ";
    if (text.size() > most) return text + "...";
    text += end - i == 1 ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[end - 1]);
    i = end;
  }
  return text;
}

Root::Root(UniqueFd listener, const Secret& secret, const RootLimits& limits)
    : lobby_(std::move(listener), secret, limits.lobby), limits_(limits) {}

void Root::run(int stop) {
  std::vector<pollfd> watched;
  std::vector<uint32_t> ranks;
  while (!finished()) {
    watched.assign(1, {stop, POLLIN, 0});
    ranks.clear();
    for (const auto& [rank, guest] : seats_) {
      watched.push_back({guest.socket.get(), POLLIN, 0});
      ranks.push_back(rank);
    }
    std::vector<Guest> guests = lobby_.wait(timeout_msec(), watched);
    if (watched[0].revents != 0) break;
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (watched[i + 1].revents != 0) drop_if_left(ranks[i]);
    }
    for (Guest& guest : guests) admit(std::move(guest));
    if (!failed_ && nranks_ != 0 && seats_.size() == share_.awaited()) introduce_all();
    else settle();
  }
  lobby_.close();
  for (auto& [rank, guest] : seats_) hang_up(guest.socket);
}

bool Root::finished() const {
  return introduced_ || (failed_ && (told_ >= share_.awaited() || now_usec() >= deadline_usec_));
}

int Root::timeout_msec() const {
  double until = complaint_.empty() ? std::numeric_limits<double>::infinity() : deadline_usec_;
  if (!failed_) until = std::min(until, patience_until_usec_);
  if (!failed_ && limits_.expected.gone) until = std::min(until, now_usec() + kAskEveryUsec);
  constexpr double kLongest = 60e6;  // also keeps the number small
  return static_cast<int>(std::clamp(until - now_usec(), 0.0, kLongest) / 1000) + 1;
}

void Root::admit(Guest guest) {
  const Greeting& greeting = guest.greeting;
  if (!limits_.expected.names.empty() && has_left(guest)) return;
  if (greeting.version != Greeting::kVersion) {
    // Its other words may mean something else. Those who come later are to be told as well, so it counts as one of
    // the ranks.
    if (nranks_ == 0) share_ = share_of(0, std::max(greeting.rank + 1, greeting.nranks), 1);
    ++told_;
    complain(Code::kInvalidUsage,
             fmt::format("Mismatched NCCL version detected : rank {} speaks version {} of Talaria's bootstrap "
                         "protocol, the root speaks version {}", greeting.rank, greeting.version, Greeting::kVersion));
    return tell(guest, refusal(code_, complaint_));
  }
  if (const Reply nonsense = refuse_nonsense(greeting); nonsense.code != 0) {
    log_warn("Bootstrap: {}", nonsense.text);
    return tell(guest, nonsense);
  }
  // Before it is asked whether the seat is free: a rank that left may have come back.
  drop_if_left(greeting.rank);
  if (!refuse_conflict(guest)) seat(std::move(guest));
}

Reply Root::refuse_nonsense(const Greeting& greeting) const {
  const std::string who = describe_guest(greeting);
  if (greeting.rank >= greeting.nranks) {
    return refusal(Code::kInvalidArgument,
                   fmt::format("{} is out of range: the communicator has {} ranks", who, greeting.nranks));
  }
  if (greeting.root >= greeting.nroots || greeting.nroots > greeting.nranks) {
    return refusal(Code::kInvalidArgument, fmt::format("{} came to root {} of {}, for {} ranks", who, greeting.root,
                                                       greeting.nroots, greeting.nranks));
  }
  const RootShare share = share_of(greeting.root, greeting.nranks, greeting.nroots);
  if (!share.holds(greeting.rank) && greeting.rank != share.visitor) {
    return refusal(Code::kInvalidArgument, fmt::format("{} came to root {} of {}, which serves ranks {}-{} only", who,
                                                       greeting.root, greeting.nroots, share.first, share.end - 1));
  }
  if (const size_t allowed = seats_allowed(limits_); share.awaited() > allowed) {
    return refusal(Code::kSystem,
                   fmt::format("one root for {} ranks needs more descriptors than its process may have, which leaves "
                               "{} for them: raise 'ulimit -n' there, or spread the ranks over {} ids with "
                               "ncclCommInitRankScalable", share.size(), allowed,
                               greeting.nranks / std::max<size_t>(1, allowed - 1) + 1));
  }
  return Reply{};
}

// True if it has been told that it, or the whole rendezvous, cannot go on.
bool Root::refuse_conflict(Guest& guest) {
  const Greeting& greeting = guest.greeting;
  const std::string who = describe_guest(greeting);
  if (failed_) {
    ++told_;
  } else if (!seats_.empty() && greeting.nranks != nranks_) {
    complain(Code::kInvalidUsage, fmt::format("{} joined with {} ranks, but {} with {} ranks", who, greeting.nranks,
                                              describe_guest(seats_.begin()->second.greeting), nranks_));
    ++told_;
  } else if (!seats_.empty() && (greeting.root != root_ || greeting.nroots != nroots_)) {
    complain(Code::kInvalidUsage,
             fmt::format("{} has this id as number {} of {}, but {} as number {} of {}: all ranks must give the same "
                         "ids in the same order", who, greeting.root, greeting.nroots,
                         describe_guest(seats_.begin()->second.greeting), root_, nroots_));
    ++told_;
  } else if (const auto taken = seats_.find(greeting.rank); taken != seats_.end()) {
    complain(Code::kInvalidUsage, fmt::format("{} and {} joined as the same rank", who,
                                              describe_guest(taken->second.greeting)));
  } else {
    return false;
  }
  Reply reply = refusal(code_, complaint_);
  reply.whom = absent_;
  tell(guest, reply);
  return true;
}

void Root::seat(Guest guest) {
  const Greeting& greeting = guest.greeting;
  nranks_ = greeting.nranks;
  root_ = greeting.root;
  nroots_ = greeting.nroots;
  share_ = share_of(root_, nranks_, nroots_);
  if (greeting.patience_msec != 0) {
    const double until = now_usec() + greeting.patience_msec * 1000.0;
    if (until < patience_until_usec_) patience_sec_ = greeting.patience_msec / 1000.0;
    patience_until_usec_ = std::min(patience_until_usec_, until);
  }
  log_info(kLogBootstrap, "Bootstrap: {} of {} has arrived, {} of {} present", describe_guest(greeting), nranks_,
           seats_.size() + 1, share_.awaited());
  introduce_host(seats_.emplace(greeting.rank, std::move(guest)).first->second);
}

// Should this process die, all know which rank that was.
void Root::introduce_host(const Guest& guest) {
  const bool new_host = host_ == Reply::kNobody && is_here(guest);
  if (new_host) host_ = guest.greeting.rank;
  if (host_ == Reply::kNobody) return;
  Reply reply = refusal(Code::kInProgress, "");
  reply.whom = host_;
  if (!new_host) return tell(guest, reply);
  for (const auto& [rank, seated] : seats_) tell(seated, reply);
}

void Root::drop_if_left(uint32_t rank) {
  const auto seat = seats_.find(rank);
  if (seat == seats_.end() || !has_left(seat->second)) return;
  complain(Code::kRemote, fmt::format("{} left before all {} ranks had joined", describe_guest(seat->second.greeting),
                                      nranks_));
  seats_.erase(seat);
  ++told_;
}

void Root::complain(Code code, std::string text) {
  log_warn("Bootstrap: {}", text);
  if (!complaint_.empty()) return;  // the first one is the cause
  code_ = code;
  complaint_ = std::move(text);
  deadline_usec_ = now_usec() + limits_.grace_usec;
}

std::vector<uint32_t> Root::missing() const {
  std::vector<uint32_t> ranks;
  for (uint32_t rank = share_.first; rank < share_.end; ++rank) {
    if (!seats_.contains(rank)) ranks.push_back(rank);
  }
  if (!seats_.contains(share_.visitor) && !share_.holds(share_.visitor)) ranks.push_back(share_.visitor);
  return ranks;
}

void Root::settle() {
  if (failed_) return;
  const double now = now_usec();
  if (!complaint_.empty() && now >= deadline_usec_) return fail_all();
  if (now >= patience_until_usec_) {
    return give_up_on(missing(), fmt::format("have not come within {} s (TALARIA_INIT_TIMEOUT)", patience_sec_));
  }
  // Not before rank 0 has come, whose process this is: it must hear of it too.
  const bool due = now - asked_usec_ >= kAskEveryUsec && seats_.contains(0);
  if (limits_.expected.gone && due) look_for_gone();
}

void Root::look_for_gone() {
  asked_usec_ = now_usec();
  std::vector<uint32_t> gone = missing();
  std::erase_if(gone, [&](uint32_t rank) { return !limits_.expected.gone(rank); });
  if (!gone.empty()) give_up_on(gone, "have died or destroyed their communicator");
}

void Root::give_up_on(const std::vector<uint32_t>& absent, const std::string& why) {
  complain(Code::kRemote, fmt::format("{} of {} ranks {}: {}", absent.size(), nranks_, why, list(absent)));
  absent_ = absent.front();
  fail_all();
}

std::string Root::list(std::vector<uint32_t> ranks) const {
  if (limits_.expected.names.empty()) return "rank " + list_ranks(ranks, 300);
  for (uint32_t& rank : ranks) rank = limits_.expected.names[rank];
  return fmt::format("rank {} of the parent communicator", list_ranks(ranks, 300));
}

std::string Root::describe_guest(Greeting greeting) const {
  const std::vector<uint32_t>& names = limits_.expected.names;
  if (greeting.rank < names.size()) greeting.rank = names[greeting.rank];
  return describe(greeting);
}

void Root::introduce_all() {
  // Closed first: a rank that has its answer may open the next communicator on the same fixed port at once, and must
  // not be let into this one.
  lobby_.close();
  for (auto& [rank, guest] : seats_) {
    Reply reply{};
    reply.whom = Reply::kNobody;
    if (share_.holds(rank)) reply.successor = seats_.at((rank + 1) % nranks_).greeting.listener;
    tell(guest, reply);
  }
  introduced_ = true;
}

void Root::fail_all() {
  failed_ = true;
  deadline_usec_ = now_usec() + limits_.linger_usec;
  Reply reply = refusal(code_, complaint_);
  reply.whom = absent_;
  // Ranks of this process last: it may end as soon as they know.
  for (const bool here : {false, true}) {
    for (const auto& [rank, guest] : seats_) {
      if (is_here(guest) == here) tell(guest, reply);
    }
  }
  told_ += static_cast<uint32_t>(seats_.size());
  seats_.clear();
}

}  // namespace talaria
