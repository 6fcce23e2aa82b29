// TCP sockets of the bootstrap: non-blocking descriptors and calls that wait with an eye on an abort flag.
//
// Every descriptor is close-on-exec and no call raises SIGPIPE. The calls return 0 or an errno: ECANCELED when aborted,
// ETIMEDOUT when the time is over, ECONNRESET also when the other side has closed. They log nothing: what an error
// means is known to the caller.
#pragma once

#include <poll.h>

#include <cstddef>
#include <functional>
#include <limits>
#include <span>

#include "base/unique.h"
#include "bootstrap/stop_flag.h"
#include "bootstrap/unique_id.h"

namespace talaria {

// How long a call may wait: until `until_usec` of now_usec(), or until `abort` is set (noticed within 50 ms). While it
// does, it calls `meanwhile` about as often as it looks at `abort`, and ends with EOWNERDEAD when that returns false.
struct Patience {
  const StopFlag& abort;
  double until_usec = std::numeric_limits<double>::infinity();
  const std::function<bool()>* meanwhile = nullptr;
};

// The longest poll() between two looks at the abort flag, which must be noticed within 100 ms.
inline constexpr int kAbortPollMsec = 50;

// Listens at `address`; port 0 takes a free one.
int listen_at(const SocketAddress& address, UniqueFd& listener);
int connect_to(const SocketAddress& address, const Patience& patience, UniqueFd& socket);
// Takes one waiting connection; EAGAIN when there is none.
int accept_from(int listener, UniqueFd& socket, SocketAddress& peer);
SocketAddress local_address(int socket);
// Best effort: a refused option only costs speed, or the time to notice that a host has vanished.
void set_option(int socket, int level, int option, int value);

// Polls until one of `descriptors` has an event; 0 then.
int wait_for(std::span<pollfd> descriptors, const Patience& patience);
int send_all(int socket, std::span<const std::byte> bytes, const Patience& patience);
int receive_all(int socket, std::span<std::byte> bytes, const Patience& patience);
// Sleeps, but not through an abort or beyond the patience.
int pause_for(int msec, const Patience& patience);

// Ends the connection or the listening for every process that inherited the descriptor, then closes it.
void hang_up(UniqueFd& socket);

}  // namespace talaria
