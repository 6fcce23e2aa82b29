#include "transport/tcp_wire.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace talaria {
namespace {

bool try_again(int error) { return error == EAGAIN || error == EINTR; }

size_t bytes_of(const Frame& frame) { return sizeof(FrameHeader) + frame.header.bytes; }

}  // namespace

TcpWire::TcpWire(UniqueFd socket, std::span<std::byte> mailbox, Arrivals& arrivals)
    : socket_(std::move(socket)), reader_(mailbox, arrivals) {}

void TcpWire::queue(const Frame& frame) {
  unsent_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  queued_.push_back(frame);
}

bool TcpWire::drive() {
  const bool sent = push();
  return pull() || sent;
}

bool TcpWire::push() {
  if (flushed()) return false;
  if (first_ == sending_.size()) {
    sending_.clear();
    first_ = 0;
    const std::lock_guard lock(mutex_);
    std::swap(sending_, queued_);
  }
  if (deaf_ || ended()) {
    drop_unsent();
    return true;
  }
  ssize_t sent = send_some();
  if (sent < 0) {
    if (try_again(errno)) return false;
    deaf_ = true;  // pull() finds out how it ended, after what the peer had written before
    drop_unsent();
    return true;
  }
  const size_t before = first_;
  sent_of_first_ += static_cast<size_t>(sent);
  while (first_ < sending_.size() && sent_of_first_ >= bytes_of(sending_[first_])) {
    sent_of_first_ -= bytes_of(sending_[first_++]);
  }
  unsent_.fetch_sub(first_ - before, std::memory_order_release);
  return sent > 0;
}

// All frames at hand in one call: small ones share a segment.
ssize_t TcpWire::send_some() {
  constexpr size_t kParts = 64;
  std::array<iovec, kParts> parts;
  size_t count = 0, skip = sent_of_first_;
  for (size_t i = first_; i < sending_.size() && count + 2 <= kParts; ++i) {
    Frame& frame = sending_[i];
    const size_t of_header = std::min(skip, sizeof(FrameHeader));
    const size_t of_payload = skip - of_header;
    if (of_header < sizeof(FrameHeader)) {
      parts[count++] = {reinterpret_cast<std::byte*>(&frame.header) + of_header, sizeof(FrameHeader) - of_header};
    }
    if (of_payload < frame.header.bytes) {
      parts[count++] = {const_cast<std::byte*>(frame.payload) + of_payload, frame.header.bytes - of_payload};
    }
    skip = 0;
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  return sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void TcpWire::drop_unsent() {
  unsent_.fetch_sub(sending_.size() - first_, std::memory_order_release);
  first_ = sending_.size();
  sent_of_first_ = 0;
}

bool TcpWire::pull() {
  constexpr int kBurst = 8;  // the other wires want their turn
  bool moved = false;
  for (int i = 0; i < kBurst && !ended(); ++i) {
    std::array<iovec, 2> room = reader_.room();
    msghdr message{};
    message.msg_iov = room.data();
    message.msg_iovlen = room.size();
    const ssize_t got = recvmsg(socket_.get(), &message, MSG_DONTWAIT);
    if (got < 0 && try_again(errno)) return moved;
    moved = true;
    if (got <= 0) {
      end(got < 0 ? errno : 0, nullptr);
    } else if (const char* flaw = reader_.take(static_cast<size_t>(got)); flaw != nullptr) {
      end(EPROTO, flaw);
    } else if (static_cast<size_t>(got) < room[0].iov_len + room[1].iov_len) {
      return true;  // there is no more just now
    }
  }
  return moved;
}

void TcpWire::end(int error, const char* flaw) {
  error_ = error;
  flaw_ = flaw;
  ended_.store(true, std::memory_order_release);
}

std::string TcpWire::reason() const {
  if (flaw_ != nullptr) return flaw_;
  return error_ == 0 ? "the connection was closed" : std::string("the connection broke: ") + strerror(error_);
}

}  // namespace talaria
