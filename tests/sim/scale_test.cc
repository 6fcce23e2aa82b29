// Scale mode: thousands of ranks, agreement with the oracle, and the α–β clock.
#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <ctime>

#include "sim/cases.h"
#include "sim/expected.h"
#include "sim/scale.h"

namespace talaria::sim {
namespace {

ScaleCase scale_case(const Call& call, uint32_t nranks, uint64_t slot_bytes) {
  ScaleCase scale;
  scale.collective = call.collective;
  scale.nranks = nranks;
  for (uint32_t rank = 0; rank < nranks; ++rank) {
    auto plan = std::make_shared<Plan>(call.algorithm->build(
        Shape{call.collective.operation, call.collective.root, rank, nranks, call.form}));
    EXPECT_TRUE(plan->seal().ok());
    scale.plans.push_back(std::move(plan));
  }
  scale.chunking = small_chunking(call.collective, Room{nranks, call.lanes, 4, slot_bytes}, scale.plans[0]->blocks(),
                                  call.lanes);
  return scale;
}

std::vector<Bytes> random_inputs(const Collective& collective, uint32_t nranks, Random& random) {
  std::vector<Bytes> inputs;
  for (uint32_t rank = 0; rank < nranks; ++rank) {
    inputs.push_back(random_data(collective.type, extent_of(collective, nranks, rank).input_elements, false, random));
  }
  return inputs;
}

// Sanitizers take several times the time and memory, so they see fewer ranks.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint32_t kRanks = 512;
#else
constexpr uint32_t kRanks = 4096;
#endif

TEST(Scale, RingAllReduceOf4096RanksIsRightWithinTenSeconds) {
  Random random(1);
  const Collective collective{Operation::kAllReduce, DataType::kInt32, ReduceOp::kSum, 0, 4 * kRanks - 3};
  const std::vector<Bytes> inputs = random_inputs(collective, kRanks, random);
  const std::clock_t start = std::clock();  // processor time: other work on the machine does not count
  ScaleCase scale = scale_case(Call{find_algorithm("ring"), collective}, kRanks, 64);
  const double built = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  scale.inputs = &inputs;
  const ScaleReport report = run_scaled(scale);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::printf("%u ranks: plans %.1f s, in all %.1f s of processor time, %.0f us simulated\n", kRanks, built, seconds,
              report.usec);
  ASSERT_EQ(report.verdict, Verdict::kOk) << report.text;
  EXPECT_EQ(report.steps, uint64_t{kRanks} * (2 * kRanks - 1));
  // Integers wrap, so the order of the sum does not matter: one plain sum checks every rank.
  std::vector<uint32_t> sum(collective.count);
  for (const Bytes& input : inputs) {
    const auto* values = reinterpret_cast<const uint32_t*>(input.data());
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  }
  const auto* first = reinterpret_cast<const std::byte*>(sum.data());
  for (const Bytes& output : report.outputs) ASSERT_TRUE(std::equal(output.begin(), output.end(), first));
  EXPECT_LT(seconds, 10.0);
}

TEST(Scale, AgreesWithTheOracleForEveryAlgorithmAndForm) {
  uint32_t cases = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const Room room{2 + static_cast<uint32_t>(below(random, 40)), 2, 4, 32};
    Call call = random_call(room, random);
    const bool real_geometry = seed % 2 == 0;
    if (real_geometry) call.collective.count *= 10;
    ScaleCase scale = scale_case(call, room.nranks, room.slot_bytes);
    if (real_geometry) {
      scale.chunking = chunking_for(call.collective, room.nranks, scale.plans[0]->blocks(), room.lanes, 256);
    }
    for (uint32_t rank = 0; rank < room.nranks; ++rank) scale.direct.push_back(below(random, 2) == 0);
    const std::vector<Bytes> inputs = random_inputs(call.collective, room.nranks, random);
    scale.inputs = &inputs;
    scale.scalars = random_scalars(call.collective.reduce, call.collective.type, room.nranks, random);
    const ScaleReport report = run_scaled(scale);
    ASSERT_EQ(report.verdict, Verdict::kOk) << "seed " << seed << " " << describe(call) << ": " << report.text;
    const OracleRules rules{addition_order(call.algorithm->name), scale.chunking.block_elements, scale.scalars};
    ASSERT_EQ(report.outputs, expected_outputs(call.collective, inputs, rules)) << "seed " << seed << " "
                                                                                << describe(call);
    ++cases;
  }
  EXPECT_EQ(cases, 300u);
}

// A ring of n ranks takes 2(n-1) hops of α + bytes·β; one-shot takes one.
TEST(Scale, TimeFollowsLatencyAndBandwidth) {
  Random random(7);
  const Collective collective{Operation::kAllReduce, DataType::kFloat32, ReduceOp::kSum, 0, 64};
  const auto usec = [&](const char* algorithm, double alpha, double beta) {
    ScaleCase scale = scale_case(Call{find_algorithm(algorithm), collective}, 8, 1024);
    const std::vector<Bytes> inputs = random_inputs(collective, 8, random);
    scale.inputs = &inputs;
    scale.alpha_usec = alpha;
    scale.beta_usec_per_byte = beta;
    const ScaleReport report = run_scaled(scale);
    EXPECT_EQ(report.verdict, Verdict::kOk) << report.text;
    return report.usec;
  };
  EXPECT_DOUBLE_EQ(usec("ring", 1.0, 0.0), 14.0);
  EXPECT_DOUBLE_EQ(usec("one_shot", 1.0, 0.0), 1.0);
  EXPECT_DOUBLE_EQ(usec("ring", 0.0, 1.0), 14.0 * 64 / 8 * 4);
  EXPECT_DOUBLE_EQ(usec("one_shot", 0.0, 1.0), 7.0 * 64 * 4);
}

// Up a tree of depth log2(n) and down again, whichever of the two trees a rank forwards in.
TEST(Scale, TreeTakesLogarithmicallyManyHops) {
  Random random(9);
  const auto hops = [&](Operation operation, uint32_t nranks, uint64_t count) {
    const ReduceOp reduce = reduces(operation) ? ReduceOp::kSum : ReduceOp::kNone;
    const int32_t root = static_cast<int32_t>(nranks / 3);
    const Collective collective{operation, DataType::kInt32, reduce, root, count};
    ScaleCase scale = scale_case(Call{find_algorithm("tree"), collective}, nranks, 64);
    const std::vector<Bytes> inputs = random_inputs(collective, nranks, random);
    scale.inputs = &inputs;
    scale.alpha_usec = 1.0;
    scale.beta_usec_per_byte = 0.0;
    const ScaleReport report = run_scaled(scale);
    EXPECT_EQ(report.verdict, Verdict::kOk) << report.text;
    EXPECT_EQ(report.outputs[static_cast<size_t>(root)], expected_outputs(collective, inputs,
              OracleRules{AdditionOrder::kTree, scale.chunking.block_elements})[static_cast<size_t>(root)]);
    return report.usec;
  };
  for (uint32_t nranks : {2u, 3u, 5u, 8u, 17u, 64u, 100u, 1000u, 1024u}) {
    const double depth = std::bit_width(nranks) - 1;
    EXPECT_DOUBLE_EQ(hops(Operation::kAllReduce, nranks, 32), 2 * depth) << nranks;
    EXPECT_DOUBLE_EQ(hops(Operation::kReduce, nranks, 16), depth) << nranks;
    EXPECT_DOUBLE_EQ(hops(Operation::kBroadcast, nranks, 16), depth) << nranks;
  }
  // 64 rounds: one climbs while the one before comes down.
  EXPECT_DOUBLE_EQ(hops(Operation::kAllReduce, 64, 64 * 32), 2 * 6 + 63 * 6);
}

TEST(Scale, SeesADeadlockAndALeftOverMessage) {
  Random random(3);
  const Collective collective{Operation::kAllReduce, DataType::kInt32, ReduceOp::kSum, 0, 64};
  ScaleCase scale = scale_case(Call{find_algorithm("ring"), collective}, 4, 64);
  const std::vector<Bytes> inputs = random_inputs(collective, 4, random);
  scale.inputs = &inputs;
  scale.depth = 1;
  scale.chunking.rounds = 2;
  EXPECT_EQ(run_scaled(scale).verdict, Verdict::kDeadlock);

  Plan lonely(Shape{Operation::kAllReduce, 0, 0, 2, Form::kStaged}, 1),
      idle(Shape{Operation::kAllReduce, 0, 1, 2, Form::kStaged}, 1);
  lonely.begin_stream();
  lonely.add(0, {Ref{Place::kInput, 0, 0, 0, 0}}, {Ref{Place::kInbox, kWait | kSignal, 0, 0, 1}});
  ASSERT_TRUE(lonely.seal().ok());
  scale.nranks = 2;
  scale.depth = 4;
  scale.plans = {std::make_shared<Plan>(lonely), std::make_shared<Plan>(idle)};
  EXPECT_EQ(run_scaled(scale).verdict, Verdict::kLeftOver);
}

TEST(Expected, GivesTheResultOfANamedPlan) {
  Random random(5);
  const Collective collective{Operation::kAllReduce, DataType::kFloat16, ReduceOp::kSum, 0, 1001};
  const std::vector<Bytes> inputs = random_inputs(collective, 3, random);
  for (Form form : {Form::kStaged, Form::kDirect}) {
    const Simulated result = simulate({"two_shot", collective, 3, form, ChannelRoom{2, 4, 512}}, inputs);
    ASSERT_TRUE(result.ok) << result.text;
    EXPECT_EQ(result.outputs, expected_outputs(collective, inputs, OracleRules{}));
  }
  EXPECT_FALSE(simulate({"one_shot", collective, 3, Form::kDirect, ChannelRoom{2, 4, 512}}, inputs).ok);
  EXPECT_FALSE(simulate({"two_shot", collective, 4, Form::kStaged, ChannelRoom{2, 4, 512}}, inputs).ok);
}

}  // namespace
}  // namespace talaria::sim
