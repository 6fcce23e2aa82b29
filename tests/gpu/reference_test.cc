// Bit equality with the simulator on random floats, where the order of additions and every rounding shows.
//
// The simulator runs the plan of the same name on virtual ranks; how the engine cuts messages does not enter the sums.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <tuple>

#include "gpu/elements.h"
#include "gpu/world.h"
#include "sim/expected.h"

namespace talaria::gpu_test {
namespace {

constexpr sim::ExactCall kNoCall{};
constexpr ChannelRoom kRoom{8, 4, 32768};
constexpr DataType kFloats[] = {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat32, DataType::kFloat64};

// Finite numbers of either sign within six powers of two, all mantissa bits random.
std::vector<std::byte> random_floats(DataType type, size_t count, std::mt19937_64& random) {
  struct Format {
    int mantissa, bias;
  };
  const Format format = type == DataType::kFloat16   ? Format{10, 15}
                        : type == DataType::kBfloat16 ? Format{7, 127}
                        : type == DataType::kFloat32  ? Format{23, 127}
                                                      : Format{52, 1023};
  const size_t size = bytes_of(type);
  std::vector<std::byte> block(count * size);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t word = random();
    const uint64_t exponent = static_cast<uint64_t>(format.bias) - 3 + (word >> 58) % 6;
    const uint64_t bits = (word >> 57 & 1) << (8 * size - 1) | exponent << format.mantissa |
                          (word & ((uint64_t{1} << format.mantissa) - 1));
    std::memcpy(block.data() + i * size, &bits, size);  // little endian: the low bytes
  }
  return block;
}

// A world whose communicator was told which algorithm and protocol to use.
std::unique_ptr<World> forced_world(uint32_t nranks, const char* algorithm, const char* protocol) {
  setenv("NCCL_ALGO", algorithm, 1);
  setenv("NCCL_PROTO", protocol, 1);
  auto world = World::create(nranks);
  unsetenv("NCCL_ALGO");
  unsetenv("NCCL_PROTO");
  return world;
}

void compare(World& world, const sim::ExactCall& call) {
  const Collective& collective = call.collective;
  const bool scatter = collective.operation == Operation::kReduceScatter;
  const bool rooted = collective.operation == Operation::kReduce;
  const size_t size = bytes_of(collective.type);
  const size_t send_count = scatter ? collective.count * call.nranks : collective.count;
  std::mt19937_64 random(run_seed() + send_count);
  std::vector<std::vector<std::byte>> inputs;
  for (uint32_t r = 0; r < call.nranks; ++r) inputs.push_back(random_floats(collective.type, send_count, random));
  const sim::Simulated wanted = sim::simulate(call, inputs);
  ASSERT_TRUE(wanted.ok) << wanted.text;

  world.reserve(send_count * size);
  world.run([&](Rank& rank) {
    CUstream stream = rank.stream->get();
    rank.send->write(0, inputs[rank.rank], stream);
    const ncclDataType_t type = nccl_type(collective.type);
    const ncclRedOp_t op = nccl_op(collective.reduce);
    void* in = rank.send->data();
    void* out = rank.receive->data();
    const size_t count = collective.count;
    succeeded(scatter  ? ncclReduceScatter(in, out, count, type, op, rank.comm, stream)
              : rooted ? ncclReduce(in, out, count, type, op, collective.root, rank.comm, stream)
                       : ncclAllReduce(in, out, count, type, op, rank.comm, stream),
              "the collective");
    if (rooted && rank.rank != static_cast<uint32_t>(collective.root)) {
      rank.finish();
      return;
    }
    std::vector<std::byte> got(collective.count * size);
    rank.receive->read(0, got, stream);
    if (!rank.finish()) return;
    const std::vector<std::byte>& mine = wanted.outputs[rank.rank];
    ASSERT_GE(mine.size(), got.size());
    EXPECT_EQ(first_difference(got.data(), mine.data(), got.size()), "")
        << call.algorithm << " " << name_of(collective.operation) << " " << traits_of(collective.type).name << " op "
        << static_cast<int>(collective.reduce) << " count " << collective.count << " rank " << rank.rank << " of "
        << call.nranks << " seed " << run_seed();
  });
}

using Parameters = std::tuple<const char*, const char*, uint32_t>;
class Reference : public NeedsGpu<testing::TestWithParam<Parameters>> {};

TEST_P(Reference, RandomFloatsEqualTheSimulatorBitForBit) {
  const auto [algorithm, protocol, nranks] = GetParam();
  const std::unique_ptr<World> world = forced_world(nranks, algorithm, protocol);
  ASSERT_NE(world, nullptr);
  size_t compared = 0;
  for (const Operation operation : {Operation::kAllReduce, Operation::kReduceScatter, Operation::kReduce}) {
    const Algorithm* row = find_algorithm(algorithm);
    ASSERT_NE(row, nullptr);
    if (!row->serves(operation, nranks, Form::kStaged)) continue;
    for (const DataType type : kFloats) {
      for (const ReduceOp reduce : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kAvg}) {
        for (const uint64_t count : {1u, 999u, 50021u}) {
          sim::ExactCall call = kNoCall;
          call.algorithm = algorithm;
          call.collective = Collective{operation, type, reduce, 0, count};
          call.nranks = nranks;
          call.form = Form::kStaged;
          call.room = kRoom;
          compare(*world, call);
          if (HasFailure()) return world->break_up();
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 0u);
}

std::string name_parameters(const testing::TestParamInfo<Parameters>& info) {
  return fmt::format("{}_{}_{}_ranks", std::get<0>(info.param), std::get<1>(info.param), std::get<2>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Gpu, Reference,
                         testing::Combine(testing::Values("ring", "tree", "one_shot", "two_shot"),
                                          testing::Values("packet", "bulk"), testing::Values(2u, 3u, 5u, 8u)),
                         name_parameters);

}  // namespace
}  // namespace talaria::gpu_test
