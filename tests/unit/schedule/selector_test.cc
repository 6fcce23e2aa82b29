#include "schedule/selector.h"

#include <gtest/gtest.h>

#include <string>

#include "schedule/planner.h"

namespace talaria {
namespace {

// The choice by a table that was filled from `limits`.
Selection by(const ChoiceLimits& limits) {
  return {limits.nranks, limits.form, fill_selection_table(limits), "algorithms", "protocols",
                                              limits.direct_bytes};
}

Result<Choice> select(const Collective& collective, const ChoiceLimits& limits) {
  return talaria::select(collective, by(limits));
}

ChoiceLimits limits() {
  ChoiceLimits limits;
  limits.nranks = 4;
  limits.packets = true;
  limits.one_shot_bytes = 3000;
  limits.one_shot_packet_bytes = 1500;
  limits.packet_bytes = 2000;
  return limits;
}

Collective all_reduce(uint64_t count) {
  return Collective{Operation::kAllReduce, DataType::kFloat32, ReduceOp::kSum, 0, count};
}

TEST(Selector, SmallAllReducesGoInOneShotAsPackets) {
  const Choice small = *select(all_reduce(125), limits());
  EXPECT_STREQ(small.algorithm->name, "one_shot");
  EXPECT_EQ(small.channel, Channel::kCollectivePacket);
  const Choice middle = *select(all_reduce(250), limits());
  EXPECT_STREQ(middle.algorithm->name, "one_shot");
  EXPECT_EQ(middle.channel, Channel::kCollectiveBulk);
  const Choice large = *select(all_reduce(251), limits());
  EXPECT_STREQ(large.algorithm->name, "two_shot");
}

TEST(Selector, ReducesGoInOneShotWhileTheRootReceivesLittle) {
  Collective reduce = all_reduce(125);
  reduce.operation = Operation::kReduce;
  EXPECT_STREQ(select(reduce, limits())->algorithm->name, "one_shot");
  EXPECT_EQ(select(reduce, limits())->channel, Channel::kCollectivePacket);
  reduce.count = 251;
  EXPECT_STREQ(select(reduce, limits())->algorithm->name, "two_shot");
}

TEST(Selector, BlocksThatAreOnlyMovedGoPairwise) {
  for (Operation operation : {Operation::kAlltoAll, Operation::kGather, Operation::kScatter}) {
    const Collective small{operation, DataType::kInt8, ReduceOp::kNone, 0, 2000};
    EXPECT_STREQ(select(small, limits())->algorithm->name, "pairwise");
    EXPECT_EQ(select(small, limits())->channel, Channel::kCollectivePacket);
    const Collective large{operation, DataType::kInt8, ReduceOp::kNone, 0, 2001};
    EXPECT_EQ(select(large, limits())->channel, Channel::kCollectiveBulk);
  }
}

TEST(Selector, DirectFormIsTakenOnlyWhereItIsServed) {
  ChoiceLimits direct = limits();
  direct.form = Form::kDirect;
  direct.packets = false;
  EXPECT_EQ(select(all_reduce(10000), direct)->form, Form::kDirect);
  direct.filter = *parse_selection("ring", "");
  EXPECT_EQ(select(all_reduce(10000), direct)->form, Form::kStaged);
}

TEST(Selector, SmallBlocksAreNotWorthTheDirectForm) {
  ChoiceLimits direct = limits();
  direct.form = Form::kDirect;
  direct.packets = false;
  direct.direct_bytes = 1000;  // at each of 4 ranks: 4000 bytes of an all-reduce, 1000 of an all-to-all
  EXPECT_EQ(select(all_reduce(1000), direct)->form, Form::kDirect);
  EXPECT_EQ(select(all_reduce(999), direct)->form, Form::kStaged);
  Collective blocks{Operation::kAlltoAll, DataType::kInt8, ReduceOp::kNone, 0, 1000};
  EXPECT_EQ(select(blocks, direct)->form, Form::kDirect);
  blocks.count = 999;
  EXPECT_EQ(select(blocks, direct)->form, Form::kStaged);
}

TEST(Selector, WhatTheFilterLeavesNothingForIsInvalidUsageNamingBothVariables) {
  ChoiceLimits forced = limits();
  forced.filter = *parse_selection("one_shot", "");
  const Collective gather{Operation::kAllGather, DataType::kInt8, ReduceOp::kNone, 0, 100};
  const Selection selection{forced.nranks, forced.form, fill_selection_table(forced), "one_shot", "LL"};
  EXPECT_EQ(talaria::select(gather, selection).status().code(), Code::kInvalidUsage);
  EXPECT_STREQ(last_error_text(), "No algorithm/protocol available for function AllGather with datatype int8. "
                                  "NCCL_ALGO was set to one_shot. NCCL_PROTO was set to LL.");
  EXPECT_TRUE(talaria::select(all_reduce(1), selection).ok());
}

TEST(Planner, KeepsOnePlanForAllSizesOfAShape) {
  const ChannelRoom rooms[kChannels] = {{4, 4, 4096}, {4, 4, 4096}, {1, 4, 4096}};
  Planner planner(1, by(limits()), rooms);
  const Planned a = *planner.plan(all_reduce(10000));
  const Planned b = *planner.plan(all_reduce(20000));
  EXPECT_EQ(a.plan, b.plan);
  EXPECT_NE(a.chunking.total_elements, b.chunking.total_elements);
}

TEST(Planner, KeepsAPlanForEachRootOfARootedOperation) {
  const ChannelRoom rooms[kChannels] = {{4, 4, 4096}, {4, 4, 4096}, {1, 4, 4096}};
  Planner planner(1, by(limits()), rooms);
  for (Operation operation : {Operation::kBroadcast, Operation::kReduce, Operation::kGather, Operation::kScatter}) {
    Collective collective{operation, DataType::kInt8, ReduceOp::kSum, 1, 100};
    const Plan* mine = planner.plan(collective)->plan;
    collective.root = 2;
    EXPECT_NE(planner.plan(collective)->plan, mine) << name_of(operation);
    EXPECT_EQ(planner.plan(collective)->plan->shape().root, 2);
  }
}

TEST(Planner, RefusesARingOnOneSlot) {
  const ChannelRoom rooms[kChannels] = {{4, 1, 4096}, {4, 1, 4096}, {1, 1, 4096}};
  ChoiceLimits forced = limits();
  forced.filter = *parse_selection("ring", "");
  Planner planner(0, by(forced), rooms);
  EXPECT_EQ(planner.plan(all_reduce(10000)).status().code(), Code::kInternal);
}

}  // namespace
}  // namespace talaria
