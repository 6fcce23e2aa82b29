// The device interpreter on emulated blocks, against plain loops.
#include <gtest/gtest.h>

#include "expected.h"
#include "fleet.h"
#include "test_kernels.h"

namespace talaria {
namespace {

struct Row {
  const char* algorithm;
  Operation operation;
  Channel channel;
  bool rank_order;  // sums in rank order, so that random floats are compared bit for bit
};
constexpr Channel kPacket = Channel::kCollectivePacket, kBulk = Channel::kCollectiveBulk;
constexpr Row kRows[] = {
    {"one_shot", Operation::kAllReduce, kPacket, true},      {"one_shot", Operation::kAllReduce, kBulk, true},
    {"two_shot", Operation::kAllReduce, kPacket, true},      {"two_shot", Operation::kAllReduce, kBulk, true},
    {"two_shot", Operation::kReduceScatter, kBulk, true},    {"two_shot", Operation::kAllGather, kBulk, true},
    {"two_shot", Operation::kAllGather, kPacket, true},      {"two_shot", Operation::kBroadcast, kBulk, true},
    {"ring", Operation::kAllReduce, kBulk, false},           {"ring", Operation::kReduceScatter, kPacket, false},
    {"ring", Operation::kAllGather, kBulk, false},           {"ring", Operation::kBroadcast, kBulk, false},
    {"tree", Operation::kAllReduce, kBulk, false},           {"tree", Operation::kAllReduce, kPacket, false},
    {"tree", Operation::kReduce, kPacket, false},            {"tree", Operation::kBroadcast, kBulk, false},
    {"pairwise", Operation::kAlltoAll, kBulk, true},         {"pairwise", Operation::kAlltoAll, kPacket, true},
    {"pairwise", Operation::kGather, kPacket, true},         {"pairwise", Operation::kGather, kBulk, true},
    {"pairwise", Operation::kScatter, kPacket, true},        {"pairwise", Operation::kScatter, kBulk, true},
    {"one_shot", Operation::kReduce, kPacket, true},         {"one_shot", Operation::kReduce, kBulk, true},
    {"two_shot", Operation::kReduce, kPacket, true},         {"two_shot", Operation::kReduce, kBulk, true},
};

// Adds a random call of a row, runs nothing.
template <DataType kType>
struct Queued {
  Collective collective;
  std::vector<Bytes> inputs;
  size_t call;
  std::vector<uint64_t> scalars = {};
};

template <DataType kType>
Queued<kType> queue(Fleet& fleet, const Row& row, ReduceOp reduce, uint32_t nranks, std::mt19937_64& random) {
  static constexpr uint64_t kCounts[] = {1, 2, 3, 7, 16, 33, 64, 129, 250, 517};
  Collective collective{row.operation, kType, reduce, 0, kCounts[random() % std::size(kCounts)]};
  if (is_rooted(row.operation)) collective.root = static_cast<int32_t>(random() % nranks);
  std::vector<Bytes> inputs;
  for (uint32_t r = 0; r < nranks; ++r) {
    const size_t count = input_elements(collective, nranks);
    inputs.push_back(random_input<kType>(count, !row.rank_order, unit_for(reduce, nranks), random));
  }
  FleetCall call{row.algorithm, collective, row.channel};
  if (reduces(row.operation)) call.scalars = random_scalars<kType>(reduce, !row.rank_order, nranks, random);
  call.in_place = row.operation != Operation::kAlltoAll && random() % 2 == 0;
  if (random() % 2 == 0) call.shift = static_cast<uint32_t>(bytes_of(kType) * (random() % 4));
  return {collective, inputs, fleet.add(call, inputs), call.scalars};
}

template <DataType kType>
void check(const Fleet& fleet, const Queued<kType>& queued, uint64_t seed) {
  for (uint32_t r = 0; r < queued.inputs.size(); ++r) {
    const bool is_root = queued.collective.root == static_cast<int32_t>(r);
    if (!writes_output(queued.collective.operation, is_root)) continue;
    ASSERT_EQ(fleet.outputs(queued.call)[r],
              expected_output<kType>(queued.collective, queued.inputs, r, queued.scalars))
        << "seed " << seed << " rank " << r << " of " << queued.inputs.size() << ", "
        << name_of(queued.collective.operation) << " count " << queued.collective.count;
  }
}

// Several calls of one kernel in a launch, several launches on the same counters.
template <DataType kType>
void run_sequences(const Row& row, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int op = 0; op < kReduceOps; ++op) {
    const auto reduce = static_cast<ReduceOp>(op);
    const uint32_t nranks = static_cast<uint32_t>(2 + random() % 3);
    Fleet fleet({nranks, 2, 4, 256});
    const ReduceOp kernel_reduce = reduces(row.operation) ? reduce : ReduceOp::kNone;
    for (int launch = 0; launch < 2; ++launch) {
      std::vector<Queued<kType>> calls;
      for (int c = 0; c < 2; ++c) calls.push_back(queue<kType>(fleet, row, reduce, nranks, random));
      const uint32_t threads = random() % 2 == 0 ? 32 : 64;
      ASSERT_TRUE(fleet.run(kernel_for<kType>(row.channel, kernel_reduce), seed, threads))
          << row.algorithm << " " << name_of(row.operation) << " ranks " << nranks << " seed " << seed;
      for (const auto& call : calls) ASSERT_NO_FATAL_FAILURE(check<kType>(fleet, call, seed)) << row.algorithm;
      ASSERT_FALSE(fleet.trespassed()) << row.algorithm << " seed " << seed;
    }
  }
}

template <DataType kType>
void run_rows() {
  for (const Row& row : kRows) ASSERT_NO_FATAL_FAILURE(run_sequences<kType>(row, 1 + static_cast<uint64_t>(kType)));
}

TEST(Interpreter, Int8) { run_rows<DataType::kInt8>(); }
TEST(Interpreter, Uint8) { run_rows<DataType::kUint8>(); }
TEST(Interpreter, Int32) { run_rows<DataType::kInt32>(); }
TEST(Interpreter, Uint32) { run_rows<DataType::kUint32>(); }
TEST(Interpreter, Uint64) { run_rows<DataType::kUint64>(); }
TEST(Interpreter, Float8e4m3) { run_rows<DataType::kFloat8e4m3>(); }
TEST(Interpreter, Float8e5m2) { run_rows<DataType::kFloat8e5m2>(); }
TEST(Interpreter, Int64) { run_rows<DataType::kInt64>(); }
TEST(Interpreter, Float16) { run_rows<DataType::kFloat16>(); }
TEST(Interpreter, Bfloat16) { run_rows<DataType::kBfloat16>(); }
TEST(Interpreter, Float32) { run_rows<DataType::kFloat32>(); }
TEST(Interpreter, Float64) { run_rows<DataType::kFloat64>(); }

// More messages than slots: every slot is credited.
TEST(Interpreter, MessagesOutnumberSlots) {
  constexpr DataType kType = DataType::kFloat32;
  for (const Row& row : kRows) {
    std::mt19937_64 random(11);
    Fleet fleet({3, 2, 2, 64});
    Collective collective{row.operation, kType, ReduceOp::kSum, 1, 700};
    const ReduceOp reduce = reduces(row.operation) ? ReduceOp::kSum : ReduceOp::kNone;
    for (int launch = 0; launch < 2; ++launch) {
      std::vector<Bytes> inputs;
      for (int r = 0; r < 3; ++r) {
        inputs.push_back(random_input<kType>(input_elements(collective, 3), true, 3, random));
      }
      const Queued<kType> queued{collective, inputs, fleet.add({row.algorithm, collective, row.channel}, inputs)};
      ASSERT_TRUE(fleet.run(kernel_for<kType>(row.channel, reduce), 5)) << row.algorithm << name_of(row.operation);
      ASSERT_NO_FATAL_FAILURE(check<kType>(fleet, queued, 11)) << row.algorithm;
    }
  }
}

// Sends and receives of a group, more than fit into the launch's parameters, in an order that needs both streams.
TEST(Interpreter, GroupedTransfers) {
  std::mt19937_64 random(3);
  Fleet fleet({3, 2, 4, 64});
  for (int launch = 0; launch < 3; ++launch) {
    std::vector<std::pair<size_t, uint32_t>> calls;
    std::vector<Bytes> sent;
    for (int repeat = 0; repeat < 4; ++repeat) {
      for (uint32_t d = 1; d < 3; ++d) {
        for (uint32_t from = 0; from < 3; ++from) {
          sent.push_back(random_input<DataType::kUint8>(1 + random() % 1500, false, 3, random));
          calls.emplace_back(fleet.add_transfer(from, (from + d) % 3, DataType::kUint8, sent.back()), (from + d) % 3);
        }
      }
    }
    ASSERT_TRUE(fleet.run(device::run<device::Bulk, device::Copier>, 7));
    for (size_t c = 0; c < calls.size(); ++c) ASSERT_EQ(fleet.outputs(calls[c].first)[calls[c].second], sent[c]) << c;
    ASSERT_FALSE(fleet.trespassed());
  }
}

// Tags return to 1 after 2³¹ messages; whatever lies in the slots must not be taken for a message then.
TEST(Interpreter, PacketTagsWrap) {
  constexpr DataType kType = DataType::kInt32;
  std::mt19937_64 random(4);
  Fleet fleet({2, 1, 4, 256});
  const Row row{"one_shot", Operation::kAllReduce, kPacket, true};
  for (const uint64_t start : {kPacketTagModulus - 6, 2 * kPacketTagModulus - 6}) {
    fleet.age(kPacket, start);
    fleet.plant_stale_packets();
    for (int launch = 0; launch < 12; ++launch) {
      const auto queued = queue<kType>(fleet, row, ReduceOp::kSum, 2, random);
      ASSERT_TRUE(fleet.run(kernel_for<kType>(kPacket, ReduceOp::kSum), 9)) << launch;
      ASSERT_NO_FATAL_FAILURE(check<kType>(fleet, queued, 4)) << launch;
    }
  }
}

TEST(Interpreter, FlipsOneBitWhenAsked) {
  Fleet fleet({2, 2, 4, 256});
  const Collective collective{Operation::kAllReduce, DataType::kInt32, ReduceOp::kSum, 0, 100};
  const std::vector<Bytes> inputs(2, Bytes(400, std::byte{1}));
  FleetCall call{"two_shot", collective, kBulk};
  call.flip = true;
  const size_t index = fleet.add(call, inputs);
  ASSERT_TRUE(fleet.run(kernel_for<DataType::kInt32>(kBulk, ReduceOp::kSum), 1));
  Bytes right = expected_output<DataType::kInt32>(collective, inputs, 0);
  right[0] ^= std::byte{1};
  EXPECT_EQ(fleet.outputs(index)[0], right);
}

// A rank whose peer never comes leaves its kernel when the abort word is set, and says whom it waited for.
TEST(Interpreter, AbortEndsEveryWait) {
  struct Stuck {
    const char* algorithm;
    Channel channel;
  };
  for (const Stuck& stuck : {Stuck{"one_shot", kPacket}, Stuck{"two_shot", kBulk}, Stuck{"ring", kBulk}}) {
    Fleet fleet({2, 2, 4, 256});
    const Collective collective{Operation::kAllReduce, DataType::kInt32, ReduceOp::kSum, 0, 1000};
    fleet.add({stuck.algorithm, collective, stuck.channel}, std::vector<Bytes>(2, Bytes(4000)));
    fleet.withhold(1);
    fleet.abort(0);
    EXPECT_FALSE(fleet.run(kernel_for<DataType::kInt32>(stuck.channel, ReduceOp::kSum), 1));
    EXPECT_TRUE(fleet.all_left()) << stuck.algorithm;
    EXPECT_EQ(fleet.fault(0).valid, kFaultWritten) << stuck.algorithm;
    EXPECT_EQ(fleet.fault(0).reason, static_cast<uint32_t>(FaultReason::kAborted));
    EXPECT_EQ(fleet.fault(0).peer, 1u);
    EXPECT_EQ(fleet.fault(0).place, static_cast<uint32_t>(Place::kInbox));
  }
}

TEST(Interpreter, RefusesTheDirectForm) {
  Fleet fleet({2, 1, 4, 256});
  const Collective collective{Operation::kAllReduce, DataType::kInt32, ReduceOp::kSum, 0, 100};
  FleetCall call{"two_shot", collective, kBulk};
  call.form = Form::kDirect;
  fleet.add(call, std::vector<Bytes>(2, Bytes(400)));
  fleet.abort(0);
  fleet.abort(1);
  EXPECT_FALSE(fleet.run(kernel_for<DataType::kInt32>(kBulk, ReduceOp::kSum), 1));
  EXPECT_TRUE(fleet.all_left());
  for (uint32_t r = 0; r < 2; ++r) EXPECT_EQ(fleet.fault(r).valid, kFaultWritten);
}

}  // namespace
}  // namespace talaria
