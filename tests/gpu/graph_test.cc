// Graphs among eager calls, several streams, and the first call of a communicator inside a capture.
#include <gtest/gtest.h>

#include "gpu/elements.h"
#include "gpu/world.h"

namespace talaria::gpu_test {
namespace {

constexpr size_t kCount = 20011;

class Graphs : public NeedsGpu<testing::TestWithParam<uint32_t>> {};

void issue_all_reduce(Rank& rank, CUstream stream) {
  succeeded(ncclAllReduce(rank.send->data(), rank.receive->data(), kCount, ncclFloat32, ncclSum, rank.comm, stream),
            "ncclAllReduce");
}

void write_inputs(Rank& rank, uint64_t seed, CUstream stream) {
  const auto data = input_block(seed, rank.rank, 0, kCount, DataType::kFloat32);
  rank.send->write(0, data, stream);
  rank.receive->fill(kCount * sizeof(float), 0xcd, stream);
  EXPECT_TRUE(wait_for(stream, kPatienceSeconds));
}

void expect_sums(Rank& rank, uint64_t seed, CUstream stream) {
  std::vector<std::byte> got(kCount * sizeof(float));
  rank.receive->read(0, got, stream);
  ASSERT_TRUE(wait_for(stream, kPatienceSeconds)) << "rank " << rank.rank << " hangs, seed " << run_seed();
  const auto wanted = reduced_block({seed, rank.nranks, DataType::kFloat32, ReduceOp::kSum}, 0, kCount);
  EXPECT_EQ(first_difference(got.data(), wanted.data(), wanted.size()), "")
      << "rank " << rank.rank << " of " << rank.nranks << ", seed " << run_seed();
}

void run_on(World* world, const std::function<void(Rank&)>& body) {
  ASSERT_NE(world, nullptr);
  world->reserve(kCount * sizeof(float));
  world->run(body);
  if (testing::Test::HasFailure()) world->break_up();
}

TEST_P(Graphs, ReplaysAndEagerCallsMix) {
  run_on(World::shared(GetParam()), [](Rank& rank) {
    CUstream stream = rank.stream->get();
    const Graph one = Graph::capture(stream, [&] { issue_all_reduce(rank, stream); });
    const Graph three = Graph::capture(stream, [&] {
      for (int i = 0; i < 3; ++i) issue_all_reduce(rank, stream);
    });
    for (uint64_t round = 0; round < 60 && !testing::Test::HasFailure(); ++round) {
      const uint64_t seed = run_seed() + round;
      write_inputs(rank, seed, stream);
      if (round % 3 == 0) issue_all_reduce(rank, stream);
      else (round % 3 == 1 ? one : three).launch(stream);
      expect_sums(rank, seed, stream);
    }
  });
}

// Nothing but the library orders the second stream behind the first.
TEST_P(Graphs, CallsOnChangingStreamsKeepTheirOrder) {
  run_on(World::shared(GetParam()), [](Rank& rank) {
    Stream other;
    for (uint64_t round = 0; round < 30 && !testing::Test::HasFailure(); ++round) {
      const uint64_t seed = run_seed() + 1000 + round;
      write_inputs(rank, seed, rank.stream->get());
      for (int i = 0; i < 4; ++i) issue_all_reduce(rank, i % 2 == 0 ? rank.stream->get() : other.get());
      expect_sums(rank, seed, other.get());
      if (!rank.finish()) return;
    }
  });
}

TEST_P(Graphs, ReplaysOnAnotherStreamWaitForEagerCalls) {
  run_on(World::shared(GetParam()), [](Rank& rank) {
    Stream other;
    const Graph graph = Graph::capture(other.get(), [&] {
      issue_all_reduce(rank, other.get());
      issue_all_reduce(rank, other.get());
    });
    for (uint64_t round = 0; round < 30 && !testing::Test::HasFailure(); ++round) {
      const uint64_t seed = run_seed() + 2000 + round;
      write_inputs(rank, seed, rank.stream->get());
      issue_all_reduce(rank, rank.stream->get());
      graph.launch(other.get());
      issue_all_reduce(rank, rank.stream->get());
      expect_sums(rank, seed, rank.stream->get());
      if (!wait_for(other.get(), kPatienceSeconds)) ADD_FAILURE() << "a replay hangs";
    }
  });
}

TEST_P(Graphs, FirstCallMayBeInsideACapture) {
  const std::unique_ptr<World> world = World::create(GetParam());
  run_on(world.get(), [](Rank& rank) {
    CUstream stream = rank.stream->get();
    const Graph graph = Graph::capture(stream, [&] { issue_all_reduce(rank, stream); });
    write_inputs(rank, run_seed(), stream);
    graph.launch(stream);
    expect_sums(rank, run_seed(), stream);
  });
}

// The strictest mode, every rank in one thread: nothing that the first call does may disturb the captures.
TEST_P(Graphs, OneThreadCapturesAllRanksInGlobalMode) {
  const std::unique_ptr<World> world = World::create(GetParam());
  ASSERT_NE(world, nullptr);
  world->reserve(kCount * sizeof(float));
  world->run([](Rank& rank) { write_inputs(rank, run_seed(), rank.stream->get()); });
  std::vector<CUgraphExec> execs(GetParam());
  for (Rank& rank : world->ranks()) {
    check(calls().begin_capture.raw(rank.stream->get(), CU_STREAM_CAPTURE_MODE_GLOBAL), "cuStreamBeginCapture");
  }
  world->run_in_group([](Rank& rank) { issue_all_reduce(rank, rank.stream->get()); });
  std::vector<CUgraph> graphs(GetParam());
  for (Rank& rank : world->ranks()) {
    check(calls().end_capture.raw(rank.stream->get(), &graphs[rank.rank]), "cuStreamEndCapture");
  }
  for (Rank& rank : world->ranks()) {
    Device device(rank.device);
    check(calls().instantiate.raw(&execs[rank.rank], graphs[rank.rank], 0), "cuGraphInstantiate");
    check(calls().launch_graph.raw(execs[rank.rank], rank.stream->get()), "cuGraphLaunch");
  }
  world->run([](Rank& rank) { expect_sums(rank, run_seed(), rank.stream->get()); });
  if (HasFailure()) return world->break_up();
  for (const CUgraphExec exec : execs) calls().destroy_exec.raw(exec);
  for (const CUgraph graph : graphs) calls().destroy_graph.raw(graph);
}

INSTANTIATE_TEST_SUITE_P(Gpu, Graphs, testing::Values(2u, 4u), testing::PrintToStringParamName());

}  // namespace
}  // namespace talaria::gpu_test
