// Frames: how Puts travel in a stream of bytes, and how a receiver reads them without a copy of large payloads.
//
// A frame is a header and its payload. The frames of a pair may use several streams; `order` numbers them as the sender
// listed them, and words are raised in that order (Arrivals). A large Put is cut into frames, of which only the last
// has a word. Nothing here knows about sockets. Input is not trusted: a header that could harm is a flaw, told by a
// text.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>

namespace talaria {

struct FrameHeader {
  static constexpr uint32_t kMagic = 0x466c6154;
  static constexpr uint64_t kNoWord = ~0ull;
  uint32_t magic = kMagic;
  uint32_t bytes = 0;  // of the payload, which follows
  uint64_t order = 0;
  uint64_t payload = 0;  // offset in the receiver's mailbox
  uint64_t word = kNoWord;
  uint64_t value = 0;
};
static_assert(sizeof(FrameHeader) == 40);

// What makes the header unacceptable to the owner of a mailbox of that size; null if nothing.
const char* flaw_of(const FrameHeader& header, uint64_t mailbox_bytes);

// Raises the words of the frames from one peer, in their order, whichever streams they came by. Thread-safe: each
// stream may have its own thread.
class Arrivals {
 public:
  explicit Arrivals(std::span<std::byte> mailbox) : mailbox_(mailbox) {}
  // The payload of this frame is in its place. A text if the frame cannot be one of its sender's.
  const char* arrived(const FrameHeader& frame);

 private:
  static constexpr uint64_t kWindow = 1u << 20;  // a sane sender is never that far ahead
  struct Flag {
    uint64_t word, value;
  };
  void raise(const Flag& flag);

  const std::span<std::byte> mailbox_;
  std::mutex mutex_;
  uint64_t next_ = 0;
  std::map<uint64_t, Flag> early_;  // frames that overtook others
};

// Takes one stream apart. Give it bytes by storing them in room() and calling take().
class FrameReader {
 public:
  FrameReader(std::span<std::byte> mailbox, Arrivals& arrivals) : mailbox_(mailbox), arrivals_(arrivals) {}
  FrameReader(const FrameReader&) = delete;
  FrameReader& operator=(const FrameReader&) = delete;

  // Where the next bytes belong: the rest of a payload, in place (may be empty), then a small buffer.
  std::array<iovec, 2> room();
  // `bytes` have been stored in room(), from its beginning. A text if they are not what a sane sender writes; the
  // reader is of no use after that.
  const char* take(size_t bytes);
  // Is the stream inside a frame?
  bool mid_frame() const { return left_ > 0 || buffered_ > 0; }

 private:
  const char* parse();

  const std::span<std::byte> mailbox_;
  Arrivals& arrivals_;
  FrameHeader header_{};        // of the frame whose payload is on its way
  uint64_t left_ = 0;           // bytes of it that are missing
  size_t buffered_ = 0;
  std::array<std::byte, 4096> buffer_;  // headers and small payloads
};

}  // namespace talaria
