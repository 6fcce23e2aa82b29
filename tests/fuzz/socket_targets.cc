// What comes in by sockets: greetings at a lobby and at a root, and the headers of a ring.
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "base/os.h"
#include "bootstrap/lobby.h"
#include "bootstrap/ring.h"
#include "bootstrap/root.h"
#include "fuzz/targets.h"
#include "transport/frame.h"

namespace talaria::test {
namespace {

const StopFlag kNever;

template <typename T>
Bytes bytes_of(const T& value) {
  const auto* first = reinterpret_cast<const uint8_t*>(&value);
  return {first, first + sizeof(value)};
}

[[noreturn]] void give_up(const char* what) {
  perror(what);
  abort();
}

Secret fixed_secret() {
  UniqueId id{};
  for (size_t i = 0; i < sizeof(id.secret); ++i) id.secret[i] = static_cast<uint8_t>(i + 1);
  return Secret(id);
}

// A listening socket without a network: cheaper, and of the same kind for those who poll it.
class Meeting {
 public:
  Meeting() : listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    address_.sun_family = AF_UNIX;
    snprintf(address_.sun_path + 1, sizeof(address_.sun_path) - 1, "talaria-fuzz-%d-%llx", getpid(),
             static_cast<unsigned long long>(random_u64()));
    if (bind(listener_.get(), name(), sizeof(address_)) != 0 || listen(listener_.get(), 64) != 0) give_up("listen");
  }
  UniqueFd take() { return std::move(listener_); }
  // -1 when nobody listens any more.
  UniqueFd connect_to() const {
    UniqueFd guest(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(guest.get(), name(), sizeof(address_)) != 0) guest.reset();
    return guest;
  }

 private:
  const sockaddr* name() const { return reinterpret_cast<const sockaddr*>(&address_); }
  sockaddr_un address_{};
  UniqueFd listener_;
};

void say(const UniqueFd& socket, std::span<const uint8_t> input) {
  if (!input.empty()) (void)!send(socket.get(), input.data(), input.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

// One stranger after the other; each is gone before the next comes.
void lobby(std::span<const uint8_t> input) {
  static const Meeting* meeting = nullptr;
  static Lobby* lobby = [] {
    auto* fresh = new Meeting;
    meeting = fresh;
    return new Lobby(fresh->take(), fixed_secret());
  }();
  const UniqueFd guest = meeting->connect_to();
  say(guest, input);
  shutdown(guest.get(), SHUT_WR);
  for (const Guest& proven : lobby->wait(0, {})) (void)describe(proven.greeting);
}

// A root that is replaced once its ranks have met.
class RootUnderTest {
 public:
  RootUnderTest() : stop_(eventfd(0, EFD_CLOEXEC)) {
    RootLimits limits;
    limits.grace_usec = limits.linger_usec = 1e12;
    limits.seats = 64;
    thread_ = std::thread([this, limits, listener = std::make_shared<UniqueFd>(meeting_.take())] {
      Root(std::move(*listener), fixed_secret(), limits).run(stop_.get());
    });
  }
  RootUnderTest(const RootUnderTest&) = delete;
  RootUnderTest& operator=(const RootUnderTest&) = delete;
  ~RootUnderTest() {
    eventfd_write(stop_.get(), 1);
    thread_.join();
  }
  bool hears(std::span<const uint8_t> input) const {
    const UniqueFd guest = meeting_.connect_to();
    if (!guest.valid()) return false;
    say(guest, input);
    shutdown(guest.get(), SHUT_WR);
    // Until it is dropped or answered: the root has looked at it then.
    char answer[1024];
    while (recv(guest.get(), answer, sizeof(answer), 0) > 0) {
    }
    return true;
  }

 private:
  Meeting meeting_;
  UniqueFd stop_;
  std::thread thread_;
};

std::unique_ptr<RootUnderTest>& root_under_test() {
  static std::unique_ptr<RootUnderTest> root;
  return root;
}

void root(std::span<const uint8_t> input) {
  auto& root = root_under_test();
  if (root == nullptr) root = std::make_unique<RootUnderTest>();
  if (!root->hears(input)) root = nullptr;
}

std::vector<Bytes> greetings() {
  std::vector<Bytes> seeds;
  for (uint32_t rank = 0; rank < 3; ++rank) seeds.push_back(bytes_of(make_greeting(fixed_secret(), rank, 3)));
  Greeting visitor = make_greeting(fixed_secret(), 4, 8);
  visitor.root = 1;
  visitor.nroots = 4;
  seeds.push_back(bytes_of(visitor));
  return seeds;
}

// The middle one of three ranks, whose neighbours say what they want and leave. The first byte says how many of the
// other bytes the predecessor says; the rest comes from the successor.
void ring(std::span<const uint8_t> input) {
  const size_t cut = input.empty() ? 0 : std::min<size_t>(input[0] * 4, input.size() - 1);
  const std::span<const uint8_t> rest = input.empty() ? input : input.subspan(1);
  int before[2], after[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, before) != 0) give_up("socketpair");
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, after) != 0) give_up("socketpair");
  const UniqueFd predecessor(before[1]), successor(after[1]);
  say(predecessor, rest.first(cut));
  say(successor, rest.subspan(cut));
  shutdown(predecessor.get(), SHUT_WR);
  shutdown(successor.get(), SHUT_WR);
  Ring ring({UniqueFd(before[0]), UniqueFd(after[0])}, 1, 3, kNever);
  if (input.size() % 2 == 0) ring.listen();
  std::byte all[24] = {};
  (void)ring.all_gather(all).ok();
  (void)ring.fault();
  for (uint32_t rank = 0; rank < 3; ++rank) (void)ring.departure_of(rank);
  ring.say_goodbye(Departure::kLeft);
}

