// Every algorithm × every operation it serves × 2…17 ranks × ragged counts × in place on any subset × 1…4 slots × both
// forms × both channels, in check mode. Each scenario is a sequence of all counts, so that operations also meet the
// counters their predecessors left.
#include <gtest/gtest.h>

#include <string>

#include "sim/cases.h"

namespace talaria::sim {
namespace {

struct Kind {
  const Algorithm* algorithm;
  Operation operation;
  Form form;
  Channel channel;
};

std::vector<Kind> all_kinds() {
  std::vector<Kind> kinds;
  for (const Algorithm& algorithm : algorithm_catalog()) {
    for (int operation = 0; operation < kOperations; ++operation) {
      const Operation op = static_cast<Operation>(operation);
      if (is_point_to_point(op)) continue;
      for (Form form : {Form::kStaged, Form::kDirect}) {
        if (!algorithm.serves(op, 2, form)) continue;
        kinds.push_back({&algorithm, op, form, Channel::kCollectiveBulk});
        if (form == Form::kStaged) kinds.push_back({&algorithm, op, form, Channel::kCollectivePacket});
      }
    }
  }
  return kinds;
}

std::string kind_name(const testing::TestParamInfo<Kind>& info) {
  return std::string(info.param.algorithm->name) + "_" + name_of(info.param.operation) +
         (info.param.form == Form::kDirect ? "_direct" : "_staged") +
         (is_packet(info.param.channel) ? "_packet" : "_bulk");
}

class Catalogue : public testing::TestWithParam<Kind> {};

Scenario all_counts(const Kind& kind, const Room& room, Random& random) {
  ScenarioBuilder builder(room, random);
  const uint64_t n = room.nranks;
  for (uint64_t count : {uint64_t{0}, uint64_t{1}, n - 1, n + 1, uint64_t{37}, 8 * n + 3}) {
    Call call{kind.algorithm, {}, kind.form, kind.channel, 1 + static_cast<uint32_t>(below(random, room.lanes)),
              random()};
    const ReduceOp reduce = random_reduction(kind.operation, random);
    call.collective = {kind.operation, static_cast<DataType>(below(random, kDataTypes)), reduce,
                       static_cast<int32_t>(below(random, n)), count};
    builder.add(call);
  }
  return builder.finish();
}

TEST_P(Catalogue, GivesTheOraclesResults) {
  const Kind& kind = GetParam();
  uint32_t scenarios = 0;
  for (uint32_t nranks = 2; nranks <= 17; ++nranks) {
    if (!kind.algorithm->serves(kind.operation, nranks, kind.form)) continue;
    for (uint32_t depth = 1; depth <= 4; ++depth) {
      const Call call{kind.algorithm, {kind.operation, DataType::kInt8, ReduceOp::kNone, 0, 0}, kind.form};
      if (depth < plans_for(call, nranks)[0]->min_depth()) continue;  // the planner refuses it, see planner.cc
      const uint64_t seed = nranks * 100 + depth;
      Random random(seed);
      const Room room{nranks, 2, depth, 32};
      const Scenario scenario = all_counts(kind, room, random);
      const Report report = run_checked(scenario, random());
      ASSERT_EQ(report.verdict, Verdict::kOk) << nranks << " ranks, depth " << depth << ", seed " << seed << ": "
                                              << name_of(report.verdict) << " " << report.text;
      ++scenarios;
    }
  }
  EXPECT_GE(scenarios, 48u);
}

TEST_P(Catalogue, EverySubsetOfRanksMayBeInPlace) {
  const Kind& kind = GetParam();
  for (uint32_t nranks = 2; nranks <= 6; ++nranks) {
    if (!kind.algorithm->serves(kind.operation, nranks, kind.form)) continue;
    Random random(nranks);
    const Room room{nranks, 2, 4, 32};
    ScenarioBuilder builder(room, random);
    for (uint64_t subset = 0; subset < (1u << nranks); ++subset) {
      Call call{kind.algorithm, {}, kind.form, kind.channel, 2, subset};
      call.collective = {kind.operation, DataType::kFloat16, reduces(kind.operation) ? ReduceOp::kSum : ReduceOp::kNone,
                         static_cast<int32_t>(subset % nranks), 37};
      builder.add(call);
    }
    const Report report = run_checked(builder.finish(), nranks);
    ASSERT_EQ(report.verdict, Verdict::kOk) << nranks << " ranks: " << name_of(report.verdict) << " " << report.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, Catalogue, testing::ValuesIn(all_kinds()), kind_name);

// One rank, several calls: nothing to wait for.
TEST(CatalogueOfOneRank, GivesTheOraclesResults) {
  uint32_t kinds = 0;
  for (const Kind& kind : all_kinds()) {
    if (!kind.algorithm->serves(kind.operation, 1, kind.form)) continue;
    Random random(11);
    const Report report = run_checked(all_counts(kind, Room{1, 2, 4, 32}, random), random());
    ASSERT_EQ(report.verdict, Verdict::kOk) << name_of(kind.operation) << ": " << report.text;
    ++kinds;
  }
  EXPECT_GT(kinds, 5u);
}

// Sends and receives: everyone to everyone, itself included, several to one peer, of ragged sizes.
TEST(CatalogueOfTransfers, DeliverWhatWasSent) {
  for (uint32_t nranks = 1; nranks <= 17; ++nranks) {
    for (uint32_t depth = 1; depth <= 4; ++depth) {
      const uint64_t seed = nranks * 100 + depth;
      Random random(seed);
      ScenarioBuilder builder(Room{nranks, 2, depth, 32}, random);
      for (int group = 0; group < 2; ++group) {
        std::vector<Transfer> transfers;
        for (uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{37}, 8 * depth + below(random, 100)}) {
          for (uint32_t source = 0; source < nranks; ++source) {
            const uint32_t destination = (source + static_cast<uint32_t>(count)) % nranks;
            transfers.push_back({source, destination, count, DataType::kFloat8e4m3});
          }
        }
        builder.add_group(transfers);
      }
      const Report report = run_checked(builder.finish(), random());
      ASSERT_EQ(report.verdict, Verdict::kOk) << nranks << " ranks, depth " << depth << ", seed " << seed << ": "
                                              << name_of(report.verdict) << " " << report.text;
    }
  }
}

// A ring needs two slots (Plan::min_depth); with one, all ranks wait for the next one's.
TEST(CatalogueDepth, RingWithOneSlotDeadlocks) {
  Random random(1);
  ScenarioBuilder builder(Room{3, 1, 1, 32}, random);
  const Collective collective{Operation::kAllReduce, DataType::kInt32, ReduceOp::kSum, 0, 100};
  builder.add(Call{find_algorithm("ring"), collective});
  EXPECT_EQ(run_checked(builder.finish(), 1).verdict, Verdict::kDeadlock);
}

}  // namespace
}  // namespace talaria::sim
