// What is refused: two ranks on one GPU unasked, ranks that would wait for each other on one stream. And what stays
// untouched: the caller's context.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "gpu/world.h"

namespace talaria::gpu_test {
namespace {

class Usage : public NeedsGpu<testing::Test> {};

TEST_F(Usage, TwoRanksOnOneGpuAreRefusedByName) {
  World::drop_shared();
  unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
  ncclUniqueId id;
  ASSERT_TRUE(succeeded(ncclGetUniqueId(&id), "ncclGetUniqueId"));
  ncclResult_t results[2];
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      Device device(0);
      ncclComm_t comm = nullptr;
      results[r] = ncclCommInitRank(&comm, 2, id, r);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(results[0], ncclInvalidUsage);
  EXPECT_EQ(results[1], ncclInvalidUsage);
  const std::string text = ncclGetLastError(nullptr);
  EXPECT_NE(text.find("Duplicate GPU detected : rank 0 and rank 1 both on CUDA device "), std::string::npos) << text;
  EXPECT_NE(text.find("NCCL_MULTI_RANK_GPU_ENABLE"), std::string::npos) << text;
}

TEST_F(Usage, RanksOfOneGpuOnOneStreamNeedAGroup) {
  const uint32_t nranks = static_cast<uint32_t>(gpu_count()) + 1;  // the last rank shares device 0 with the first
  const std::unique_ptr<World> world = World::create(nranks);
  ASSERT_NE(world, nullptr);
  world->reserve(4096);
  Rank& first = world->ranks().front();
  Rank& last = world->ranks().back();
  ASSERT_EQ(first.device, last.device);
  {
    Device device(first.device);
    CUstream stream = first.stream->get();
    const auto call = [&](Rank& rank) {
      return ncclAllReduce(rank.send->data(), rank.receive->data(), 100, ncclFloat32, ncclSum, rank.comm, stream);
    };
    EXPECT_EQ(call(first), ncclSuccess);
    EXPECT_EQ(call(last), ncclInvalidUsage);
    const std::string text = ncclGetLastError(nullptr);
    EXPECT_NE(text.find("rank 0 and rank " + std::to_string(last.rank)), std::string::npos) << text;
  }
  world->break_up();
  Device device(first.device);
  EXPECT_TRUE(wait_for(first.stream->get(), 10)) << "the first rank's kernel did not leave";
}

TEST_F(Usage, CallsLeaveTheCurrentContextAlone) {
  World* world = World::shared(2);
  ASSERT_NE(world, nullptr);
  world->reserve(4096);
  std::thread([&] {
    CUcontext before = nullptr;
    ncclGroupStart();
    for (Rank& rank : world->ranks()) {
      succeeded(ncclAllReduce(rank.send->data(), rank.receive->data(), 100, ncclFloat32, ncclSum, rank.comm,
                              rank.stream->get()),
                "ncclAllReduce");
    }
    succeeded(ncclGroupEnd(), "ncclGroupEnd");
    check(driver().context_get.raw(&before), "cuCtxGetCurrent");
    EXPECT_EQ(before, nullptr) << "the calling thread had no context before";
  }).join();
  world->run([](Rank& rank) { rank.finish(); });
}

}  // namespace
}  // namespace talaria::gpu_test
