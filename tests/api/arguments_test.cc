// What the operations answer to wrong arguments, and that the communicator works afterwards.
#include <cstdint>
#include <string>

#include "api/host_ranks.h"

namespace talaria::test {
namespace {

// The arguments of any operation; each row of kOperations takes what it has a parameter for.
struct Arguments {
  const void* input;
  void* output;
  size_t count = 4;
  int type = ncclFloat32;
  int reduction = ncclSum;
  int root = 0;
  ncclComm_t comm;

  ncclDataType_t datatype() const { return static_cast<ncclDataType_t>(type); }
  ncclRedOp_t op() const { return static_cast<ncclRedOp_t>(reduction); }
};

struct OperationRow {
  const char* name;
  bool reduces, has_root, reads, writes;
  ncclResult_t (*call)(const Arguments&);
};

constexpr OperationRow kOperations[] = {
    {"AllReduce", true, false, true, true,
     [](const Arguments& a) {
       return ncclAllReduce(a.input, a.output, a.count, a.datatype(), a.op(), a.comm, nullptr);
     }},
    {"ReduceScatter", true, false, true, true,
     [](const Arguments& a) {
       return ncclReduceScatter(a.input, a.output, a.count, a.datatype(), a.op(), a.comm, nullptr);
     }},
    {"AllGather", false, false, true, true,
     [](const Arguments& a) { return ncclAllGather(a.input, a.output, a.count, a.datatype(), a.comm, nullptr); }},
    {"Broadcast", false, true, true, true,
     [](const Arguments& a) {
       return ncclBroadcast(a.input, a.output, a.count, a.datatype(), a.root, a.comm, nullptr);
     }},
    {"Bcast", false, true, false, true,
     [](const Arguments& a) { return ncclBcast(a.output, a.count, a.datatype(), a.root, a.comm, nullptr); }},
    {"Reduce", true, true, true, true,
     [](const Arguments& a) {
       return ncclReduce(a.input, a.output, a.count, a.datatype(), a.op(), a.root, a.comm, nullptr);
     }},
    {"AlltoAll", false, false, true, true,
     [](const Arguments& a) { return ncclAlltoAll(a.input, a.output, a.count, a.datatype(), a.comm, nullptr); }},
    {"Gather", false, true, true, true,
     [](const Arguments& a) { return ncclGather(a.input, a.output, a.count, a.datatype(), a.root, a.comm, nullptr); }},
    {"Scatter", false, true, true, true,
     [](const Arguments& a) { return ncclScatter(a.input, a.output, a.count, a.datatype(), a.root, a.comm, nullptr); }},
    {"Send", false, true, true, false,
     [](const Arguments& a) { return ncclSend(a.input, a.count, a.datatype(), a.root, a.comm, nullptr); }},
    {"Recv", false, true, false, true,
     [](const Arguments& a) { return ncclRecv(a.output, a.count, a.datatype(), a.root, a.comm, nullptr); }},
};

class ArgumentsTest : public HostRanks {
 protected:
  void SetUp() override { ASSERT_EQ(clique_.result(), ncclSuccess) << ncclGetLastError(nullptr); }
  // A wrong argument must cost nothing but the call.
  void TearDown() override {
    float in[3] = {1, 2, 3}, out[3] = {};
    EXPECT_EQ(ncclAllReduce(in, out, 3, ncclFloat32, ncclSum, clique_[0], nullptr), ncclSuccess);
    EXPECT_EQ(out[2], 3);
    ncclResult_t error = ncclInternalError;
    EXPECT_EQ(ncclCommGetAsyncError(clique_[0], &error), ncclSuccess);
    EXPECT_EQ(error, ncclSuccess);
  }
  Arguments good() {
    return {.input = in_, .output = out_, .comm = clique_[0]};
  }
  static void expect(ncclResult_t wanted, ncclResult_t got, const std::string& text) {
    EXPECT_EQ(got, wanted) << text;
    EXPECT_EQ(ncclGetLastError(nullptr), text);
  }

