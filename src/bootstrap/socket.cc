#include "bootstrap/socket.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/os.h"
#include "bootstrap/address.h"

namespace talaria {
namespace {

void tune(int socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  // A host that vanishes without closing its sockets shows up after about half a minute.
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

int open_stream(const SocketAddress& address, UniqueFd& out) {
  out.reset(socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  return out.valid() ? 0 : errno;
}

// A connection to a free ephemeral port of this machine can be given that same port as its own and meet itself.
bool met_itself(int socket) {
  SocketAddress peer{};
  socklen_t length = sizeof(peer);
  if (getpeername(socket, &peer.any, &length) != 0) return false;
  const SocketAddress own = local_address(socket);
  return port_of(own) == port_of(peer) && host_text(own) == host_text(peer);
}

}  // namespace

void set_option(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof(value));
}

int listen_at(const SocketAddress& address, UniqueFd& listener) {
  if (const int error = open_stream(address, listener); error != 0) return error;
  // Lets a fixed port be taken again while connections of its last use are in TIME_WAIT.
  if (port_of(address) != 0) set_option(listener.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (bind(listener.get(), &address.any, length_of(address)) != 0 || listen(listener.get(), SOMAXCONN) != 0) {
    const int error = errno;
    listener.reset();
    return error;
  }
  return 0;
}

int connect_to(const SocketAddress& address, const Patience& patience, UniqueFd& socket) {
  if (const int error = open_stream(address, socket); error != 0) return error;
  tune(socket.get());
  if (connect(socket.get(), &address.any, length_of(address)) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) return errno;
    pollfd entry{socket.get(), POLLOUT, 0};
    if (const int error = wait_for(std::span(&entry, 1), patience); error != 0) return error;
    int error = 0;
    socklen_t length = sizeof(error);
    if (getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
    if (error != 0) return error;
  }
  return met_itself(socket.get()) ? ECONNREFUSED : 0;
}

int accept_from(int listener, UniqueFd& socket, SocketAddress& peer) {
  socklen_t length = sizeof(peer);
  socket.reset(accept4(listener, &peer.any, &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.valid()) return errno;
  tune(socket.get());
  return 0;
}

SocketAddress local_address(int socket) {
  SocketAddress address{};
  socklen_t length = sizeof(address);
  if (getsockname(socket, &address.any, &length) != 0) return SocketAddress{};
  return address;
}

int wait_for(std::span<pollfd> descriptors, const Patience& patience) {
  for (;;) {
    if (patience.abort.stopped()) return ECANCELED;
    const bool asked = patience.meanwhile != nullptr && *patience.meanwhile;
    if (asked && !(*patience.meanwhile)()) return EOWNERDEAD;
    const double left_msec = (patience.until_usec - now_usec()) / 1000;
    if (left_msec <= 0) return ETIMEDOUT;
    const int msec = static_cast<int>(std::clamp(left_msec, 1.0, static_cast<double>(kAbortPollMsec)));
    const int ready = poll(descriptors.data(), descriptors.size(), msec);
    if (ready > 0) return 0;
    if (ready < 0 && errno != EINTR) return errno;
  }
}

int send_all(int socket, std::span<const std::byte> bytes, const Patience& patience) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      pollfd entry{socket, POLLOUT, 0};
      if (const int error = wait_for(std::span(&entry, 1), patience); error != 0) return error;
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

int receive_all(int socket, std::span<std::byte> bytes, const Patience& patience) {
  while (!bytes.empty()) {
    const ssize_t got = recv(socket, bytes.data(), bytes.size(), 0);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<size_t>(got));
    } else if (got == 0) {
      return ECONNRESET;
    } else if (errno == EAGAIN) {
      pollfd entry{socket, POLLIN, 0};
      if (const int error = wait_for(std::span(&entry, 1), patience); error != 0) return error;
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

int pause_for(int msec, const Patience& patience) {
  const Patience nap{patience.abort, std::min(patience.until_usec, now_usec() + msec * 1000.0), patience.meanwhile};
  const int error = wait_for({}, nap);
  return error == ETIMEDOUT && now_usec() < patience.until_usec ? 0 : error;
}

void hang_up(UniqueFd& socket) {
  if (!socket.valid()) return;
  shutdown(socket.get(), SHUT_RDWR);
  socket.reset();
}

}  // namespace talaria
