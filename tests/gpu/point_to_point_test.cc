// Send and Recv: pairs, rings, exchanges with everybody, several transfers between one pair.
#include <gtest/gtest.h>

#include "gpu/elements.h"
#include "gpu/world.h"

namespace talaria::gpu_test {
namespace {

// Byte `index` of transfer number `which` from `source` to `target`.
std::vector<std::byte> message(uint32_t source, uint32_t target, uint32_t which, size_t bytes) {
  return input_block(run_seed() + (source * 64 + target) * 64 + which, source, 0, bytes, DataType::kUint8);
}

void expect_bytes(const Rank& rank, size_t offset, const std::vector<std::byte>& wanted, const char* what) {
  std::vector<std::byte> got(wanted.size());
  rank.receive->read(offset, got, rank.stream->get());
  if (!rank.finish()) return;
  EXPECT_EQ(first_difference(got.data(), wanted.data(), wanted.size()), "")
      << what << ", rank " << rank.rank << " of " << rank.nranks << ", seed " << run_seed();
}

class PointToPoint : public NeedsGpu<testing::TestWithParam<uint32_t>> {
 protected:
  // `body(rank)` on all ranks; a failure ends the world, so that no later test meets its remains.
  void run(size_t bytes_per_rank, const std::function<void(Rank&)>& body) {
    World* world = World::shared(GetParam());
    ASSERT_NE(world, nullptr);
    world->reserve(bytes_per_rank);
    world->run(body);
    if (HasFailure()) world->break_up();
  }
};

constexpr size_t kSizes[] = {1, 3, 1000, 65536, (1 << 20) - 1, (1 << 20) + 1, 8 << 20};

TEST_P(PointToPoint, RingPassesToTheNextRank) {
  run(8 << 20, [](Rank& rank) {
    const uint32_t next = (rank.rank + 1) % rank.nranks;
    const uint32_t before = (rank.rank + rank.nranks - 1) % rank.nranks;
    for (const size_t bytes : kSizes) {
      const auto mine = message(rank.rank, next, 0, bytes);
      rank.send->write(0, mine, rank.stream->get());
      rank.receive->fill(bytes, 0xcd, rank.stream->get());
      if (!rank.finish()) return;
      ncclGroupStart();
      succeeded(ncclSend(rank.send->data(), bytes, ncclUint8, static_cast<int>(next), rank.comm, rank.stream->get()),
                "ncclSend");
      succeeded(ncclRecv(rank.receive->data(), bytes, ncclUint8, static_cast<int>(before), rank.comm,
                         rank.stream->get()),
                "ncclRecv");
      succeeded(ncclGroupEnd(), "ncclGroupEnd");
      expect_bytes(rank, 0, message(before, rank.rank, 0, bytes), "ring");
      if (testing::Test::HasFailure()) return;
    }
  });
}

// Sends and receives outside groups: rank 0 only sends, the last rank only receives.
TEST_P(PointToPoint, ChainWithoutGroups) {
  run(8 << 20, [](Rank& rank) {
    for (const size_t bytes : kSizes) {
      if (rank.rank > 0) {
        succeeded(ncclRecv(rank.receive->data(), bytes, ncclUint8, static_cast<int>(rank.rank) - 1, rank.comm,
                           rank.stream->get()),
                  "ncclRecv");
        expect_bytes(rank, 0, message(0, 0, 1, bytes), "chain");
      }
      const auto data = message(0, 0, 1, bytes);
      rank.send->write(0, data, rank.stream->get());
      if (rank.rank + 1 < rank.nranks) {
        succeeded(ncclSend(rank.send->data(), bytes, ncclUint8, static_cast<int>(rank.rank) + 1, rank.comm,
                           rank.stream->get()),
                  "ncclSend");
      }
      if (!rank.finish() || testing::Test::HasFailure()) return;
    }
  });
}

// Every rank sends to every rank, itself included: with 8 ranks more works than a launch carries in its parameters.
// Replayed in a graph, sizes differ per pair.
TEST_P(PointToPoint, EverybodyExchangesWithEverybody) {
  constexpr size_t kRoom = 40000;
  run(kRoom * 8, [](Rank& rank) {
    const auto bytes_between = [](uint32_t a, uint32_t b) { return size_t{1} + (a * 8 + b) * 611; };
    std::vector<std::vector<std::byte>> out;
    for (uint32_t r = 0; r < rank.nranks; ++r) {
      out.push_back(message(rank.rank, r, 2, bytes_between(rank.rank, r)));
      rank.send->write(r * kRoom, out.back(), rank.stream->get());
    }
    if (!rank.finish()) return;
    const auto exchange = [&] {
      ncclGroupStart();
      for (uint32_t r = 0; r < rank.nranks; ++r) {
        const int peer = static_cast<int>(r);
        succeeded(ncclRecv(rank.receive->data() + r * kRoom, bytes_between(r, rank.rank), ncclUint8, peer, rank.comm,
                           rank.stream->get()),
                  "ncclRecv");
        succeeded(ncclSend(rank.send->data() + r * kRoom, bytes_between(rank.rank, r), ncclUint8, peer, rank.comm,
                           rank.stream->get()),
                  "ncclSend");
      }
      succeeded(ncclGroupEnd(), "ncclGroupEnd");
    };
    const Graph graph = Graph::capture(rank.stream->get(), exchange);
    for (int round = 0; round < 6; ++round) {
      rank.receive->fill(kRoom * rank.nranks, 0xcd, rank.stream->get());
      if (round % 2 == 0) exchange();
      else graph.launch(rank.stream->get());
      for (uint32_t r = 0; r < rank.nranks; ++r) {
        expect_bytes(rank, r * kRoom, message(r, rank.rank, 2, bytes_between(r, rank.rank)), "exchange");
        if (testing::Test::HasFailure()) return;
      }
    }
  });
}

TEST_P(PointToPoint, TransfersOfOnePairArriveInOrder) {
  static constexpr size_t kBytes[] = {5, 70000, 1, 300000};
  run(1 << 20, [](Rank& rank) {
    const uint32_t partner = rank.rank ^ 1u;
    std::vector<std::vector<std::byte>> out;
    ncclGroupStart();
    size_t offset = 0;
    for (uint32_t i = 0; i < std::size(kBytes); ++i) {
      out.push_back(message(rank.rank, partner, 3 + i, kBytes[i]));
      rank.send->write(offset, out.back(), rank.stream->get());
      succeeded(ncclSend(rank.send->data() + offset, kBytes[i], ncclUint8, static_cast<int>(partner), rank.comm,
                         rank.stream->get()),
                "ncclSend");
      succeeded(ncclRecv(rank.receive->data() + offset, kBytes[i], ncclUint8, static_cast<int>(partner), rank.comm,
                         rank.stream->get()),
                "ncclRecv");
      offset += kBytes[i];
    }
    succeeded(ncclGroupEnd(), "ncclGroupEnd");
    offset = 0;
    for (uint32_t i = 0; i < std::size(kBytes); ++i) {
      expect_bytes(rank, offset, message(partner, rank.rank, 3 + i, kBytes[i]), "pair");
      offset += kBytes[i];
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Gpu, PointToPoint, testing::Values(2u, 4u, 8u), testing::PrintToStringParamName());

}  // namespace
}  // namespace talaria::gpu_test
