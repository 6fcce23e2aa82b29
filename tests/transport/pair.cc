#include "pair.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <vector>

#include "base/unique.h"
#include "transport/shared_memory.h"
#include "transport/tcp_links.h"

namespace talaria::test {
namespace {

// The peer's mailbox is mapped here.
class MappedEnd : public End {
 public:
  MappedEnd(SharedMemory own, SharedMemory peer) : own_(std::move(own)), peer_(std::move(peer)) {}
  std::byte* mailbox() override { return own_.data(); }
  std::byte* place(uint64_t offset) override { return peer_.data() + offset; }
  void put(const Put& put) override {
    std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(peer_.data() + put.word))
        .store(put.value, std::memory_order_release);
  }

 private:
  SharedMemory own_, peer_;
};

SharedMemory opened(const SharedMemory& memory, size_t bytes) {
  SharedMemory other;
  EXPECT_EQ(SharedMemory::open(memory.name(), bytes, other), 0);
  return other;
}

Ends map_both(SharedMemory a, SharedMemory b, size_t bytes) {
  SharedMemory a_of_b = opened(a, bytes), b_of_a = opened(b, bytes);
  return {std::make_unique<MappedEnd>(std::move(a), std::move(b_of_a)),
          std::make_unique<MappedEnd>(std::move(b), std::move(a_of_b))};
}

class TcpEnd : public End {
 public:
  TcpEnd(size_t bytes, std::vector<UniqueFd> sockets, uint32_t wires_per_thread)
      : memory_(SharedMemory::create_private(bytes).value()),
        links_(2, std::span(memory_.data(), bytes), wires_per_thread),
        mirror_(links_.add(1, std::move(sockets)).value()) {
    EXPECT_TRUE(links_.start().ok());
    links_.work(true);
  }
  std::byte* mailbox() override { return memory_.data(); }
  std::byte* place(uint64_t offset) override { return mirror_ + offset; }
  void put(const Put& put) override {
    PutList list{put};
    links_.put(1, list);
  }
  void drive() override { links_.drive(); }
  bool flushed() override { return links_.flushed(); }
  bool ended() override { return links_.ended(1); }

 private:
  SharedMemory memory_;
  TcpLinks links_;
  std::byte* mirror_;
};

}  // namespace

TransportCase process_memory() {
  return {"process_memory",
          [](size_t bytes) {
            return map_both(SharedMemory::create_private(bytes).value(), SharedMemory::create_private(bytes).value(),
                            bytes);
          }};
}

TransportCase shared_memory() {
  return {"shared_memory",
          [](size_t bytes) {
            SharedMemory a, b;
            EXPECT_EQ(SharedMemory::create(bytes, a), 0);
            EXPECT_EQ(SharedMemory::create(bytes, b), 0);
            return map_both(std::move(a), std::move(b), bytes);
          }};
}

TransportCase tcp(uint32_t own, uint32_t helpers) {
  const uint32_t sockets = own * (1 + helpers);
  return {fmt::format("tcp_{}_sockets_{}_helpers", sockets, helpers),
          [own, sockets](size_t bytes) {
            std::vector<UniqueFd> a, b;
            for (uint32_t i = 0; i < sockets; ++i) {
              const auto [left, right] = connected_sockets();
              a.emplace_back(left);
              b.emplace_back(right);
            }
            return Ends{std::make_unique<TcpEnd>(bytes, std::move(a), own),
                        std::make_unique<TcpEnd>(bytes, std::move(b), own)};
          }};
}

std::pair<int, int> connected_sockets() {
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  EXPECT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(listen(listener.get(), 1), 0);
  EXPECT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  const int left = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(left, reinterpret_cast<sockaddr*>(&address), length), 0);
  const int right = accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC);
  for (const int socket : {left, right}) {
    const int one = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  }
  return {left, right};
}

}  // namespace talaria::test
