#include "service/linger.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/os.h"
#include "base/quiet_thread.h"

namespace talaria {
namespace {

constexpr double kLongestUsec = 60e6;

// Reads what nobody wants any more. True when the socket may be closed without loss.
bool finished(int socket) {
  char waste[4096];
  for (;;) {
    const ssize_t got = recv(socket, waste, sizeof(waste), MSG_DONTWAIT);
    if (got > 0 || (got < 0 && errno == EINTR)) continue;
    if (got < 0 && errno != EAGAIN) return true;
    break;
  }
  // Of a connection that was reset, what was not acknowledged stays counted for ever.
  tcp_info state{};
  socklen_t length = sizeof(state);
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &state, &length) == 0 && state.tcpi_state == TCP_CLOSE) return true;
  int unacknowledged = 0;
  return ioctl(socket, SIOCOUTQ, &unacknowledged) != 0 || unacknowledged == 0;
}

struct Lingering {
  UniqueFd socket;
  double until_usec;
};

// The slow ones, and the thread that is there while there are any.
class Room {
 public:
  void add(Lingering lingering) {
    const std::lock_guard lock(mutex_);
    if (owner_ != getpid()) sockets_.clear();  // a forked child: the parent looks after those
    const bool running = owner_ == getpid() && !sockets_.empty();
    owner_ = getpid();
    sockets_.push_back(std::move(lingering));
    if (running) return;
    Result<std::thread> thread = start_quiet_thread("talaria-linger", [this] { run(); });
    if (thread.ok()) thread->detach();
    else sockets_.clear();
  }

 private:
  void run() {
    constexpr int kLookEveryMsec = 10;
    for (;;) {
      poll(nullptr, 0, kLookEveryMsec);
      const std::lock_guard lock(mutex_);
      const double now = now_usec();
      std::erase_if(sockets_,
                    [now](const Lingering& one) { return finished(one.socket.get()) || now > one.until_usec; });
      if (sockets_.empty()) return;
    }
  }

  std::mutex mutex_;
  std::vector<Lingering> sockets_;
  int owner_ = 0;
};

}  // namespace

void linger(UniqueFd socket) {
  if (!socket.valid()) return;
  shutdown(socket.get(), SHUT_WR);
  if (finished(socket.get())) return;
  static auto* room = new Room;
  room->add({std::move(socket), now_usec() + kLongestUsec});
}

}  // namespace talaria
