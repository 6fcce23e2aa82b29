// Communicators of GPU ranks and of CPU ranks side by side in one process.
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "gpu/world.h"

namespace talaria::gpu_test {
namespace {

class Mixed : public NeedsGpu<testing::Test> {};

TEST_F(Mixed, GpuAndCpuCommunicatorsShareAGroup) {
  const int ngpus = gpu_count(), ncpus = 3;
  std::vector<ncclComm_t> gpus(static_cast<size_t>(ngpus)), cpus(ncpus);
  ASSERT_TRUE(succeeded(ncclCommInitAll(gpus.data(), ngpus, nullptr), "ncclCommInitAll on GPUs"));
  setenv("TALARIA_DEVICE", "host", 1);
  const ncclResult_t created = ncclCommInitAll(cpus.data(), ncpus, nullptr);
  unsetenv("TALARIA_DEVICE");
  ASSERT_TRUE(succeeded(created, "ncclCommInitAll on CPU ranks"));

  constexpr size_t kCount = 5000;
  std::vector<int> input(kCount);
  std::iota(input.begin(), input.end(), 1);
  std::vector<std::vector<int>> host(ncpus, input);
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int g = 0; g < ngpus; ++g) {
    Device device(g);
    streams.push_back(std::make_unique<Stream>());
    buffers.push_back(std::make_unique<Buffer>(kCount * sizeof(int)));
    buffers.back()->write(0, std::as_bytes(std::span(input)), streams.back()->get());
  }
  ASSERT_TRUE(succeeded(ncclGroupStart(), "ncclGroupStart"));
  for (size_t g = 0; g < gpus.size(); ++g) {
    void* data = buffers[g]->data();
    succeeded(ncclAllReduce(data, data, kCount, ncclInt32, ncclSum, gpus[g], streams[g]->get()), "GPU rank");
  }
  for (size_t c = 0; c < cpus.size(); ++c) {
    succeeded(ncclAllReduce(host[c].data(), host[c].data(), kCount, ncclInt32, ncclSum, cpus[c], nullptr), "CPU rank");
  }
  ASSERT_TRUE(succeeded(ncclGroupEnd(), "ncclGroupEnd"));

  for (size_t i = 0; i < kCount; ++i) {
    for (const auto& result : host) ASSERT_EQ(result[i], ncpus * input[i]);  // CPU ranks are done on return
  }
  for (int g = 0; g < ngpus; ++g) {
    Device device(g);
    std::vector<int> result(kCount);
    buffers[static_cast<size_t>(g)]->read(0, std::as_writable_bytes(std::span(result)),
                                          streams[static_cast<size_t>(g)]->get());
    ASSERT_TRUE(wait_for(streams[static_cast<size_t>(g)]->get(), kPatienceSeconds));
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(result[i], ngpus * input[i]) << "GPU " << g;
  }
  for (ncclComm_t comm : cpus) succeeded(ncclCommDestroy(comm), "ncclCommDestroy");
  for (int g = 0; g < ngpus; ++g) {
    Device device(g);
    succeeded(ncclCommDestroy(gpus[static_cast<size_t>(g)]), "ncclCommDestroy");
    buffers[static_cast<size_t>(g)].reset();
    streams[static_cast<size_t>(g)].reset();
  }
}

}  // namespace
}  // namespace talaria::gpu_test
