#include "schedule/selection_table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "schedule/selector.h"

namespace talaria {
namespace {

constexpr Operation kAllCollectives[] = {Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter,
                                         Operation::kBroadcast, Operation::kAlltoAll,  Operation::kReduce,
                                         Operation::kGather,    Operation::kScatter};

ChoiceLimits limits_of(uint32_t nranks, const char* algorithms = "", const char* protocols = "") {
  ChoiceLimits limits;
  limits.nranks = nranks;
  limits.packets = true;
  limits.one_shot_bytes = 1u << 20;
  limits.one_shot_packet_bytes = 1u << 18;
  limits.packet_bytes = 1u << 17;
  limits.filter = *parse_selection(algorithms, protocols);
  return limits;
}

// The name of the algorithm for `bytes`; "" for none.
std::string chosen(const ChoiceLimits& limits, Operation operation, uint64_t bytes) {
  const Selection selection{limits.nranks, limits.form, fill_selection_table(limits), "", ""};
  const Result<Choice> choice = select({operation, DataType::kInt8, ReduceOp::kSum, 0, bytes}, selection);
  return choice.ok() ? Result<Choice>(choice)->algorithm->name : "";
}

TEST(SelectionTable, EverySizeOfEveryOperationFindsAnAlgorithmThatServesIt) {
  for (const uint32_t nranks : {1u, 2u, 3u, 64u, 10000u}) {
    const ChoiceLimits limits = limits_of(nranks);
    const Selection selection{nranks, Form::kStaged, fill_selection_table(limits), "", ""};
    for (const Operation operation : kAllCollectives) {
      for (int shift = 0; shift < 50; ++shift) {
        const Collective collective{operation, DataType::kInt8, ReduceOp::kSum, 0, uint64_t{1} << shift};
        Result<Choice> choice = select(collective, selection);
        ASSERT_TRUE(choice.ok()) << name_of(operation) << " " << nranks << " ranks, 2^" << shift;
        EXPECT_TRUE(choice->algorithm->serves(operation, nranks, Form::kStaged)) << name_of(operation);
      }
    }
  }
}

TEST(SelectionTable, ClassesAscendToAnySize) {
  for (const char* algorithms : {"", "ring", "ring,one_shot", "^two_shot"}) {
    for (const char* protocols : {"", "LL", "Simple"}) {
      const SelectionTable table = fill_selection_table(limits_of(4, algorithms, protocols));
      for (const auto& classes : table.classes) {
        uint64_t before = 0;
        for (const SizeClass& row : classes) {
          if (before == UINT64_MAX) {
            EXPECT_EQ(row.most_bytes, 0u);
          } else {
            EXPECT_GT(row.most_bytes, before);
            before = row.most_bytes;
          }
        }
        EXPECT_EQ(before, UINT64_MAX) << algorithms << " " << protocols;
      }
    }
  }
}

TEST(SelectionTable, WhatIsExcludedIsReplacedByWhatIsLeft) {
  EXPECT_EQ(chosen(limits_of(4), Operation::kAllReduce, 100), "one_shot");
  EXPECT_EQ(chosen(limits_of(4, "^one_shot"), Operation::kAllReduce, 100), "two_shot");
  EXPECT_EQ(chosen(limits_of(4, "ring,one_shot"), Operation::kAllReduce, 100), "one_shot");
  EXPECT_EQ(chosen(limits_of(4, "ring,one_shot"), Operation::kAllReduce, 1u << 30), "ring");
  EXPECT_EQ(chosen(limits_of(4, "one_shot"), Operation::kAllReduce, 1u << 30), "one_shot");
}

TEST(SelectionTable, RingServesWhatNcclsRingServes) {
  for (const Operation operation : kAllCollectives) {
    const bool moved_only = operation == Operation::kAlltoAll || operation == Operation::kGather ||
                            operation == Operation::kScatter;
    EXPECT_EQ(chosen(limits_of(4, "Ring"), operation, 1000), moved_only ? "pairwise" : "ring") << name_of(operation);
  }
}

// As in NCCL, a tree gathers and scatters nothing: asked for alone, it leaves those operations without an algorithm.
TEST(SelectionTable, TreeReducesAndBroadcasts) {
  for (const Operation operation : {Operation::kAllReduce, Operation::kReduce, Operation::kBroadcast}) {
    EXPECT_EQ(chosen(limits_of(4, "Tree"), operation, 1000), "tree") << name_of(operation);
    EXPECT_EQ(chosen(limits_of(4, "Tree"), operation, 1u << 30), "tree") << name_of(operation);
  }
  EXPECT_EQ(chosen(limits_of(4, "Tree"), Operation::kAllGather, 1000), "");
  EXPECT_EQ(chosen(limits_of(4, "Tree,Ring"), Operation::kAllGather, 1000), "ring");
  EXPECT_EQ(chosen(limits_of(4, "Tree"), Operation::kAlltoAll, 1000), "pairwise");
}

TEST(SelectionTable, OnlyAListThatNamesAlltoAllLeavesItNothing) {
  EXPECT_EQ(chosen(limits_of(4, "NVLS"), Operation::kAllReduce, 1000), "");
  EXPECT_EQ(chosen(limits_of(4, "NVLS"), Operation::kAlltoAll, 1000), "pairwise");
  EXPECT_EQ(chosen(limits_of(4, "alltoall:ring"), Operation::kAlltoAll, 1000), "");
  EXPECT_EQ(chosen(limits_of(4, "alltoall:ring"), Operation::kAllReduce, 1000), "one_shot");
}

TEST(SelectionTable, ProtocolsAreObeyedAtAnySize) {
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{1} << 16, uint64_t{1} << 34}) {
    for (const bool packet : {true, false}) {
      const ChoiceLimits limits = limits_of(4, "", packet ? "LL" : "Simple");
      const Selection selection{4, Form::kStaged, fill_selection_table(limits), "", ""};
      for (const Operation operation : kAllCollectives) {
        Result<Choice> choice = select({operation, DataType::kInt8, ReduceOp::kSum, 0, bytes}, selection);
        ASSERT_TRUE(choice.ok());
        EXPECT_EQ(is_packet(choice->channel), packet) << name_of(operation) << " " << bytes;
      }
    }
  }
}

TEST(SelectionTable, PacketsThatTheEngineDoesNotHaveAreNotAvailable) {
  ChoiceLimits limits = limits_of(4, "", "LL");
  limits.packets = false;
  EXPECT_EQ(chosen(limits, Operation::kAllReduce, 8), "");
  EXPECT_EQ(chosen(limits, Operation::kAlltoAll, 8), "pairwise");
}

TEST(SelectionTable, ARankAloneNeedsNoFilter) {
  EXPECT_NE(chosen(limits_of(1, "Ring", "LL"), Operation::kReduce, 8), "");
}

TEST(SelectionTable, HashTellsTablesApartAndIsNeverZero) {
  const SelectionTable table = fill_selection_table(limits_of(4));
  EXPECT_EQ(hash_of(table), hash_of(fill_selection_table(limits_of(4))));
  EXPECT_NE(hash_of(table), hash_of(fill_selection_table(limits_of(5))));
  EXPECT_NE(hash_of(table), hash_of(fill_selection_table(limits_of(4, "ring"))));
  EXPECT_NE(hash_of(table), hash_of(fill_selection_table(limits_of(4, "", "LL"))));
  EXPECT_NE(hash_of(SelectionTable{}), 0u);
}

}  // namespace
}  // namespace talaria