std::vector<Bytes> ring_talk() {
  std::vector<Bytes> seeds;
  for (const auto kind : {RingHeader::Kind::kData, RingHeader::Kind::kNotice}) {
    for (uint32_t steps = 1; steps <= 2; ++steps) {
      Bytes talk{static_cast<uint8_t>(steps * (sizeof(RingHeader) + 8) / 4)};
      for (uint32_t step = 0; step < steps; ++step) {
        const RingHeader header{kind, Departure::kDied, 0, step, 0, 8};
        for (const uint8_t byte : bytes_of(header)) talk.push_back(byte);
        talk.insert(talk.end(), 8, 7);
      }
      seeds.push_back(talk);
      talk[0] = 0;  // the successor says it
      seeds.push_back(talk);
    }
  }
  return seeds;
}

// A stream of frames, in portions whose size the first byte gives.
void frames(std::span<const uint8_t> input) {
  alignas(64) std::array<std::byte, 4096> mailbox{};
  Arrivals arrivals(mailbox);
  FrameReader reader(mailbox, arrivals);
  const size_t portion = input.empty() ? 1 : size_t{input[0]} + 1;
  std::span<const uint8_t> rest = input.empty() ? input : input.subspan(1);
  while (!rest.empty()) {
    size_t stored = 0;
    for (const iovec& room : reader.room()) {
      const size_t bytes = std::min({room.iov_len, rest.size(), portion - stored});
      if (bytes != 0) memcpy(room.iov_base, rest.data(), bytes);
      stored += bytes;
      rest = rest.subspan(bytes);
    }
    if (stored == 0) __builtin_trap();
    if (reader.take(stored) != nullptr) return;
  }
}

std::vector<Bytes> streams() {
  std::vector<Bytes> seeds;
  for (const uint8_t portion : {7, 255}) {
    Bytes stream{portion};
    for (uint64_t order = 0; order < 3; ++order) {
      FrameHeader header;
      header.bytes = 100;
      header.order = order;
      header.payload = 64 * order;
      header.word = order == 1 ? FrameHeader::kNoWord : 2048 + 8 * order;
      header.value = order + 1;
      for (const uint8_t byte : bytes_of(header)) stream.push_back(byte);
      stream.insert(stream.end(), header.bytes, 5);
    }
    seeds.push_back(stream);
  }
  return seeds;
}

const FuzzTarget kTargets[] = {
    {"frames", frames, streams, 20},
    {"lobby", lobby, greetings, 10},
    {"root", root, greetings, 10},
    {"ring", ring, ring_talk, 20},
};

}  // namespace

std::span<const FuzzTarget> socket_targets() { return kTargets; }

void end_socket_targets() { root_under_test() = nullptr; }

}  // namespace talaria::test
