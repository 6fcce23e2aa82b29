// Memory of the check mode: user buffers, FIFOs, flag words, and the store buffers between ranks.
//
// A remote store is issued into its lane's store buffer and reaches memory later, in any order, with two exceptions: a
// release is delivered after all stores its stream issued before, and stores to one flag word keep their order.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "sim/clock.h"
#include "sim/scenario.h"

namespace talaria::sim {

using Random = std::mt19937_64;
inline uint64_t below(Random& random, uint64_t limit) { return random() % limit; }

struct ByteRange {
  uint64_t begin, end;
  bool overlaps(const ByteRange& other) const { return begin < other.end && other.begin < end; }
};

// The two buffers of one rank for one operation, in one piece of memory with guards between; in place they overlap.
class Arena {
 public:
  void lay_out(const Op& op, uint32_t rank);
  // The user gives the buffers away.
  void open(const Observer& user);
  // The user takes them back: every access must be over and seen. Returns what is wrong, or nothing.
  std::optional<Verdict> close(const Op& op, uint32_t rank, const Observer& user);

  ByteRange input() const { return input_; }
  ByteRange output() const { return output_; }
  // Checks an access; `verdict` tells what is wrong with it.
  std::optional<Verdict> access(const ByteRange& range, const ByteRange& buffer, bool write, const Observer& who);
  std::byte* at(uint64_t offset) { return bytes_.data() + offset; }
  // A remote store on its way.
  void store_pending(const ByteRange& range) { pending_.push_back(range); }
  void store_arrived(const ByteRange& range, const std::byte* data);

 private:
  bool guards_intact() const;

  std::vector<std::byte> bytes_;
  ByteRange input_{}, output_{};
  bool open_ = false;
  AccessLog log_;
  std::vector<ByteRange> pending_;
};

// A flag word: one writer, its values in order.
struct Word {
  uint64_t value = 0;
  VectorClock clock;
};

// 8 bytes of a packet.
struct PacketHalf {
  uint32_t data = 0;
  uint32_t tag = 0;
  uint64_t message = 0;  // which message really wrote it, + 1; 0: none
};

struct Slot {
  std::vector<std::byte> bytes;     // bulk
  std::vector<PacketHalf> halves;   // packet
  uint64_t message = 0;             // the last message issued to this slot, + 1
  uint32_t pending = 0;             // its stores that have not arrived
  VectorClock clock;                // of its producer when it was issued
  ThreadId producer = 0, consumer = 0;
  uint32_t written = 0, read = 0;   // times of the last write and read
};

// FIFO (producer → consumer, lane, fifo) of one channel, with both sides' counters.
struct Fifo {
  Fifo(uint32_t depth, uint64_t slot_bytes, bool packet);
  Slot& slot(uint64_t message) { return slots[message % slots.size()]; }

  bool packet;
  std::vector<Slot> slots;
  Word tail, credit;
  uint64_t sent = 0, acked = 0, sent_at_start = 0;  // producer's
  uint64_t received = 0;                            // consumer's
};

// "You may use my buffer": two halves, each with the tag of the use. Beside it the scalar of PreMulSum, cut likewise.
struct ReadyWord {
  uint64_t tag[2] = {~0ull, ~0ull};
  bool direct = false;
  uint64_t scalar_tag[2] = {~0ull, ~0ull};
  uint32_t scalar[2] = {};
  VectorClock clock;
};

// A store on its way.
struct Store {
  ThreadId thread;
  bool release;
  const void* word;  // flag word written, or null for payload
  uint32_t rank;     // whose memory
  std::function<void()> arrive;
};

// The stores of one lane that have not arrived.
class StoreBuffer {
 public:
  void issue(Store store) { stores_.push_back(std::move(store)); }
  bool empty() const { return stores_.empty(); }
  size_t size() const { return stores_.size(); }
  // Delivers one store that may arrive now, a flag rather than payload if `flags_first`; returns the rank whose memory
  // changed.
  uint32_t deliver_one(bool flags_first, Random& random);
  void drop() { stores_.clear(); }

 private:
  bool may_arrive(size_t index) const;
  std::vector<Store> stores_;
};

// Splits [0, length) at random into at most `parts` ranges whose borders are multiples of `unit`.
std::vector<ByteRange> split_at_random(uint64_t length, uint64_t unit, uint32_t parts, Random& random);

}  // namespace talaria::sim
