#include "schedule/chunking.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "schedule/algorithm.h"

namespace talaria {
namespace {

const DataType kTypes[] = {DataType::kInt8, DataType::kFloat16, DataType::kFloat32, DataType::kFloat64};

// Every element of every block belongs to exactly one piece.
void expect_partition(const Collective& collective, uint32_t nranks, uint32_t blocks, uint32_t lanes, uint64_t slot) {
  SCOPED_TRACE(testing::Message() << name_of(collective.operation) << " count " << collective.count << " nranks "
                                  << nranks << " blocks " << blocks << " lanes " << lanes << " slot " << slot);
  const Chunking chunking = chunking_for(collective, nranks, blocks, lanes, slot);
  ASSERT_LE(chunking.lanes, lanes);
  ASSERT_LE(chunking.piece * bytes_of(collective.type), slot);
  std::vector<uint32_t> seen(chunking.total_elements);
  for (uint32_t block = 0; block < blocks; ++block) {
    for (uint32_t lane = 0; lane < chunking.lanes; ++lane) {
      for (uint32_t round = 0; round < chunking.rounds; ++round) {
        const Piece piece = piece_of(chunking, block, lane, round);
        for (uint64_t i = 0; i < piece.count; ++i) ++seen.at(block * chunking.block_elements + piece.first + i);
      }
    }
  }
  for (uint64_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], 1u) << "element " << i;
}

TEST(Chunking, PiecesPartitionEveryBlock) {
  std::mt19937_64 random(20260101);
  for (int trial = 0; trial < 400; ++trial) {
    const uint32_t nranks = 2 + random() % 16;
    const DataType type = kTypes[random() % 4];
    const Operation operation = static_cast<Operation>(random() % kCollectives);
    const bool either = operation == Operation::kAllReduce || operation == Operation::kReduce;
    const bool whole = operation == Operation::kBroadcast || (either && random() % 2 == 0);
    const Collective collective{operation, type, ReduceOp::kSum, 0, random() % 5000};
    expect_partition(collective, nranks, whole ? 1 : nranks, 1 + random() % 8, 16 * (1 + random() % 64));
  }
}

TEST(Chunking, FewerElementsThanRanksLeaveEmptyBlocks) {
  const Collective collective{Operation::kAllReduce, DataType::kFloat32, ReduceOp::kSum, 0, 5};
  const Chunking chunking = chunking_for(collective, 8, 8, 4, 1024);
  EXPECT_EQ(piece_of(chunking, 0, 0, 0).count, 4u);
  EXPECT_EQ(piece_of(chunking, 1, 0, 0).count, 1u);
  for (uint32_t block = 2; block < 8; ++block) EXPECT_EQ(piece_of(chunking, block, 0, 0).count, 0u);
}

TEST(Chunking, AlignedBuffersStayAlignedInEveryPiece) {
  for (DataType type : kTypes) {
    const Collective collective{Operation::kAllReduce, type, ReduceOp::kSum, 0, 100003};
    const Chunking chunking = chunking_for(collective, 3, 3, 16, 4096);
    EXPECT_EQ(chunking.piece * bytes_of(type) % 16, 0u);
    EXPECT_EQ(chunking.input_stride * bytes_of(type) % 16, 0u);
  }
}

TEST(Chunking, OffsetsBeyondThirtyTwoBitsAreExact) {
  const Collective collective{Operation::kAllGather, DataType::kInt8, ReduceOp::kNone, 0, (1ull << 32) + 5};
  const Chunking chunking = chunking_for(collective, 4, 4, 64, 32768);
  const Piece last = piece_of(chunking, 3, 0, chunking.rounds - 1);
  ASSERT_GT(last.count, 0u);
  EXPECT_GT(output_offset(chunking, 3, last), (4ull << 32) - (64ull << 15));
  EXPECT_LE(output_offset(chunking, 3, last) + last.count, chunking.total_elements);
}

}  // namespace
}  // namespace talaria
