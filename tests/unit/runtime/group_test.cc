// Groups of operations and transfers on CPU ranks.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "host_ranks.h"

namespace talaria {
namespace {

Collective transfer(Operation operation, int peer, uint64_t count) {
  return Collective{operation, DataType::kInt32, ReduceOp::kSum, peer, count};
}
Collective all_reduce(uint64_t count) {
  return Collective{Operation::kAllReduce, DataType::kInt32, ReduceOp::kSum, 0, count};
}

// Element i of what rank a sends to rank b.
int32_t token(int a, int b, uint64_t i) { return static_cast<int32_t>(a * 1000003 + b * 1009 + static_cast<int>(i)); }

// Everyone exchanges with everyone, also with itself, sizes differing per pair and partly zero.
bool exchange(Communicator& comm, int rank, int nranks, uint64_t largest) {
  const auto count = [&](int a, int b) {
    return (a + 2 * b) % 4 == 0 ? 0 : largest / static_cast<uint64_t>(1 + (a + b) % 3) + 1;
  };
  std::vector<std::vector<int32_t>> sends, receives;
  for (int p = 0; p < nranks; ++p) {
    sends.emplace_back(count(rank, p));
    receives.emplace_back(count(p, rank), -1);
    for (uint64_t i = 0; i < sends.back().size(); ++i) sends.back()[i] = token(rank, p, i);
  }
  if (!group_start().ok()) return false;
  for (int k = 0; k < nranks; ++k) {
    const int to = (rank * 3 + k) % nranks, from = (rank * 5 + 2 * nranks - k) % nranks;  // no particular order
    const auto s = static_cast<size_t>(to), r = static_cast<size_t>(from);
    if (!submit(comm, transfer(Operation::kSend, to, sends[s].size()), sends[s].data(), nullptr, nullptr).ok())
      return false;
    if (!submit(comm, transfer(Operation::kRecv, from, receives[r].size()), nullptr, receives[r].data(), nullptr).ok())
      return false;
  }
  if (!group_end().ok()) return false;
  for (int p = 0; p < nranks; ++p) {
    const auto& got = receives[static_cast<size_t>(p)];
    for (uint64_t i = 0; i < got.size(); ++i) {
      if (got[i] != token(p, rank, i)) return false;
    }
  }
  return true;
}

TEST(Group, AnyExchangeCompletesFarBeyondTheInbox) {
  for (int nranks : {2, 3, 6}) {
    test::run_thread_ranks(nranks, [&](Communicator& comm, int rank) {
      for (uint64_t largest : {3u, 5000u, 400000u}) {
        if (!exchange(comm, rank, nranks, largest)) return false;
      }
      return true;
    });
  }
}

TEST(Group, TransfersToOnePeerMatchInOrder) {
  test::run_process_ranks(2, [](Communicator& comm, int rank) {
    std::vector<std::vector<int32_t>> buffers;
    for (uint64_t k = 0; k < 5; ++k) buffers.emplace_back(100 * k + 1, rank == 0 ? static_cast<int32_t>(k) : -1);
    if (!group_start().ok()) return false;
    for (auto& buffer : buffers) {
      const Collective call = transfer(rank == 0 ? Operation::kSend : Operation::kRecv, 1 - rank, buffer.size());
      if (!submit(comm, call, rank == 0 ? buffer.data() : nullptr, rank == 0 ? nullptr : buffer.data(), nullptr).ok())
        return false;
    }
    if (!group_end().ok()) return false;
    for (size_t k = 0; k < buffers.size(); ++k) {
      for (int32_t value : buffers[k]) {
        if (value != static_cast<int32_t>(k)) return false;
      }
    }
    return true;
  });
}

TEST(Group, OneThreadDrivesEightRanks) {
  constexpr int kRanks = 8;
  test::make_id();  // CPU ranks
  Communicator* comms[kRanks];
  ASSERT_TRUE(init_all(comms, kRanks, nullptr).ok()) << last_error_text();
  for (uint64_t count : {1u, 1000u, 300000u}) {
    std::vector<std::vector<int32_t>> data;
    for (int r = 0; r < kRanks; ++r) data.emplace_back(count, r + 1);
    ASSERT_TRUE(group_start().ok());
    for (int r = 0; r < kRanks; ++r) {
      auto* buffer = data[static_cast<size_t>(r)].data();
      ASSERT_TRUE(submit(*comms[r], all_reduce(count), buffer, buffer, nullptr).ok());
    }
    ASSERT_TRUE(group_end().ok()) << last_error_text();
    for (const auto& result : data) EXPECT_EQ(result, std::vector<int32_t>(count, 36));
  }
  for (Communicator* comm : comms) EXPECT_TRUE(destroy(comm).ok());
}

TEST(Group, CollectivesAndTransfersShareAGroupInAnyOrder) {
  test::run_thread_ranks(3, [](Communicator& comm, int rank) {
    std::vector<int32_t> sum(1000, rank + 1), sent(777, rank), received(777, -1);
    const int next = (rank + 1) % 3, previous = (rank + 2) % 3;
    if (!group_start().ok()) return false;
    if (rank == 1 && !submit(comm, all_reduce(1000), sum.data(), sum.data(), nullptr).ok()) return false;
    if (!submit(comm, transfer(Operation::kSend, next, 777), sent.data(), nullptr, nullptr).ok()) return false;
    if (!submit(comm, transfer(Operation::kRecv, previous, 777), nullptr, received.data(), nullptr).ok()) return false;
    if (rank != 1 && !submit(comm, all_reduce(1000), sum.data(), sum.data(), nullptr).ok()) return false;
    if (!group_end().ok()) return false;
    return sum == std::vector<int32_t>(1000, 6) && received == std::vector<int32_t>(777, previous);
  });
}

TEST(Group, LongMixedSequencesKeepTheirCounters) {
  test::run_process_ranks(3, [](Communicator& comm, int rank) {
    std::vector<int32_t> data(40000);
    for (int call = 0; call < 400; ++call) {
      const uint64_t count = 1 + (call * 7919u) % data.size();
      std::iota(data.begin(), data.end(), rank + call);
      if (call % 3 == 0) {
        const Collective broadcast{Operation::kBroadcast, DataType::kInt32, ReduceOp::kSum, call % 3, count};
        if (!submit(comm, broadcast, data.data(), data.data(), nullptr).ok()) return false;
        if (data[count - 1] != static_cast<int32_t>(call % 3 + call + static_cast<int>(count) - 1)) return false;
      } else {
        if (!submit(comm, all_reduce(count), data.data(), data.data(), nullptr).ok()) return false;
        if (data[count - 1] != 3 * (call + static_cast<int>(count) - 1) + 3) return false;
      }
    }
    return true;
  });
}

// CPU ranks ignore streams, also different ones in a group.
TEST(Group, StreamsOfCpuRanksAreIgnored) {
  test::run_thread_ranks(2, [](Communicator& comm, int rank) {
    int streams[2];
    int32_t first = rank + 1, second = 10 * (rank + 1), sent = 7 + rank, got = 0;
    if (!group_start().ok()) return false;
    if (!submit(comm, all_reduce(1), &first, &first, &streams[0]).ok()) return false;
    if (!submit(comm, all_reduce(1), &second, &second, &streams[1]).ok()) return false;
    if (!submit(comm, transfer(Operation::kSend, 1 - rank, 1), &sent, nullptr, &streams[0]).ok()) return false;
    if (!submit(comm, transfer(Operation::kRecv, 1 - rank, 1), nullptr, &got, &streams[1]).ok()) return false;
    return group_end().ok() && first == 3 && second == 30 && got == 8 - rank;
  });
}

TEST(Group, EndWithoutStartIsInvalidUsage) {
  EXPECT_EQ(group_end().code(), Code::kInvalidUsage);
  EXPECT_STREQ(last_error_text(), "ncclGroupEnd: not in a group call.");
}

TEST(Group, AnErrorInsideDropsTheWholeGroup) {
  test::run_thread_ranks(2, [](Communicator& comm, int) {
    std::vector<int32_t> data(10, 1);
    if (!group_start().ok()) return false;
    if (!submit(comm, all_reduce(10), data.data(), data.data(), nullptr).ok()) return false;
    if (submit(comm, transfer(Operation::kSend, 9, 1), data.data(), nullptr, nullptr).ok()) return false;
    if (group_end().code() != Code::kInvalidArgument) return false;
    return data == std::vector<int32_t>(10, 1) && submit(comm, all_reduce(10), data.data(), data.data(), nullptr).ok();
  });
}

TEST(Group, ALoneSendToSelfIsNamed) {
  test::run_thread_ranks(1, [](Communicator& comm, int) {
    int32_t value = 0;
    if (submit(comm, transfer(Operation::kSend, 0, 1), &value, nullptr, nullptr).code() != Code::kInvalidUsage)
      return false;
    return std::string(last_error_text()).find("Trying to send to self without a matching recv") != std::string::npos;
  });
}

}  // namespace
}  // namespace talaria
