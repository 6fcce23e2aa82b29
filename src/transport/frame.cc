#include "transport/frame.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace talaria {

const char* flaw_of(const FrameHeader& header, uint64_t mailbox_bytes) {
  if (header.magic != FrameHeader::kMagic) return "it sent something else than a frame";
  if (header.payload > mailbox_bytes || header.bytes > mailbox_bytes - header.payload) {
    return "it sent a frame whose payload lies outside of the mailbox";
  }
  if (header.word == FrameHeader::kNoWord) return nullptr;
  if (header.word % sizeof(uint64_t) != 0 || header.word > mailbox_bytes - sizeof(uint64_t)) {
    return "it sent a frame whose word lies outside of the mailbox";
  }
  return nullptr;
}

const char* Arrivals::arrived(const FrameHeader& frame) {
  const std::lock_guard lock(mutex_);
  if (frame.order - next_ >= kWindow) return "it sent a frame out of order";
  if (frame.order != next_) {
    return early_.emplace(frame.order, Flag{frame.word, frame.value}).second ? nullptr : "it sent a frame twice";
  }
  raise({frame.word, frame.value});
  ++next_;
  while (!early_.empty() && early_.begin()->first == next_) {
    raise(early_.begin()->second);
    early_.erase(early_.begin());
    ++next_;
  }
  return nullptr;
}

void Arrivals::raise(const Flag& flag) {
  if (flag.word == FrameHeader::kNoWord) return;
  // Does for the peer what its executor would do itself if the mailbox were mapped there: pairs with the same loads.
  std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(mailbox_.data() + flag.word))
      .store(flag.value, std::memory_order_release);
}

std::array<iovec, 2> FrameReader::room() {
  std::byte* rest = mailbox_.data() + header_.payload + (header_.bytes - left_);
  return {iovec{rest, left_}, iovec{buffer_.data() + buffered_, buffer_.size() - buffered_}};
}

const char* FrameReader::take(size_t bytes) {
  const size_t direct = std::min<uint64_t>(bytes, left_);
  left_ -= direct;
  if (direct > 0 && left_ == 0) {
    if (const char* flaw = arrivals_.arrived(header_)) return flaw;
  }
  buffered_ += bytes - direct;
  return left_ == 0 ? parse() : nullptr;
}

// Takes whole headers out of the buffer, with as much of their payloads as is there.
const char* FrameReader::parse() {
  size_t at = 0;
  while (left_ == 0 && buffered_ - at >= sizeof(FrameHeader)) {
    std::memcpy(&header_, buffer_.data() + at, sizeof(header_));
    at += sizeof(header_);
    if (const char* flaw = flaw_of(header_, mailbox_.size())) return flaw;
    const size_t here = std::min<uint64_t>(header_.bytes, buffered_ - at);
    if (here > 0) std::memcpy(mailbox_.data() + header_.payload, buffer_.data() + at, here);
    at += here;
    left_ = header_.bytes - here;
    if (left_ > 0) break;
    if (const char* flaw = arrivals_.arrived(header_)) return flaw;
  }
  buffered_ -= at;
  if (buffered_ > 0) std::memmove(buffer_.data(), buffer_.data() + at, buffered_);
  return nullptr;
}

}  // namespace talaria
