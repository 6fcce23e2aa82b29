#include "service/shared_gpu.h"

#include <gtest/gtest.h>

#include <string>

namespace talaria {
namespace {

constexpr uint64_t kStream = 5, kOther = 6;

TEST(SharedGpu, RefusesASecondRankBehindTheFirst) {
  SharedGpu gpu;
  const uint32_t first[] = {0}, second[] = {3};
  EXPECT_TRUE(gpu.enqueue(first, kStream, 1).ok());
  EXPECT_EQ(gpu.enqueue(second, kStream, 1).code(), Code::kInvalidUsage);
  EXPECT_NE(std::string(last_error_text()).find("rank 0 and rank 3"), std::string::npos) << last_error_text();
}

TEST(SharedGpu, AllowsOneGroupAndStreamsOfTheirOwn) {
  SharedGpu gpu;
  const uint32_t both[] = {0, 1}, first[] = {0}, second[] = {1};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(gpu.enqueue(both, kStream, 2).ok());
  EXPECT_TRUE(gpu.enqueue(first, kStream, 1).ok());
  EXPECT_TRUE(gpu.enqueue(second, kOther, 1).ok());
  EXPECT_TRUE(gpu.enqueue(both, kStream, 1).ok()) << "both have caught up";
}

TEST(SharedGpu, IgnoresPointToPoint) {
  SharedGpu gpu;
  const uint32_t first[] = {0}, second[] = {1};
  EXPECT_TRUE(gpu.enqueue(first, kStream, 0).ok());
  EXPECT_TRUE(gpu.enqueue(second, kStream, 0).ok());
}

TEST(SharedGpu, IsOnePerCommunicatorAndDevice) {
  const auto a = SharedGpu::of(1, 0);
  EXPECT_EQ(a, SharedGpu::of(1, 0));
  EXPECT_NE(a, SharedGpu::of(1, 1));
  EXPECT_NE(a, SharedGpu::of(2, 0));
}

}  // namespace
}  // namespace talaria
