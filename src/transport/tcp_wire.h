// TcpWire: one connected socket between two ranks, as a queue of frames in and a FrameReader out.
//
// Payloads go from the mirror's slot into the socket, and from the socket into the mailbox's slot: no copy is added.
// One thread queues and one thread drives; they may be different ones. A wire never blocks. When it has ended (the peer
// closed it, or it broke) what is queued is dropped, because nobody is left to read it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/unique.h"
#include "transport/frame.h"

namespace talaria {

struct Frame {
  FrameHeader header;
  const std::byte* payload;
};

class TcpWire {
 public:
  // `socket` is connected and non-blocking. Mailbox and arrivals outlive the wire.
  TcpWire(UniqueFd socket, std::span<std::byte> mailbox, Arrivals& arrivals);
  TcpWire(const TcpWire&) = delete;
  TcpWire& operator=(const TcpWire&) = delete;

  void queue(const Frame& frame);
  // Has the system taken every queued byte (or the wire ended)?
  bool flushed() const { return unsent_.load(std::memory_order_acquire) == 0; }
  // Sends what the socket takes, receives what it has. True if anything moved.
  bool drive();
  bool push();
  bool pull();
  // Nothing more will come.
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  // Did it end because of what the peer sent?
  bool flawed() const { return ended() && flaw_ != nullptr; }
  // Why, once ended: "the connection was closed".
  std::string reason() const;
  int descriptor() const { return socket_.get(); }
  // Gives the socket away, for a graceful end.
  UniqueFd release() { return std::move(socket_); }

 private:
  ssize_t send_some();
  void drop_unsent();
  void end(int error, const char* flaw);

  UniqueFd socket_;
  FrameReader reader_;
  std::mutex mutex_;            // guards queued_
  std::vector<Frame> queued_;
  std::vector<Frame> sending_;  // the driver's
  size_t first_ = 0;            // of sending_, not wholly sent
  size_t sent_of_first_ = 0;    // bytes
  bool deaf_ = false;           // the peer no longer reads; it may have written before
  std::atomic<size_t> unsent_{0};  // frames
  std::atomic<bool> ended_{false};
  int error_ = 0;               // written before ended_
  const char* flaw_ = nullptr;
};

}  // namespace talaria
