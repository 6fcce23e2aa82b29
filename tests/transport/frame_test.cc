// Frames in a stream of bytes, cut anywhere; and what a stranger to the protocol may send.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/os.h"
#include "transport/frame.h"

namespace talaria {
namespace {

using Bytes = std::vector<std::byte>;

constexpr uint64_t kMailbox = 64u << 10;
constexpr uint64_t kWord = kMailbox - 64;

void append(Bytes& stream, const FrameHeader& header, std::byte content) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&header);
  stream.insert(stream.end(), bytes, bytes + sizeof(header));
  stream.insert(stream.end(), header.bytes, content);
}

FrameHeader frame(uint64_t order, uint64_t payload, uint32_t bytes, uint64_t value) {
  FrameHeader header;
  header.bytes = bytes;
  header.order = order;
  header.payload = payload;
  header.word = kWord;
  header.value = value;
  return header;
}

// A mailbox whose owner reads streams of bytes.
struct Receiver {
  alignas(64) Bytes mailbox = Bytes(kMailbox);
  Arrivals arrivals{mailbox};
  FrameReader reader{mailbox, arrivals};

  // At most `piece` bytes at a time.
  const char* feed(const Bytes& stream, size_t piece) {
    for (size_t at = 0; at < stream.size();) {
      size_t given = 0;
      for (const iovec& part : reader.room()) {
        const size_t bytes = std::min({part.iov_len, piece - given, stream.size() - at - given});
        if (bytes > 0) std::memcpy(part.iov_base, stream.data() + at + given, bytes);
        given += bytes;
      }
      if (const char* flaw = reader.take(given)) return flaw;
      at += given;
    }
    return nullptr;
  }
  uint64_t word(uint64_t offset) const {
    uint64_t value = 0;
    std::memcpy(&value, &mailbox[offset], sizeof(value));
    return value;
  }
  bool holds(uint64_t at, uint64_t bytes, std::byte content) const {
    return std::all_of(&mailbox[at], &mailbox[at + bytes], [&](std::byte byte) { return byte == content; });
  }
};

TEST(Frames, ArriveWhereverTheStreamIsCut) {
  Bytes stream;
  append(stream, frame(0, 0, 10000, 1), std::byte{1});
  append(stream, frame(1, 0, 0, 2), std::byte{});
  append(stream, frame(2, 20000, 3, 3), std::byte{3});
  append(stream, frame(3, 30000, 9000, 4), std::byte{4});
  for (const size_t piece : {1ul, 2ul, 39ul, 40ul, 41ul, 4095ul, 4096ul, 4097ul, 50000ul}) {
    Receiver receiver;
    EXPECT_EQ(receiver.feed(stream, piece), nullptr);
    EXPECT_EQ(receiver.word(kWord), 4u) << piece;
    EXPECT_TRUE(receiver.holds(0, 10000, std::byte{1}) && receiver.holds(20000, 3, std::byte{3}) &&
                receiver.holds(30000, 9000, std::byte{4}) && receiver.holds(10000, 10000, std::byte{0}))
        << piece;
    EXPECT_FALSE(receiver.reader.mid_frame());
  }
}

TEST(Frames, WordsRiseInTheOrderOfTheSender) {
  Receiver receiver;
  Bytes late, early;
  append(early, frame(1, 100, 8, 2), std::byte{2});
  append(late, frame(0, 0, 8, 1), std::byte{1});
  EXPECT_EQ(receiver.feed(early, 4096), nullptr);
  EXPECT_EQ(receiver.word(kWord), 0u);
  EXPECT_EQ(receiver.feed(late, 4096), nullptr);
  EXPECT_EQ(receiver.word(kWord), 2u);
}

TEST(Frames, AHeaderThatCouldHarmIsRefused) {
  const struct {
    const char* what;
    FrameHeader header;
  } cases[] = {
      {"magic", [] { FrameHeader h = frame(0, 0, 8, 1); h.magic ^= 1; return h; }()},
      {"payload beyond the end", frame(0, kMailbox - 4, 8, 1)},
      {"payload that wraps", frame(0, ~0ull - 3, 8, 1)},
      {"far payload", frame(0, 1ull << 40, 0, 1)},
      {"word beyond the end", [] { FrameHeader h = frame(0, 0, 8, 1); h.word = kMailbox; return h; }()},
      {"half a word", [] { FrameHeader h = frame(0, 0, 8, 1); h.word = kMailbox - 4; return h; }()},
      {"unaligned word", [] { FrameHeader h = frame(0, 0, 8, 1); h.word = 12; return h; }()},
      {"order of another age", frame(1ull << 40, 0, 8, 1)},
  };
  for (const auto& one : cases) {
    Receiver receiver;
    Bytes stream;
    append(stream, one.header, std::byte{7});
    EXPECT_NE(receiver.feed(stream, 4096), nullptr) << one.what;
    EXPECT_EQ(receiver.word(kWord), 0u) << one.what;
  }
}

TEST(Frames, AFrameThatComesTwiceIsRefused) {
  Receiver receiver;
  Bytes stream;
  append(stream, frame(5, 0, 0, 1), std::byte{});
  append(stream, frame(5, 0, 0, 1), std::byte{});
  EXPECT_NE(receiver.feed(stream, 4096), nullptr);
}

TEST(Frames, RandomBytesDoNoHarm) {
  const uint64_t seed = random_u64();
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 2000; ++trial) {
    Receiver receiver;
    Bytes stream;
    for (uint64_t i = 0, frames = 1 + random() % 5; i < frames; ++i) {
      append(stream, frame(i, random() % kMailbox, static_cast<uint32_t>(random() % 6000), i), std::byte{9});
    }
    for (uint64_t i = 0, flips = random() % 4; i < flips; ++i) {
      stream[random() % stream.size()] ^= static_cast<std::byte>(1u << random() % 8);
    }
    (void)receiver.feed(stream, 1 + random() % 5000);  // the sanitizers judge
  }
  SUCCEED() << "seed " << seed;
}

}  // namespace
}  // namespace talaria
