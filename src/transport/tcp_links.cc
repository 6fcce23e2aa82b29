#include "transport/tcp_links.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "service/linger.h"

namespace talaria {
namespace {

// A piece smaller than this costs more than a wire of its own saves.
constexpr uint64_t kSmallestPiece = 16u << 10;

}  // namespace

TcpLinks::TcpLinks(uint32_t nranks, std::span<std::byte> mailbox, uint32_t wires_per_thread)
    : mailbox_(mailbox), wires_per_thread_(std::max(wires_per_thread, 1u)), owner_(getpid()), links_(nranks) {}

TcpLinks::~TcpLinks() {
  jobs_.clear();  // from here on no other thread drives
  if (getpid() != owner_) return;
  for (const auto& link : links_) {
    if (link == nullptr) continue;
    for (const auto& wire : link->wires) linger(wire->release());
  }
}

Result<std::byte*> TcpLinks::add(uint32_t peer, std::vector<UniqueFd> sockets) {
  SharedMemory mirror = TRY(SharedMemory::create_private(mailbox_.size()));
  auto link = std::make_unique<Link>(std::move(mirror), mailbox_);
  for (size_t i = 0; i < sockets.size(); ++i) {
    link->wires.push_back(std::make_unique<TcpWire>(std::move(sockets[i]), mailbox_, link->arrivals));
    const size_t share = i / wires_per_thread_;
    if (share > shares_.size()) shares_.resize(share);
    (share == 0 ? own_wires_ : shares_[share - 1]).push_back(link->wires.back().get());
  }
  links_[peer] = std::move(link);
  return links_[peer]->mirror.data();
}

Status TcpLinks::start() {
  for (uint32_t thread = 0; thread < shares_.size(); ++thread) {
    jobs_.push_back(TRY(HelperThreads::add(thread, [share = shares_[thread]] {
      bool moved = false;
      for (TcpWire* wire : share) moved |= wire->drive();
      return moved;
    })));
  }
  if (own_wires_.size() < 2) return Status();
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return fail(Code::kSystem, "epoll_create1 failed: {}", strerror(errno));
  for (size_t i = 0; i < own_wires_.size(); ++i) {
    epoll_event event{EPOLLIN, {.u64 = i}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, own_wires_[i]->descriptor(), &event) != 0) {
      return fail(Code::kSystem, "epoll_ctl failed: {}", strerror(errno));
    }
  }
  return Status();
}

void TcpLinks::work(bool busy) {
  for (HelperThreads::Job& job : jobs_) job.work(busy);
}

void TcpLinks::put(uint32_t peer, PutList& puts) {
  for (const Put& put : puts) queue(*links_[peer], put);
  puts.clear();
}

void TcpLinks::queue(Link& link, const Put& put) {
  const std::byte* mirror = link.mirror.data();
  const uint64_t wires = link.wires.size();
  uint64_t pieces = std::clamp<uint64_t>(put.bytes / kSmallestPiece, 1, wires);
  for (uint64_t done = 0; pieces > 0; --pieces) {
    // Pieces are whole cache lines, so that no two threads write to the same one at the receiver.
    const uint64_t left = put.bytes - done;
    const uint64_t bytes = pieces == 1 ? left : std::min(left, (left / pieces + 63) / 64 * 64);
    Frame frame{{}, mirror + put.payload + done};
    frame.header.bytes = static_cast<uint32_t>(bytes);
    frame.header.order = link.order++;
    frame.header.payload = put.payload + done;
    if (pieces == 1) {
      frame.header.word = put.word;
      frame.header.value = put.value;
    }
    const bool small = put.bytes < kSmallestPiece;
    link.wires[small ? 0 : link.turn++ % wires]->queue(frame);
    done += bytes;
  }
}

bool TcpLinks::drive() {
  bool moved = false;
  for (TcpWire* wire : own_wires_) moved |= wire->push();
  return pull_ready() || moved;
}

// Asks the system once which of several wires have something, instead of each in turn.
bool TcpLinks::pull_ready() {
  if (!epoll_.valid()) {
    bool moved = false;
    for (TcpWire* wire : own_wires_) moved |= wire->pull();
    return moved;
  }
  std::array<epoll_event, 32> events;
  const int ready = epoll_wait(epoll_.get(), events.data(), events.size(), 0);
  bool moved = false;
  for (int i = 0; i < ready; ++i) {
    TcpWire* wire = own_wires_[events[static_cast<size_t>(i)].data.u64];
    moved |= wire->pull();
    // What has ended stays readable for ever.
    if (wire->ended()) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, wire->descriptor(), nullptr);
  }
  return moved;
}

bool TcpLinks::flushed() const {
  return std::ranges::all_of(links_, [](const auto& link) {
    return link == nullptr || std::ranges::all_of(link->wires, [](const auto& wire) { return wire->flushed(); });
  });
}

bool TcpLinks::ended(uint32_t peer) const {
  if (links_[peer] == nullptr) return true;
  const auto& wires = links_[peer]->wires;
  return std::ranges::all_of(wires, [](const auto& wire) { return wire->ended(); }) ||
         std::ranges::any_of(wires, [](const auto& wire) { return wire->flawed(); });
}

std::string TcpLinks::reason(uint32_t peer) const {
  for (const auto& wire : links_[peer]->wires) {
    if (wire->flawed()) return wire->reason();
  }
  return links_[peer]->wires.front()->reason();
}

}  // namespace talaria
