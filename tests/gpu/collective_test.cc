// Collectives: every operation, type and reduction over sizes, alignments and places, eager and in graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "gpu/elements.h"
#include "gpu/world.h"
#include "schedule/collective.h"

namespace talaria::gpu_test {
namespace {

constexpr size_t kGuard = 256;
constexpr unsigned char kGuardByte = 0xa5;

struct Case {
  Operation operation;
  DataType type;
  ReduceOp reduce;
  size_t count;      // as in the API call
  bool in_place;
  size_t shift;      // elements by which both buffers miss 16-byte alignment
  bool graph;
  uint32_t root = 0;

  size_t size() const { return bytes_of(type); }
  // (All-)gather collects blocks, (reduce-)scatter hands them out, all-to-all does both.
  bool collects() const { return operation == Operation::kAllGather || operation == Operation::kGather; }
  bool hands_out() const { return operation == Operation::kReduceScatter || operation == Operation::kScatter; }
  bool exchanges() const { return operation == Operation::kAlltoAll; }
  size_t send_count(uint32_t n) const { return hands_out() || exchanges() ? count * n : count; }
  size_t receive_count(uint32_t n) const { return collects() || exchanges() ? count * n : count; }
  bool has_result(uint32_t rank) const { return writes_output(operation, rank == root); }
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << name_of(c.operation) << " " << traits_of(c.type).name << " op " << static_cast<int>(c.reduce)
             << " count " << c.count << (c.in_place ? " in place" : "") << " shift " << c.shift
             << (c.graph ? " graph" : " eager") << " root " << c.root;
}

// The case's reduction as one rank names it; PreMulSum is an operator of its communicator.
class Operator {
 public:
  Operator(const Case& c, const Rank& rank) : comm_(rank.comm) {
    made_ = c.reduce == ReduceOp::kPreMulSum;
    if (!made_) {
      op_ = nccl_op(c.reduce);
      return;
    }
    alignas(8) std::byte scalar[8];
    store(scalar, c.type, scalar_value(rank.rank, c.type));
    succeeded(ncclRedOpCreatePreMulSum(&op_, scalar, nccl_type(c.type), ncclScalarHostImmediate, comm_),
              "ncclRedOpCreatePreMulSum");
  }
  ~Operator() {
    if (made_) succeeded(ncclRedOpDestroy(op_, comm_), "ncclRedOpDestroy");
  }
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;
  ncclRedOp_t get() const { return op_; }

 private:
  ncclComm_t comm_;
  ncclRedOp_t op_ = ncclSum;
  bool made_;
};

ncclResult_t call(const Case& c, const void* in, void* out, ncclRedOp_t op, const Rank& rank) {
  const ncclDataType_t type = nccl_type(c.type);
  CUstream stream = rank.stream->get();
  switch (c.operation) {
    case Operation::kAllReduce: return ncclAllReduce(in, out, c.count, type, op, rank.comm, stream);
    case Operation::kAllGather: return ncclAllGather(in, out, c.count, type, rank.comm, stream);
    case Operation::kReduceScatter:
      return ncclReduceScatter(in, out, c.count, type, op, rank.comm, stream);
    case Operation::kReduce:
      return ncclReduce(in, out, c.count, type, op, static_cast<int>(c.root), rank.comm, stream);
    case Operation::kAlltoAll: return ncclAlltoAll(in, out, c.count, type, rank.comm, stream);
    case Operation::kGather:
      return ncclGather(in, out, c.count, type, static_cast<int>(c.root), rank.comm, stream);
    case Operation::kScatter:
      return ncclScatter(in, out, c.count, type, static_cast<int>(c.root), rank.comm, stream);
    default: return ncclBroadcast(in, out, c.count, type, static_cast<int>(c.root), rank.comm, stream);
  }
}

std::vector<std::byte> expected(const Case& c, const Rank& rank, uint64_t seed) {
  switch (c.operation) {
    case Operation::kAllReduce:
    case Operation::kReduce: return reduced_block({seed, rank.nranks, c.type, c.reduce}, 0, c.count);
    case Operation::kReduceScatter:
      return reduced_block({seed, rank.nranks, c.type, c.reduce}, rank.rank * c.count, c.count);
    case Operation::kBroadcast: return input_block(seed, c.root, 0, c.count, c.type);
    case Operation::kScatter: return input_block(seed, c.root, rank.rank * c.count, c.count, c.type);
    default: {
      const size_t first = c.exchanges() ? rank.rank * c.count : 0;
      std::vector<std::byte> all;
      for (uint32_t r = 0; r < rank.nranks; ++r) {
        const auto part = input_block(seed, r, first, c.count, c.type);
        all.insert(all.end(), part.begin(), part.end());
      }
      return all;
    }
  }
}

// Where a case's data lies in a rank's buffers: guard | data | guard.
struct Layout {
  Layout(const Case& c, const Rank& rank)
      : lead(kGuard + c.shift * c.size()),
        send_bytes(c.send_count(rank.nranks) * c.size()),
        receive_bytes(c.receive_count(rank.nranks) * c.size()),
        total(lead + std::max(send_bytes, receive_bytes) + kGuard),
        in(lead),
        out(lead),
        output(c.in_place ? rank.send.get() : rank.receive.get()) {
    // In place, the smaller side lies at this rank's part of the larger one.
    if (c.in_place && c.collects()) in += rank.rank * send_bytes;
    if (c.in_place && c.hands_out()) out += rank.rank * receive_bytes;
  }

