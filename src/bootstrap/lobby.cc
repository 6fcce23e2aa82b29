#include "bootstrap/lobby.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/os.h"
#include "bootstrap/address.h"
#include "bootstrap/socket.h"

namespace talaria {
namespace {

void log_dropped(const SocketAddress& from, const char* reason) {
  log_info(kLogBootstrap, "Bootstrap: dropped a connection from {}: {}", to_text(from), reason);
}

}  // namespace

Secret::Secret(const UniqueId& id) {
  static_assert(sizeof(id.secret) == sizeof(joiner) + sizeof(host));
  memcpy(joiner.data(), id.secret, sizeof(joiner));
  memcpy(host.data(), id.secret + sizeof(joiner), sizeof(host));
}

bool same_proof(const Proof& a, const Proof& b) {
  std::byte difference{};
  for (size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == std::byte{};
}

Greeting make_greeting(const Secret& secret, uint32_t rank, uint32_t nranks) {
  Greeting greeting{};
  greeting.proof = secret.joiner;
  greeting.version = Greeting::kVersion;
  greeting.rank = rank;
  greeting.nranks = nranks;
  greeting.nroots = 1;
  greeting.process = getpid();
  host_name().copy(greeting.host, sizeof(greeting.host) - 1);
  return greeting;
}

std::string describe(const Greeting& greeting) {
  std::string host(greeting.host, strnlen(greeting.host, sizeof(greeting.host)));
  std::ranges::replace_if(host, [](char c) { return c <= ' ' || c > '~'; }, '?');  // it may end up on a terminal
  return fmt::format("rank {} (host {}, process {})", greeting.rank, host, greeting.process);
}

Lobby::Lobby(UniqueFd listener, const Secret& secret, const LobbyLimits& limits)
    : listener_(std::move(listener)), secret_(secret), limits_(limits) {}

Lobby::~Lobby() { close(); }

void Lobby::close() {
  if (limits_.lent) listener_.reset();
  hang_up(listener_);
  drop_all();
}

UniqueFd Lobby::take_listener() {
  drop_all();
  return std::move(listener_);
}

void Lobby::drop_all() {
  for (Stranger& stranger : strangers_) hang_up(stranger.socket);
  strangers_.clear();
}

int Lobby::next_timeout(int msec) const {
  if (strangers_.empty()) return msec;
  const double left_usec = std::max(0.0, strangers_.front().until_usec - now_usec());
  const int left_msec = static_cast<int>(left_usec / 1000) + 1;
  return msec < 0 ? left_msec : std::min(msec, left_msec);
}

std::vector<Guest> Lobby::wait(int msec, std::span<pollfd> watched) {
  std::vector<pollfd> entries{{listener_.get(), POLLIN, 0}};
  for (const Stranger& stranger : strangers_) entries.push_back({stranger.socket.get(), POLLIN, 0});
  entries.insert(entries.end(), watched.begin(), watched.end());
  const bool ready = poll(entries.data(), entries.size(), next_timeout(msec)) > 0;
  for (size_t i = 0; i < watched.size(); ++i) {
    watched[i].revents = ready ? entries[1 + strangers_.size() + i].revents : static_cast<short>(0);
  }
  if (ready && entries[0].revents != 0) accept_all();
  // Newly accepted ones are read too: a rank's greeting is usually there already.
  std::vector<Guest> proven;
  std::vector<Stranger> staying;
  for (Stranger& stranger : strangers_) {
    const Reading reading = read_from(stranger);
    if (reading == Reading::kProven) proven.push_back({std::move(stranger.socket), stranger.greeting});
    if (reading == Reading::kMore) staying.push_back(std::move(stranger));
  }
  strangers_ = std::move(staying);
  drop_late();
  return proven;
}

void Lobby::accept_all() {
  for (int burst = 0; burst < 64; ++burst) {
    Stranger stranger;
    const int error = accept_from(listener_.get(), stranger.socket, stranger.from);
    if (error == EINTR || error == ECONNABORTED) continue;
    if (error == EMFILE || error == ENFILE) {
      // Out of descriptors: make room at the strangers' expense, else give the process time to free some.
      log_warn("Bootstrap: cannot accept a connection: {}", strerror(error));
      if (strangers_.empty()) poll(nullptr, 0, 10);
      else strangers_.erase(strangers_.begin());
      return;
    }
    if (error != 0) return;
    stranger.until_usec = now_usec() + limits_.greeting_usec;
    strangers_.push_back(std::move(stranger));
  }
}

Lobby::Reading Lobby::read_from(Stranger& stranger) {
  auto* bytes = reinterpret_cast<char*>(&stranger.greeting);
  while (stranger.received < sizeof(Greeting)) {
    const size_t end = stranger.received < sizeof(Proof) ? sizeof(Proof) : sizeof(Greeting);
    const ssize_t got = recv(stranger.socket.get(), bytes + stranger.received, end - stranger.received, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return Reading::kMore;
    if (got <= 0) {
      log_dropped(stranger.from, "it closed before its greeting was complete");
      return Reading::kDropped;
    }
    stranger.received += static_cast<size_t>(got);
    if (stranger.received == sizeof(Proof) && !same_proof(stranger.greeting.proof, secret_.joiner)) {
      log_dropped(stranger.from, "it does not know the secret of this communicator");
      return Reading::kDropped;
    }
  }
  // The send buffer of a fresh connection always has room for the welcome.
  const ssize_t sent = send(stranger.socket.get(), secret_.host.data(), secret_.host.size(), MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(secret_.host.size())) return Reading::kProven;
  log_dropped(stranger.from, "it closed before it was welcomed");
  return Reading::kDropped;
}

void Lobby::drop_late() {
  const double now = now_usec();
  while (!strangers_.empty() && (strangers_.front().until_usec <= now || strangers_.size() > limits_.strangers)) {
    log_dropped(strangers_.front().from, "it did not send its greeting in time");
    strangers_.erase(strangers_.begin());
  }
}

}  // namespace talaria
