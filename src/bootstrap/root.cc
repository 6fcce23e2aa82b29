#include "bootstrap/root.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/os.h"
#include "bootstrap/socket.h"

namespace talaria {
namespace {

// Replies fit the empty send buffer of a connection that has carried only the welcome; one that fails belongs to a rank
// that is gone, which its ring neighbours will find out.
void tell(Guest& guest, const Reply& reply) {
  if (send(guest.socket.get(), &reply, sizeof(reply), MSG_NOSIGNAL) != sizeof(reply)) {
    log_info(kLogBootstrap, "Bootstrap: {} left before it was answered", describe(guest.greeting));
  }
}

// A seated rank has nothing to say: whatever arrives from it means that it left or is broken.
bool has_left(const Guest& guest) {
  char byte;
  return recv(guest.socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EINTR);
}

Reply refusal(Code code, const std::string& text) {
  Reply reply{};
  reply.code = static_cast<int32_t>(code);
  text.copy(reply.text, sizeof(reply.text) - 1);
  return reply;
}

}  // namespace

Root::Root(UniqueFd listener, const Secret& secret, const RootLimits& limits)
    : lobby_(std::move(listener), secret, limits.lobby), limits_(limits) {}

void Root::run(int stop) {
  while (!finished()) {
    std::vector<pollfd> watched{{stop, POLLIN, 0}};
    for (const auto& [rank, guest] : seats_) watched.push_back({guest.socket.get(), POLLIN, 0});
    std::vector<Guest> guests = lobby_.wait(timeout_msec(), watched);
    if (watched[0].revents != 0) break;
    // Looked at after the poll, so that a rank that left and came back finds its seat free.
    const bool seats_stir = std::ranges::any_of(watched, [](const pollfd& entry) { return entry.revents != 0; });
    if (seats_stir || !guests.empty()) drop_those_who_left();
    for (Guest& guest : guests) seat(std::move(guest));
    if (!failed_ && nranks_ != 0 && seats_.size() == nranks_) introduce_all();
    else settle_complaint();
  }
  lobby_.close();
  for (auto& [rank, guest] : seats_) hang_up(guest.socket);
}

bool Root::finished() const {
  return introduced_ || (failed_ && (told_ >= nranks_ || now_usec() >= deadline_usec_));
}

int Root::timeout_msec() const {
  if (complaint_.empty()) return -1;
  return static_cast<int>(std::max(0.0, deadline_usec_ - now_usec()) / 1000) + 1;
}

void Root::seat(Guest guest) {
  const Greeting& greeting = guest.greeting;
  const std::string who = describe(greeting);
  if (greeting.version != Greeting::kVersion) {
    const std::string text = fmt::format("{} speaks version {} of the bootstrap protocol, the root speaks version {}",
                                         who, greeting.version, Greeting::kVersion);
    log_warn("Bootstrap: {}", text);
    return tell(guest, refusal(Code::kInvalidUsage, text));
  }
  if (greeting.rank >= greeting.nranks) {
    const std::string text = fmt::format("{} is out of range: the communicator has {} ranks", who, greeting.nranks);
    log_warn("Bootstrap: {}", text);
    return tell(guest, refusal(Code::kInvalidArgument, text));
  }
  if (failed_) {
    ++told_;
    return tell(guest, refusal(code_, complaint_));
  }
  if (nranks_ != 0 && greeting.nranks != nranks_ && !seats_.empty()) {
    complain(Code::kInvalidUsage, fmt::format("{} joined with {} ranks, but {} with {} ranks", who, greeting.nranks,
                                              describe(seats_.begin()->second.greeting), nranks_));
    ++told_;
    return tell(guest, refusal(code_, complaint_));
  }
  if (const auto taken = seats_.find(greeting.rank); taken != seats_.end()) {
    complain(Code::kInvalidUsage, fmt::format("{} and {} joined as the same rank", who,
                                              describe(taken->second.greeting)));
    return tell(guest, refusal(code_, complaint_));
  }
  nranks_ = greeting.nranks;
  log_info(kLogBootstrap, "Bootstrap: {} of {} has arrived, {} present", who, nranks_, seats_.size() + 1);
  seats_.emplace(greeting.rank, std::move(guest));
}

void Root::drop_those_who_left() {
  for (auto seat = seats_.begin(); seat != seats_.end();) {
    if (!has_left(seat->second)) {
      ++seat;
      continue;
    }
    complain(Code::kRemote, fmt::format("{} left before all {} ranks had joined", describe(seat->second.greeting),
                                        nranks_));
    seat = seats_.erase(seat);
    ++told_;
  }
}

void Root::complain(Code code, std::string text) {
  log_warn("Bootstrap: {}", text);
  if (!complaint_.empty()) return;  // the first one is the cause
  code_ = code;
  complaint_ = std::move(text);
  deadline_usec_ = now_usec() + limits_.grace_usec;
}

void Root::settle_complaint() {
  if (!complaint_.empty() && !failed_ && now_usec() >= deadline_usec_) fail_all();
}

void Root::introduce_all() {
  // Closed first: a rank that has its answer may open the next communicator on the same fixed port at once, and must
  // not be let into this one.
  lobby_.close();
  for (auto& [rank, guest] : seats_) {
    Reply reply{};
    reply.successor = seats_.at((rank + 1) % nranks_).greeting.listener;
    tell(guest, reply);
  }
  introduced_ = true;
}

void Root::fail_all() {
  failed_ = true;
  deadline_usec_ = now_usec() + limits_.linger_usec;
  for (auto& [rank, guest] : seats_) tell(guest, refusal(code_, complaint_));
  told_ += static_cast<uint32_t>(seats_.size());
  seats_.clear();
}

namespace {

struct RootThread {
  Root root;
  int stop;
};

void* run_root(void* argument) {
  const std::unique_ptr<RootThread> thread(static_cast<RootThread*>(argument));
  set_thread_name("talaria-root");
  thread->root.run(thread->stop);
  return nullptr;
}

Result<pthread_t> start_root(UniqueFd listener, const Secret& secret, int stop) {
  auto argument = std::unique_ptr<RootThread>(new RootThread{Root(std::move(listener), secret), stop});
  // The application's signals are for its own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const int error = pthread_create(&thread, nullptr, run_root, argument.get());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return fail(Code::kSystem, "Bootstrap: cannot start the root's thread: {}", strerror(error));
  argument.release();
  return thread;
}

}  // namespace

Result<std::unique_ptr<OwnedRoot>> OwnedRoot::start(UniqueFd listener, const Secret& secret) {
  std::unique_ptr<OwnedRoot> owned(new OwnedRoot);
  owned->stop_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!owned->stop_.valid()) return fail(Code::kSystem, "Bootstrap: eventfd failed: {}", strerror(errno));
  owned->thread_ = TRY(start_root(std::move(listener), secret, owned->stop_.get()));
  return owned;
}

OwnedRoot::~OwnedRoot() {
  if (thread_ == pthread_t{}) return;
  eventfd_write(stop_.get(), 1);
  pthread_join(thread_, nullptr);
}

Status start_detached_root(UniqueFd listener, const Secret& secret) {
  const pthread_t thread = TRY(start_root(std::move(listener), secret, -1));
  pthread_detach(thread);
  return Status();
}

}  // namespace talaria