  size_t lead, send_bytes, receive_bytes, total;
  size_t in, out;  // offsets
  Buffer* output;
};

size_t bytes_for(const Case& c, uint32_t nranks) {
  return 2 * kGuard + (c.shift + std::max(c.send_count(nranks), c.receive_count(nranks))) * c.size();
}

// Writes this rank's input and a known byte everywhere else.
void fill_buffers(const Case& c, const Rank& rank, uint64_t seed) {
  const Layout layout(c, rank);
  rank.send->fill(layout.total, kGuardByte, rank.stream->get());
  rank.receive->fill(layout.total, kGuardByte, rank.stream->get());
  const auto data = input_block(seed, rank.rank, 0, c.send_count(rank.nranks), c.type);
  rank.send->write(layout.in, data, rank.stream->get());
  rank.finish();
}

void expect_result(const Case& c, const Rank& rank, uint64_t seed) {
  if (!c.has_result(rank.rank)) {
    rank.finish();
    return;
  }
  const Layout layout(c, rank);
  std::vector<std::byte> image(layout.total);
  layout.output->read(0, image, rank.stream->get());
  if (!rank.finish()) return;
  const std::vector<std::byte> wanted = expected(c, rank, seed);
  ASSERT_EQ(wanted.size(), layout.receive_bytes);
  EXPECT_EQ(first_difference(image.data() + layout.out, wanted.data(), wanted.size()), "")
      << c << " rank " << rank.rank << " of " << rank.nranks << " seed " << run_seed();
  const std::vector<std::byte> guard(kGuard, std::byte{kGuardByte});
  EXPECT_EQ(first_difference(image.data() + layout.lead - kGuard, guard.data(), kGuard), "") << c << ": guard in front";
  EXPECT_EQ(first_difference(image.data() + layout.total - kGuard, guard.data(), kGuard), "") << c << ": guard behind";
}

// Runs one case on one rank; in graphs twice, with fresh inputs for the replay.
void run_case(const Case& c, Rank& rank, uint64_t seed) {
  const Layout layout(c, rank);
  const Operator op(c, rank);
  const auto issue = [&] {
    succeeded(call(c, rank.send->data() + layout.in, layout.output->data() + layout.out, op.get(), rank),
              "the collective");
  };
  fill_buffers(c, rank, seed);
  if (!c.graph) {
    issue();
    return expect_result(c, rank, seed);
  }
  const Graph graph = Graph::capture(rank.stream->get(), issue);
  for (uint64_t replay = 0; replay < 2; ++replay) {
    if (replay > 0) fill_buffers(c, rank, seed + replay);
    graph.launch(rank.stream->get());
    expect_result(c, rank, seed + replay);
  }
}

std::vector<size_t> counts_for(Operation operation, DataType type, uint32_t nranks) {
  const size_t mega = (1u << 20) / bytes_of(type);
  std::vector<size_t> counts = {0, 1, 7, 1031, 33333, mega - 1, mega, mega + 1};
  if (counts_per_rank(operation)) {
    for (size_t& count : counts) {
      if (count > 1031) count = count / nranks + 1;
    }
  }
  return counts;
}

std::vector<Case> cases_for(Operation operation, DataType type, ReduceOp reduce, uint32_t nranks) {
  std::vector<Case> cases;
  size_t turn = 0;
  for (const size_t count : counts_for(operation, type, nranks)) {
    for (const bool in_place : {false, true}) {
      if (in_place && operation == Operation::kAlltoAll) continue;  // NCCL has no such call
      for (const bool graph : {false, true}) {
        for (const size_t shift : {size_t{0}, 1 + turn % 3}) {
          cases.push_back({operation, type, reduce, count, in_place, shift, graph, uint32_t(turn % nranks)});
          ++turn;
        }
      }
    }
  }
  return cases;
}

void run_cases(const std::vector<Case>& cases, uint32_t nranks) {
  World* world = World::shared(nranks);
  ASSERT_NE(world, nullptr);
  ASSERT_FALSE(cases.empty());
  for (const Case& c : cases) world->reserve(bytes_for(c, nranks));
  world->run([&](Rank& rank) {
    uint64_t seed = run_seed();
    for (const Case& c : cases) {
      if (testing::Test::HasFailure()) return;
      run_case(c, rank, seed += 16);
    }
  });
  if (testing::Test::HasFailure()) world->break_up();
}

using Parameters = std::tuple<uint32_t, DataType>;
class Collective : public NeedsGpu<testing::TestWithParam<Parameters>> {};

std::string name_parameters(const testing::TestParamInfo<Parameters>& info) {
  return std::to_string(std::get<0>(info.param)) + "_ranks_" + traits_of(std::get<1>(info.param)).name;
}

TEST_P(Collective, AllReduceEqualsTheSumOnEveryRank) {
  const auto [nranks, type] = GetParam();
  run_cases(cases_for(Operation::kAllReduce, type, ReduceOp::kSum, nranks), nranks);
}
TEST_P(Collective, AllReduceEqualsTheMaximumOnEveryRank) {
  const auto [nranks, type] = GetParam();
  run_cases(cases_for(Operation::kAllReduce, type, ReduceOp::kMax, nranks), nranks);
}
TEST_P(Collective, AllReduceEqualsTheAverageOnEveryRank) {
  const auto [nranks, type] = GetParam();
  run_cases(cases_for(Operation::kAllReduce, type, ReduceOp::kAvg, nranks), nranks);
}
TEST_P(Collective, AllReduceEqualsTheSumOfScaledInputs) {
  const auto [nranks, type] = GetParam();
  run_cases(cases_for(Operation::kAllReduce, type, ReduceOp::kPreMulSum, nranks), nranks);
}
TEST_P(Collective, ReduceScatterLeavesEachRankItsPart) {
  const auto [nranks, type] = GetParam();
  for (const ReduceOp reduce :
       {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kAvg, ReduceOp::kPreMulSum}) {
    run_cases(cases_for(Operation::kReduceScatter, type, reduce, nranks), nranks);
    if (HasFailure()) return;
  }
}
TEST_P(Collective, AllGatherCollectsEveryPart) {
  const auto [nranks, type] = GetParam();
  run_cases(cases_for(Operation::kAllGather, type, ReduceOp::kSum, nranks), nranks);
}
TEST_P(Collective, BroadcastCopiesTheRoot) {
  const auto [nranks, type] = GetParam();
  run_cases(cases_for(Operation::kBroadcast, type, ReduceOp::kSum, nranks), nranks);
}
TEST_P(Collective, ReduceLeavesTheResultAtTheRoot) {
  const auto [nranks, type] = GetParam();
  run_cases(cases_for(Operation::kReduce, type, ReduceOp::kSum, nranks), nranks);
}
TEST_P(Collective, AlltoAllExchangesBlocks) {
  const auto [nranks, type] = GetParam();
  run_cases(cases_for(Operation::kAlltoAll, type, ReduceOp::kSum, nranks), nranks);
}
TEST_P(Collective, GatherCollectsEveryPartAtTheRoot) {
  const auto [nranks, type] = GetParam();
  run_cases(cases_for(Operation::kGather, type, ReduceOp::kSum, nranks), nranks);
}
TEST_P(Collective, ScatterHandsOutTheRootsParts) {
  const auto [nranks, type] = GetParam();
  run_cases(cases_for(Operation::kScatter, type, ReduceOp::kSum, nranks), nranks);
}

INSTANTIATE_TEST_SUITE_P(Gpu, Collective,
                         testing::Combine(testing::Values(2u, 4u, 8u), testing::ValuesIn(kTestTypes)),
                         name_parameters);

class LargeCollective : public NeedsGpu<testing::TestWithParam<uint32_t>> {};

TEST_P(LargeCollective, ThirtyTwoMegabytesComeThrough) {
  const uint32_t nranks = GetParam();
  std::vector<Case> cases;
  for (const bool in_place : {false, true}) {
    for (const DataType type : {DataType::kFloat32, DataType::kBfloat16}) {
      const size_t count = (32u << 20) / bytes_of(type) + 1;
      cases.push_back({Operation::kAllReduce, type, ReduceOp::kSum, count, in_place, 0, false});
      cases.push_back({Operation::kAllReduce, type, ReduceOp::kSum, count, in_place, 1, true});
      cases.push_back({Operation::kAllGather, type, ReduceOp::kSum, count / nranks, in_place, 0, false});
      cases.push_back({Operation::kReduceScatter, type, ReduceOp::kSum, count / nranks, in_place, 0, false});
      cases.push_back({Operation::kBroadcast, type, ReduceOp::kSum, count, in_place, 0, false, nranks - 1});
    }
  }
  run_cases(cases, nranks);
}
INSTANTIATE_TEST_SUITE_P(Gpu, LargeCollective, testing::Values(2u, 4u), testing::PrintToStringParamName());

class OneThread : public NeedsGpu<testing::TestWithParam<uint32_t>> {};

// One thread, one group; ranks of a GPU share a stream and so a launch.
TEST_P(OneThread, DrivesAllRanksInOneGroup) {
  const uint32_t nranks = GetParam();
  World* world = World::shared(nranks);
  ASSERT_NE(world, nullptr);
  uint64_t seed = run_seed();
  for (const size_t count : {size_t{1}, size_t{5000}, size_t{300001}}) {
    const Case c{Operation::kAllReduce, DataType::kFloat32, ReduceOp::kSum, count, false, 0, false};
    seed += 16;
    world->reserve(bytes_for(c, nranks));
    world->run([&](Rank& rank) { fill_buffers(c, rank, seed); });
    world->run_in_group([&](Rank& rank) {
      // The first rank of a device lends its stream to the others there.
      const Rank& first = world->ranks()[static_cast<size_t>(rank.device)];
      const Layout layout(c, rank);
      succeeded(ncclAllReduce(rank.send->data() + layout.in, rank.receive->data() + layout.out, count, ncclFloat32,
                              ncclSum, rank.comm, first.stream->get()),
                "ncclAllReduce");
    });
    for (Rank& rank : world->ranks()) rank.finish();
    if (!HasFailure()) world->run([&](Rank& rank) { expect_result(c, rank, seed); });
    if (HasFailure()) return world->break_up();
  }
}
INSTANTIATE_TEST_SUITE_P(Gpu, OneThread, testing::Values(1u, 2u, 4u, 8u), testing::PrintToStringParamName());

}  // namespace
}  // namespace talaria::gpu_test
