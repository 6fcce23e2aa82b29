// Lobby: a listening socket that lets in whoever proves the communicator's secret, and is never held up by others.
//
// The one who connects sends a Greeting, whose first field is the proof; nothing after it is read before the proof
// holds. The lobby answers with the other half of the secret (the welcome), so each side knows the other. Strangers
// (silence, garbage, half a greeting) cost a descriptor until their time is over, and are named in the log at INFO.
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/unique.h"
#include "bootstrap/unique_id.h"

namespace talaria {

using Proof = std::array<std::byte, 16>;

// The two halves of an id's secret: what the joining side shows, and what the listening side answers.
struct Secret {
  explicit Secret(const UniqueId& id);
  Proof joiner, host;
};

// Equal? In constant time, so that timing tells nothing about a secret.
bool same_proof(const Proof& a, const Proof& b);

// What a rank sends first on every bootstrap connection. `proof`, `version` and `rank` keep their place in every
// version, and no version sends fewer bytes.
struct Greeting {
  static constexpr uint32_t kVersion = 3;
  Proof proof;
  uint32_t version;
  uint32_t rank, nranks;
  int32_t process;         // for messages only
  // What follows is for a root; ring neighbours leave it zero.
  SocketAddress listener;  // where the rank awaits its ring predecessor
  uint32_t root, nroots;   // which of how many roots it believes to talk to
  uint32_t patience_msec;  // how long it waits for the others to come; 0: for ever
  char host[56];           // for messages only; NUL-terminated
};
static_assert(sizeof(Greeting) == 128);

Greeting make_greeting(const Secret& secret, uint32_t rank, uint32_t nranks);
// "rank 3 (host node7, process 1234)"
std::string describe(const Greeting& greeting);

struct Guest {
  UniqueFd socket;
  Greeting greeting;
};

struct LobbyLimits {
  size_t strangers = 512;       // unproven connections at once; beyond, the oldest goes
  double greeting_usec = 20e6;  // time a connection has for its greeting
  bool lent = false;            // the listener is somebody's who goes on listening
};

class Lobby {
 public:
  Lobby(UniqueFd listener, const Secret& secret, const LobbyLimits& limits = {});
  ~Lobby();
  Lobby(const Lobby&) = delete;
  Lobby& operator=(const Lobby&) = delete;

  // Waits at most `msec` (-1: no limit of its own) for anything: on the listener, on its strangers, or on `watched`,
  // whose revents are filled in. Returns those who have just proven the secret; they have been welcomed.
  std::vector<Guest> wait(int msec, std::span<pollfd> watched);
  // Drops the strangers, and stops listening, also for processes that inherited the socket; only here if it is lent.
  void close();
  // Drops the strangers; the listener goes on with the caller.
  UniqueFd take_listener();

 private:
  struct Stranger {
    UniqueFd socket;
    SocketAddress from;
    double until_usec;
    size_t received = 0;
    Greeting greeting{};
  };
  enum class Reading : uint8_t { kMore, kProven, kDropped };

  int next_timeout(int msec) const;
  void drop_all();
  void accept_all();
  Reading read_from(Stranger& stranger);
  void drop_late();

  UniqueFd listener_;
  const Secret secret_;
  const LobbyLimits limits_;
  std::vector<Stranger> strangers_;  // oldest first
};

}  // namespace talaria
