// What the bootstrap tests share: settings, joining, raw connections, counts of this process's resources.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/config.h"
#include "base/os.h"
#include "bootstrap/address.h"
#include "bootstrap/out_of_band.h"
#include "bootstrap/root.h"
#include "bootstrap/socket.h"
#include "bootstrap/unique_id.h"

namespace talaria::test {

inline const StopFlag kNever;

// The settings of a process without NCCL variables, except that giving up takes half a second, not a minute.
inline Config quiet_config() {
  Config config{};
  config.socket_retry_count = 10;
  config.socket_retry_sleep_msec = 10;
  return config;
}

inline UniqueId fresh_id() {
  Result<UniqueId> id = create_unique_id(quiet_config());
  EXPECT_TRUE(id.ok()) << last_error_text();
  return id.ok() ? *id : UniqueId{};
}

inline Result<std::unique_ptr<OutOfBand>> join(const UniqueId& id, int rank, int nranks,
                                               const StopFlag& abort = kNever) {
  static const Config config = quiet_config();
  return rendezvous(id, static_cast<uint32_t>(rank), static_cast<uint32_t>(nranks), config, abort);
}

inline SocketAddress loopback() {
  SocketAddress address{};
  address.v4.sin_family = AF_INET;
  address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A port of the loopback interface that nobody uses now.
inline uint16_t free_port() {
  UniqueFd listener;
  EXPECT_EQ(listen_at(loopback(), listener), 0);
  return port_of(local_address(listener.get()));
}

// A root with limits of our own, in a thread; the id leads to it.
class TestRoot {
 public:
  explicit TestRoot(const RootLimits& limits, const SocketAddress& at = loopback()) {
    id_.magic = UniqueId::kMagic;
    id_.version = UniqueId::kVersion;
    fill_random(std::as_writable_bytes(std::span(id_.secret)));
    UniqueFd listener;
    EXPECT_EQ(listen_at(at, listener), 0);
    id_.address = local_address(listener.get());
    root_ = std::make_unique<Root>(std::move(listener), Secret(id_), limits);
    thread_ = std::thread([this] { root_->run(-1); });
  }
  ~TestRoot() { thread_.join(); }
  const UniqueId& id() const { return id_; }

 private:
  UniqueId id_{};
  std::unique_ptr<Root> root_;
  std::thread thread_;
};

// A connection made by hand, to send anything.
class Stranger {
 public:
  explicit Stranger(const UniqueId& id) {
    EXPECT_EQ(connect_to(id.address, Patience{kNever}, socket_), 0) << to_text(id.address);
  }
  void say(const void* bytes, size_t count) {
    EXPECT_EQ(send_all(socket_.get(), {static_cast<const std::byte*>(bytes), count}, Patience{kNever}), 0);
  }
  template <typename T>
  bool hear(T& value) {
    return receive_all(socket_.get(), std::as_writable_bytes(std::span(&value, 1)), Patience{kNever}) == 0;
  }
  // The answer, after what else a root may say.
  bool hear(Reply& reply) {
    do {
      if (!hear<Reply>(reply)) return false;
    } while (reply.code == static_cast<int>(Code::kInProgress));
    return true;
  }
  // Waits until the other side closes; false if it says something first.
  bool is_dropped() {
    char byte;
    return !hear(byte);
  }
  void leave() { hang_up(socket_); }

 private:
  UniqueFd socket_;
};

inline long descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}
inline long threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}
// A detached root needs a moment after its last answer to leave.
inline bool settles_at(long wanted_descriptors, long wanted_threads) {
  for (const double end = now_usec() + 10e6; now_usec() < end; std::this_thread::yield()) {
    if (descriptors() <= wanted_descriptors && threads() <= wanted_threads) return true;
  }
  return false;
}

inline bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace talaria::test
