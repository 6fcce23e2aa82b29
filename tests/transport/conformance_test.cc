// What every transport must do, as an executor uses it: one suite, run over each of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "base/os.h"
#include "pair.h"
#include "transport/peer.h"

namespace talaria {
namespace {

using test::End;
using test::Ends;

constexpr uint32_t kBulk = 1, kPoint = 2;
constexpr double kPatienceUsec = 60e6;  // far beyond what anything here needs: a hang is an error, not a timeout

MailboxLayout layout_of(uint32_t depth, uint32_t slot_bytes) {
  return make_mailbox_layout(2, {{0, depth, 0}, {1, depth, slot_bytes}, {1, depth, slot_bytes}});
}

// The payload of message q of a FIFO: different in every message and place.
void fill(std::byte* to, uint64_t bytes, uint64_t seed, uint64_t q) {
  for (uint64_t i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>((seed + q * 131 + i * 7 + (i >> 8)) & 0xff);
}
bool matches(const std::byte* at, uint64_t bytes, uint64_t seed, uint64_t q) {
  std::vector<std::byte> expected(bytes);
  fill(expected.data(), bytes, seed, q);
  return std::equal(expected.begin(), expected.end(), at);
}

struct Fifo {
  uint32_t channel, index;
  std::vector<uint64_t> sizes;  // of the messages
  bool credits;                 // one per message, else none: there are no more than slots
};

// One rank of a pair: sends its FIFOs and receives the other's, all at once, without ever blocking.
class Player {
 public:
  Player(End& end, const MailboxLayout& layout, uint32_t rank, uint64_t seed)
      : end_(end), layout_(layout), rank_(rank), peer_(1 - rank), seed_(seed) {}
  void sends(const Fifo& fifo) { outgoing_.push_back({fifo, 0}); }
  void receives(const Fifo& fifo) { incoming_.push_back({fifo, 0}); }

  // "" or what went wrong.
  std::string play() {
    const double until = now_usec() + kPatienceUsec;
    while (!done()) {
      bool moved = false;
      for (Progress& progress : outgoing_) moved |= send_next(progress);
      for (Progress& progress : incoming_) moved |= receive_next(progress);
      end_.drive();
      if (!error_.empty()) return error_;
      if (now_usec() > until) return "it hangs";
      if (!moved) std::this_thread::yield();
    }
    return "";
  }

 private:
  struct Progress {
    Fifo fifo;
    uint64_t done;
    bool complete() const { return done == fifo.sizes.size(); }
  };
  static bool complete(const std::vector<Progress>& all) {
    return std::ranges::all_of(all, [](const Progress& progress) { return progress.complete(); });
  }
  bool done() { return complete(outgoing_) && complete(incoming_) && end_.flushed(); }

  bool send_next(Progress& progress) {
    const Fifo& fifo = progress.fifo;
    if (progress.complete()) return false;
    const uint64_t q = progress.done;
    const uint64_t credit = end_.load(layout_.credit_offset(fifo.channel, peer_, 0, fifo.index));
    if (credit > q) error_ = "a credit came for a message that was not sent";
    if (q - credit >= layout_.channels[fifo.channel].depth) return false;
    const uint64_t slot = layout_.slot_offset(fifo.channel, rank_, 0, fifo.index, q);
    fill(end_.place(slot), fifo.sizes[q], seed_ + rank_, q);
    end_.put({slot, fifo.sizes[q], layout_.tail_offset(fifo.channel, rank_, 0, fifo.index), q + 1});
    ++progress.done;
    return true;
  }

  bool receive_next(Progress& progress) {
    const Fifo& fifo = progress.fifo;
    const uint64_t tail = end_.load(layout_.tail_offset(fifo.channel, peer_, 0, fifo.index));
    if (tail > fifo.sizes.size()) error_ = "more messages came than were sent";
    if (progress.complete() || tail <= progress.done) return false;
    const uint64_t q = progress.done++;
    const std::byte* slot = end_.mailbox() + layout_.slot_offset(fifo.channel, peer_, 0, fifo.index, q);
    if (!matches(slot, fifo.sizes[q], seed_ + peer_, q)) {
      error_ = "message " + std::to_string(q) + " of " + std::to_string(fifo.sizes[q]) + " bytes is wrong";
    }
    if (fifo.credits) end_.put({0, 0, layout_.credit_offset(fifo.channel, rank_, 0, fifo.index), q + 1});
    return true;
  }

  End& end_;
  const MailboxLayout& layout_;
  const uint32_t rank_, peer_;
  const uint64_t seed_;
  std::vector<Progress> outgoing_, incoming_;
  std::string error_;
};

class Transport : public testing::TestWithParam<test::TransportCase> {
 protected:
  // Both ranks send `fifos` to each other.
  void exchange(const MailboxLayout& layout, const std::vector<Fifo>& fifos, uint64_t seed) {
    const Ends ends = GetParam().connect(layout.bytes);
    std::string errors[2];
    const auto play = [&](uint32_t rank) {
      Player player(rank == 0 ? *ends.first : *ends.second, layout, rank, seed);
      for (const Fifo& fifo : fifos) {
        player.sends(fifo);
        player.receives(fifo);
      }
      errors[rank] = player.play();
    };
    std::thread other(play, 1);
    play(0);
    other.join();
    EXPECT_EQ(errors[0], "") << "seed " << seed;
    EXPECT_EQ(errors[1], "") << "seed " << seed;
  }
};

TEST_P(Transport, MessagesArriveWholeAndInOrder) {
  exchange(layout_of(4, 4096), {{kBulk, 0, {8, 4096, 1, 100}, false}}, 1);
}

TEST_P(Transport, SlotsWrapAsCreditsReturn) {
  exchange(layout_of(2, 512), {{kBulk, 0, std::vector<uint64_t>(3000, 512), true}}, 2);
}

TEST_P(Transport, EmptyMessagesCount) {
  exchange(layout_of(4, 512), {{kBulk, 0, std::vector<uint64_t>(500, 0), true}}, 3);
}

TEST_P(Transport, LargeMessagesArriveWhole) {
  const uint64_t large = 8u << 20;
  exchange(layout_of(2, large), {{kBulk, 0, {large, large - 1, 1, large, 65537, large}, true}}, 4);
}

TEST_P(Transport, FifosDoNotWaitForEachOther) {
  // FIFO 1 of the bulk channel fills its slots and stays so; the others go on.
  exchange(layout_of(4, 2048),
           {{kBulk, 1, {2048, 2048, 2048, 2048}, false},
            {kBulk, 0, std::vector<uint64_t>(800, 64), true},
            {kPoint, 0, std::vector<uint64_t>(800, 2048), true}},
           5);
}

TEST_P(Transport, RandomSizesOnAllFifos) {
  const uint64_t seed = random_u64();
  std::mt19937_64 random(seed);
  const uint32_t slot = 96u << 10;
  std::vector<Fifo> fifos;
  for (const uint32_t channel : {kBulk, kPoint}) {
    for (uint32_t index = 0; index < kFifosPerPair; ++index) {
      std::vector<uint64_t> sizes(300);
      for (uint64_t& size : sizes) size = random() % 4 == 0 ? random() % (slot + 1) : random() % 2000;
      fifos.push_back({channel, index, sizes, true});
    }
  }
  exchange(layout_of(4, slot), fifos, seed);
}

TEST_P(Transport, WhatWasSentArrivesThoughTheSenderHasGone) {
  const uint64_t large = 3u << 20;
  const MailboxLayout layout = layout_of(4, large);
  Ends ends = GetParam().connect(layout.bytes);
  // The receiver answers all the time, also when nobody is left to hear it; and it is slow to read.
  std::thread sender([&] {
    Player player(*ends.first, layout, 0, 7);
    player.sends({kBulk, 0, {large, large, 5, large}, false});
    EXPECT_EQ(player.play(), "");
    ends.first.reset();
  });
  End& receiver = *ends.second;
  Player player(receiver, layout, 1, 7);
  player.receives({kBulk, 0, {large, large, 5, large}, true});
  EXPECT_EQ(player.play(), "");
  sender.join();
}

// Memory does not tell.
class Connection : public testing::TestWithParam<test::TransportCase> {};

TEST_P(Connection, TheEndOfThePeerIsSeen) {
  Ends ends = GetParam().connect(layout_of(4, 512).bytes);
  EXPECT_FALSE(ends.second->ended());
  ends.first.reset();
  const double until = now_usec() + kPatienceUsec;
  while (!ends.second->ended() && now_usec() < until) ends.second->drive();
  EXPECT_TRUE(ends.second->ended());
  // And whatever is put now goes nowhere, but does not hold up anybody.
  for (uint64_t i = 0; i < 100; ++i) ends.second->put({0, 0, 64, i});
  while (!ends.second->flushed() && now_usec() < until) ends.second->drive();
  EXPECT_TRUE(ends.second->flushed());
}

INSTANTIATE_TEST_SUITE_P(All, Transport,
                         testing::Values(test::process_memory(), test::shared_memory(), test::tcp(1, 0),
                                         test::tcp(3, 0), test::tcp(2, 2)),
                         [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(All, Connection, testing::Values(test::tcp(1, 0), test::tcp(3, 0), test::tcp(2, 2)),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace talaria
