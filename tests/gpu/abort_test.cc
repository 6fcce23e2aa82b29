// Abort: a kernel that waits for a rank which never comes is ended from another thread.
#include <gtest/gtest.h>

#include "base/os.h"
#include "gpu/world.h"

namespace talaria::gpu_test {
namespace {

class Abort : public NeedsGpu<testing::Test> {};

constexpr double kPromptUsec = 5e6;

TEST_F(Abort, EndsAKernelThatWaitsForAnAbsentRank) {
  const std::unique_ptr<World> world = World::create(2);
  ASSERT_NE(world, nullptr);
  world->reserve(1 << 20);
  Rank& waiting = world->ranks()[0];
  {
    Device device(waiting.device);
    ASSERT_TRUE(succeeded(ncclAllReduce(waiting.send->data(), waiting.receive->data(), 1000, ncclFloat32, ncclSum,
                                        waiting.comm, waiting.stream->get()),
                          "ncclAllReduce"));
    EXPECT_FALSE(wait_for(waiting.stream->get(), 0.2)) << "the kernel was to wait for rank 1";
  }
  const double start = now_usec();
  world->break_up();  // from this thread, while the kernel waits
  EXPECT_LT(now_usec() - start, kPromptUsec);
  Device device(waiting.device);
  EXPECT_TRUE(wait_for(waiting.stream->get(), 10)) << "the kernel did not leave after the abort";
}

TEST_F(Abort, LeavesOtherCommunicatorsAlone) {
  const std::unique_ptr<World> doomed = World::create(2);
  World* other = World::shared(2);
  ASSERT_NE(doomed, nullptr);
  ASSERT_NE(other, nullptr);
  doomed->reserve(4096);
  other->reserve(4096);
  {
    Rank& waiting = doomed->ranks()[0];
    Device device(waiting.device);
    succeeded(ncclAllReduce(waiting.send->data(), waiting.receive->data(), 1000, ncclFloat32, ncclSum, waiting.comm,
                            waiting.stream->get()),
              "ncclAllReduce");
  }
  doomed->break_up();
  other->run([](Rank& rank) {
    succeeded(ncclAllReduce(rank.send->data(), rank.receive->data(), 1000, ncclFloat32, ncclSum, rank.comm,
                            rank.stream->get()),
              "ncclAllReduce");
    rank.finish();
  });
}

}  // namespace
}  // namespace talaria::gpu_test