  Clique clique_{1};
  double in_[8] = {}, out_[8] = {};
};

TEST_F(ArgumentsTest, NullCommunicator) {
  for (const OperationRow& row : kOperations) {
    Arguments bad = good();
    bad.comm = nullptr;
    expect(ncclInvalidArgument, row.call(bad), std::string(row.name) + " : comm argument is NULL");
  }
}

TEST_F(ArgumentsTest, ForeignHandle) {
  alignas(64) char memory[4096] = {};
  for (const OperationRow& row : kOperations) {
    Arguments bad = good();
    bad.comm = reinterpret_cast<ncclComm_t>(memory);
    expect(ncclInvalidArgument, row.call(bad), "Error: corrupted comm object detected");
  }
}

TEST_F(ArgumentsTest, DatatypeOutOfRange) {
  for (const OperationRow& row : kOperations) {
    for (int type : {-1, static_cast<int>(ncclNumTypes), 1 << 30}) {
      Arguments bad = good();
      bad.type = type;
      expect(ncclInvalidArgument, row.call(bad),
             std::string(row.name) + " : " + std::to_string(type) + " is no datatype (0..11)");
    }
  }
}

TEST_F(ArgumentsTest, ReductionOutOfRange) {
  for (const OperationRow& row : kOperations) {
    if (!row.reduces) continue;
    for (int reduction : {-2, -1, static_cast<int>(ncclNumOps), 1 << 30}) {
      Arguments bad = good();
      bad.reduction = reduction;
      expect(ncclInvalidArgument, row.call(bad),
             std::to_string(reduction) +
                 " is no reduction of this communicator (0..4, or one that ncclRedOpCreatePreMulSum made on it)");
    }
  }
}

TEST_F(ArgumentsTest, RootOutOfRange) {
  for (const OperationRow& row : kOperations) {
    if (!row.has_root) continue;
    for (int root : {-1, 1, 1 << 30}) {
      Arguments bad = good();
      bad.root = root;
      expect(ncclInvalidArgument, row.call(bad),
             std::string(row.name) + " : rank " + std::to_string(root) + " is outside the communicator (0..0)");
    }
  }
}

TEST_F(ArgumentsTest, NullBuffers) {
  for (const OperationRow& row : kOperations) {
    Arguments no_input = good(), no_output = good();
    no_input.input = nullptr;
    no_output.output = nullptr;
    if (row.reads) {
      expect(ncclInvalidArgument, row.call(no_input), std::string(row.name) + " : sendbuff argument is NULL");
    }
    if (row.writes && row.reads) {
      expect(ncclInvalidArgument, row.call(no_output), std::string(row.name) + " : recvbuff argument is NULL");
    }
    if (row.writes && !row.reads) {
      EXPECT_EQ(row.call(no_output), ncclInvalidArgument) << row.name;
    }
  }
}

TEST_F(ArgumentsTest, CountOfZeroNeedsNoBuffers) {
  for (const OperationRow& row : kOperations) {
    Arguments nothing = good();
    nothing.count = 0;
    nothing.input = nothing.output = nullptr;
    EXPECT_EQ(row.call(nothing), ncclSuccess) << row.name << ": " << ncclGetLastError(nullptr);
  }
}

TEST_F(ArgumentsTest, CountOfZeroIsCheckedLikeAnyOther) {
  for (const OperationRow& row : kOperations) {
    Arguments bad = good();
    bad.count = 0;
    bad.type = 77;
    EXPECT_EQ(row.call(bad), ncclInvalidArgument) << row.name;
  }
}

TEST_F(ArgumentsTest, MoreThanMemoryHolds) {
  for (const OperationRow& row : kOperations) {
    for (size_t count : {SIZE_MAX, SIZE_MAX / 4, SIZE_MAX / 4 + 1, SIZE_MAX / 8 + 1}) {
      Arguments bad = good();
      bad.count = count;
      expect(ncclInvalidArgument, row.call(bad),
             std::string(row.name) + " : " + std::to_string(count) + " elements of 4 bytes do not fit into memory");
    }
  }
}

TEST_F(ArgumentsTest, EveryReductionIsTaken) {
  for (const OperationRow& row : kOperations) {
    if (!row.reduces) continue;
    for (int reduction = 0; reduction < ncclNumOps; ++reduction) {
      Arguments any = good();
      any.reduction = reduction;
      EXPECT_EQ(row.call(any), ncclSuccess) << row.name << " " << reduction << ": " << ncclGetLastError(nullptr);
    }
  }
}

TEST_F(ArgumentsTest, EveryTypeIsReduced) {
  for (const OperationRow& row : kOperations) {
    if (!row.reduces) continue;
    for (int type = 0; type < ncclNumTypes; ++type) {
      Arguments any = good();
      any.type = type;
      EXPECT_EQ(row.call(any), ncclSuccess) << row.name << " " << type << ": " << ncclGetLastError(nullptr);
    }
  }
}

TEST_F(ArgumentsTest, EveryTypeCanBeMoved) {
  for (int type = 0; type < ncclNumTypes; ++type) {
    Arguments any = good();
    any.type = type;
    for (const OperationRow& row : kOperations) {
      if (row.reduces || std::string(row.name) == "Send" || std::string(row.name) == "Recv") continue;
      EXPECT_EQ(row.call(any), ncclSuccess) << row.name << " of type " << type << ": " << ncclGetLastError(nullptr);
    }
  }
}

// Root 1 of two ranks: rank 0 passes null for the buffer that it does not use, and for no other.
class RootedBuffersTest : public HostRanks {
 protected:
  void SetUp() override { ASSERT_EQ(clique_.result(), ncclSuccess) << ncclGetLastError(nullptr); }
  Clique clique_{2};
  int in_[2][2] = {{1, 2}, {3, 4}}, out_[2] = {};
};

TEST_F(RootedBuffersTest, ReduceWritesTheRootOnly) {
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclReduce(in_[0], nullptr, 2, ncclInt, ncclSum, 1, clique_[0], nullptr), ncclSuccess);
  EXPECT_EQ(ncclReduce(in_[1], out_, 2, ncclInt, ncclSum, 1, clique_[1], nullptr), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
  EXPECT_EQ(out_[0], 4);
  EXPECT_EQ(out_[1], 6);
  EXPECT_EQ(ncclReduce(in_[1], nullptr, 2, ncclInt, ncclSum, 1, clique_[1], nullptr), ncclInvalidArgument);
}

TEST_F(RootedBuffersTest, GatherWritesTheRootOnly) {
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclGather(in_[0], nullptr, 1, ncclInt, 1, clique_[0], nullptr), ncclSuccess);
  EXPECT_EQ(ncclGather(in_[1], out_, 1, ncclInt, 1, clique_[1], nullptr), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
  EXPECT_EQ(out_[0], 1);
  EXPECT_EQ(out_[1], 3);
  EXPECT_EQ(ncclGather(in_[1], nullptr, 1, ncclInt, 1, clique_[1], nullptr), ncclInvalidArgument);
}

TEST_F(RootedBuffersTest, ScatterReadsTheRootOnly) {
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclScatter(nullptr, &out_[0], 1, ncclInt, 1, clique_[0], nullptr), ncclSuccess);
  EXPECT_EQ(ncclScatter(in_[1], &out_[1], 1, ncclInt, 1, clique_[1], nullptr), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
  EXPECT_EQ(out_[0], 3);
  EXPECT_EQ(out_[1], 4);
  EXPECT_EQ(ncclScatter(nullptr, &out_[1], 1, ncclInt, 1, clique_[1], nullptr), ncclInvalidArgument);
}

TEST_F(RootedBuffersTest, AlltoAllTransposes) {
  int out[2][2] = {};
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ncclAlltoAll(in_[rank], out[rank], 1, ncclInt, clique_[rank], nullptr), ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
  for (int rank = 0; rank < 2; ++rank) {
    for (int from = 0; from < 2; ++from) EXPECT_EQ(out[rank][from], in_[from][rank]);
  }
}

}  // namespace
}  // namespace talaria::test
