// Fused paths against the interpreter's results: same bits, same counters.
#include <gtest/gtest.h>

#include "engine/device/fused/fused_path.h"
#include "expected.h"
#include "fleet.h"
#include "test_kernels.h"

namespace talaria {
namespace {

constexpr Channel kPacket = Channel::kCollectivePacket;

Work one_shot_work(const Plan& plan, uint32_t rounds) {
  Work work{};
  work.plan = plan.view();
  work.chunking.rounds = rounds;
  work.chunking.lanes = 1;
  work.join = 1;
  work.channel = static_cast<uint8_t>(kPacket);
  work.reduce = static_cast<uint8_t>(ReduceOp::kSum);
  return work;
}

Plan build(const char* algorithm, Operation operation, uint32_t rank, uint32_t nranks) {
  Plan plan = find_algorithm(algorithm)->build(Shape{operation, 0, rank, nranks, Form::kStaged});
  EXPECT_TRUE(plan.seal().ok());
  return plan;
}

TEST(Fused, KnowsTheOneShotPlan) {
  for (uint32_t n = 2; n <= kMaxFusedRanks; ++n) {
    for (uint32_t r = 0; r < n; ++r) {
      const Plan plan = build("one_shot", Operation::kAllReduce, r, n);
      EXPECT_EQ(fused_path_of(one_shot_work(plan, 1)), FusedPath::kOneShot) << n << " " << r;
      EXPECT_EQ(fused_path_of(one_shot_work(plan, 2)), FusedPath::kNone) << "more rounds are the interpreter's";
    }
  }
  EXPECT_EQ(fused_path_of(one_shot_work(build("one_shot", Operation::kAllReduce, 0, kMaxFusedRanks + 1), 1)),
            FusedPath::kNone);
  EXPECT_EQ(fused_path_of(one_shot_work(build("one_shot", Operation::kAllReduce, 0, 1), 1)), FusedPath::kNone);
}

TEST(Fused, KnowsNoOtherPlan) {
  size_t plans = 0;
  for (const Algorithm& algorithm : algorithm_catalog()) {
    for (int o = 0; o < kOperations; ++o) {
      const Operation operation = static_cast<Operation>(o);
      for (uint32_t n = 2; n <= 4; ++n) {
        if (std::string(algorithm.name) == "one_shot" || !algorithm.serves(operation, n, Form::kStaged)) continue;
        const Plan plan = build(algorithm.name, operation, n - 1, n);
        EXPECT_EQ(fused_path_of(one_shot_work(plan, 1)), FusedPath::kNone) << algorithm.name << name_of(operation);
        ++plans;
      }
    }
  }
  EXPECT_GT(plans, 10u);
}

// One call per launch, now fused, now interpreted, on the same counters; every count up to some packets, any alignment.
template <DataType kType>
void alternate(uint64_t seed, uint64_t age) {
  std::mt19937_64 random(seed);
  for (int op = 0; op < kReduceOps; ++op) {
    const auto reduce = static_cast<ReduceOp>(op);
    const uint32_t nranks = static_cast<uint32_t>(2 + random() % 4);
    Fleet fleet({nranks, 2, 4, 2048});
    if (age != 0) fleet.age(kPacket, age), fleet.plant_stale_packets();
    for (int launch = 0; launch < 8; ++launch) {
      const Collective collective{Operation::kAllReduce, kType, reduce, 0, 1 + random() % 400};
      std::vector<Bytes> inputs;
      for (uint32_t r = 0; r < nranks; ++r) {
        inputs.push_back(random_input<kType>(collective.count, false, nranks, random));
      }
      FleetCall call{"one_shot", collective, kPacket};
      call.scalars = random_scalars<kType>(reduce, false, nranks, random);
      call.fused = launch % 3 != 2;
      call.in_place = random() % 2 == 0;
      call.shift = static_cast<uint32_t>(random() % 3 * bytes_of(kType));
      const size_t index = fleet.add(call, inputs);
      ASSERT_TRUE(fleet.run(kernel_for<kType>(kPacket, reduce), seed, random() % 2 == 0 ? 32 : 64)) << launch;
      ASSERT_FALSE(fleet.trespassed()) << "seed " << seed;
      for (uint32_t r = 0; r < nranks; ++r) {
        ASSERT_EQ(fleet.outputs(index)[r], expected_output<kType>(collective, inputs, r, call.scalars))
            << "seed " << seed << " launch " << launch << " rank " << r << " of " << nranks << " count "
            << collective.count;
      }
    }
  }
}

TEST(Fused, Int8) { alternate<DataType::kInt8>(1, 0); }
TEST(Fused, Uint8) { alternate<DataType::kUint8>(2, 0); }
TEST(Fused, Int32) { alternate<DataType::kInt32>(3, 0); }
TEST(Fused, Uint32) { alternate<DataType::kUint32>(10, 0); }
TEST(Fused, Uint64) { alternate<DataType::kUint64>(11, 0); }
TEST(Fused, Float8e4m3) { alternate<DataType::kFloat8e4m3>(12, 0); }
TEST(Fused, Float8e5m2) { alternate<DataType::kFloat8e5m2>(13, 0); }
TEST(Fused, Int64) { alternate<DataType::kInt64>(4, 0); }
TEST(Fused, Float16) { alternate<DataType::kFloat16>(5, 0); }
TEST(Fused, Bfloat16) { alternate<DataType::kBfloat16>(6, 0); }
TEST(Fused, Float32) { alternate<DataType::kFloat32>(7, 0); }
TEST(Fused, Float64) { alternate<DataType::kFloat64>(8, 0); }
TEST(Fused, TagsWrap) { alternate<DataType::kInt32>(9, kPacketTagModulus - 4); }

TEST(Fused, FlipsOneBitWhenAsked) {
  Fleet fleet({2, 2, 4, 2048});
  const Collective collective{Operation::kAllReduce, DataType::kInt32, ReduceOp::kSum, 0, 100};
  const std::vector<Bytes> inputs(2, Bytes(400, std::byte{1}));
  FleetCall call{"one_shot", collective, kPacket};
  call.flip = call.fused = true;
  const size_t index = fleet.add(call, inputs);
  ASSERT_TRUE(fleet.run(kernel_for<DataType::kInt32>(kPacket, ReduceOp::kSum), 1));
  Bytes right = expected_output<DataType::kInt32>(collective, inputs, 0);
  right[0] ^= std::byte{1};
  EXPECT_EQ(fleet.outputs(index)[0], right);
}

TEST(Fused, AbortEndsTheWait) {
  Fleet fleet({3, 2, 4, 2048});
  const Collective collective{Operation::kAllReduce, DataType::kInt32, ReduceOp::kSum, 0, 500};
  FleetCall call{"one_shot", collective, kPacket};
  call.fused = true;
  fleet.add(call, std::vector<Bytes>(3, Bytes(2000)));
  fleet.withhold(1);
  fleet.abort(0);
  fleet.abort(2);
  EXPECT_FALSE(fleet.run(kernel_for<DataType::kInt32>(kPacket, ReduceOp::kSum), 1));
  EXPECT_TRUE(fleet.all_left());
  for (const uint32_t r : {0u, 2u}) {
    EXPECT_EQ(fleet.fault(r).valid, kFaultWritten);
    EXPECT_EQ(fleet.fault(r).reason, static_cast<uint32_t>(FaultReason::kAborted));
    EXPECT_EQ(fleet.fault(r).peer, 1u);
  }
}

}  // namespace
}  // namespace talaria
