// Reductions of a communicator's own: ncclRedOpCreatePreMulSum and ncclRedOpDestroy.
#include <array>
#include <string>

#include "api/host_ranks.h"

namespace talaria::test {
namespace {

constexpr int kRanks = 3;

class ReductionTest : public HostRanks {
 protected:
  void SetUp() override { ASSERT_EQ(clique_.result(), ncclSuccess) << ncclGetLastError(nullptr); }

  static ncclRedOp_t make(ncclComm_t comm, float* scalar, ncclScalarResidence_t residence) {
    ncclRedOp_t op = ncclSum;
    EXPECT_EQ(ncclRedOpCreatePreMulSum(&op, scalar, ncclFloat, residence, comm), ncclSuccess)
        << ncclGetLastError(nullptr);
    return op;
  }
  static void expect_error(ncclResult_t result, const std::string& text) {
    EXPECT_EQ(result, ncclInvalidArgument);
    EXPECT_NE(std::string(ncclGetLastError(nullptr)).find(text), std::string::npos) << ncclGetLastError(nullptr);
  }

  Clique clique_{kRanks};
};

// 1·2 + 10·3 + 100·4 on every rank, by scalars that differ; `change` is what happens between the call and its run.
template <typename Change>
void expect_sum(const Clique& clique, const std::array<ncclRedOp_t, kRanks>& ops, float expected, Change change) {
  std::array<float, kRanks> inputs = {1, 10, 100}, outputs{};
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int r = 0; r < kRanks; ++r) {
    ASSERT_EQ(ncclAllReduce(&inputs[r], &outputs[r], 1, ncclFloat, ops[r], clique[r], nullptr), ncclSuccess);
  }
  change();
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
  for (int r = 0; r < kRanks; ++r) EXPECT_EQ(outputs[r], expected) << "rank " << r;
}

// B-48
TEST_F(ReductionTest, ImmediateScalarsAreCopiedWhenMade) {
  std::array<float, kRanks> scalars = {2, 3, 4};
  std::array<ncclRedOp_t, kRanks> ops;
  for (int r = 0; r < kRanks; ++r) ops[r] = make(clique_[r], &scalars[r], ncclScalarHostImmediate);
  scalars = {0, 0, 0};
  expect_sum(clique_, ops, 432, [] {});
}

// B-48
TEST_F(ReductionTest, DeviceScalarsAreReadWhenTheOperationRuns) {
  std::array<float, kRanks> scalars = {0, 0, 0};
  std::array<ncclRedOp_t, kRanks> ops;
  for (int r = 0; r < kRanks; ++r) ops[r] = make(clique_[r], &scalars[r], ncclScalarDevice);
  expect_sum(clique_, ops, 432, [&] { scalars = {2, 3, 4}; });
  expect_sum(clique_, ops, 321, [&] { scalars = {1, 2, 3}; });
}

TEST_F(ReductionTest, WhatWasStartedOutlivesItsReduction) {
  float scalar = 2;
  std::array<ncclRedOp_t, kRanks> ops;
  for (int r = 0; r < kRanks; ++r) ops[r] = make(clique_[r], &scalar, ncclScalarHostImmediate);
  expect_sum(clique_, ops, 222, [&] {
    for (int r = 0; r < kRanks; ++r) EXPECT_EQ(ncclRedOpDestroy(ops[r], clique_[r]), ncclSuccess);
  });
}

TEST_F(ReductionTest, HandlesAreNoBuiltinsAndAllDifferent) {
  float scalar = 1;
  std::vector<ncclRedOp_t> ops;
  for (int i = 0; i < 100; ++i) ops.push_back(make(clique_[i % kRanks], &scalar, ncclScalarHostImmediate));
  for (size_t i = 0; i < ops.size(); ++i) {
    EXPECT_GE(static_cast<int>(ops[i]), static_cast<int>(ncclNumOps));
    for (size_t j = 0; j < i; ++j) EXPECT_NE(ops[i], ops[j]);
  }
}

// B-48
TEST_F(ReductionTest, ForeignDestroyedAndMismatchedHandlesAreRefused) {
  float scalar = 1, value = 1;
  const ncclRedOp_t op = make(clique_[0], &scalar, ncclScalarHostImmediate);
  const std::string unknown = std::to_string(static_cast<int>(op)) + " is no reduction of this communicator";
  expect_error(ncclAllReduce(&value, &value, 1, ncclFloat, op, clique_[1], nullptr), unknown);
  expect_error(ncclRedOpDestroy(op, clique_[1]), unknown);
  expect_error(ncclAllReduce(&value, &value, 1, ncclInt, op, clique_[0], nullptr),
               "was made for datatype float, not for int32");
  EXPECT_EQ(ncclRedOpDestroy(op, clique_[0]), ncclSuccess);
  expect_error(ncclRedOpDestroy(op, clique_[0]), unknown);
  expect_error(ncclReduce(&value, &value, 1, ncclFloat, op, 0, clique_[0], nullptr), unknown);
}

// B-48
TEST_F(ReductionTest, BuiltinsAndGarbageCannotBeDestroyed) {
  for (int builtin = 0; builtin < ncclNumOps; ++builtin) {
    expect_error(ncclRedOpDestroy(static_cast<ncclRedOp_t>(builtin), clique_[0]),
                 "cannot be destroyed");
  }
  for (int garbage : {-1, 5, 1 << 30, 0x7fffffff}) {
    expect_error(ncclRedOpDestroy(static_cast<ncclRedOp_t>(garbage), clique_[0]), "is no reduction");
  }
}

TEST_F(ReductionTest, WrongArgumentsAreNamed) {
  float scalar = 1;
  ncclRedOp_t op = ncclSum;
  ncclComm_t comm = clique_[0];
  const auto create = [&](ncclRedOp_t* out, void* value, int type, int residence) {
    return ncclRedOpCreatePreMulSum(out, value, static_cast<ncclDataType_t>(type),
                                    static_cast<ncclScalarResidence_t>(residence), comm);
  };
  expect_error(create(nullptr, &scalar, ncclFloat, 1), "RedOpCreatePreMulSum : op argument is NULL");
  expect_error(create(&op, nullptr, ncclFloat, 1), "RedOpCreatePreMulSum : scalar argument is NULL");
  expect_error(create(&op, &scalar, ncclNumTypes, 1), "RedOpCreatePreMulSum : 12 is no datatype (0..11)");
  expect_error(create(&op, &scalar, ncclFloat, 2), "RedOpCreatePreMulSum : 2 is no scalar residence");
  comm = nullptr;
  expect_error(create(&op, &scalar, ncclFloat, 1), "RedOpCreatePreMulSum : comm argument is NULL");
  expect_error(ncclRedOpDestroy(ncclSum, nullptr), "RedOpDestroy : comm argument is NULL");
  EXPECT_EQ(op, ncclSum);
}

}  // namespace
}  // namespace talaria::test
