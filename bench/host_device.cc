#include <cstdlib>
#include <cstring>

#include "device.h"
#include "fatal.h"

namespace talaria::bench {
namespace {

// A CPU rank: calls are complete when they return, so the stream is always idle.
class HostDevice final : public Device {
 public:
  void make_current() override {}
  std::byte* allocate(size_t bytes) override {
    constexpr size_t kPage = 4096;
    void* const memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
    if (memory == nullptr) fatal("no {} bytes of host memory", bytes);
    return static_cast<std::byte*>(memory);
  }
  void release(std::byte* memory) override { std::free(memory); }
  void upload(std::byte* to, const std::byte* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void download(std::byte* to, const std::byte* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void fill(std::byte* to, unsigned char value, size_t bytes) override { std::memset(to, value, bytes); }
  std::byte* host_view(std::byte* memory) override { return memory; }
  cudaStream_t stream() override { return nullptr; }
  bool idle() override { return true; }
  bool has_graphs() const override { return false; }
  void drop_graph() override { fatal("CPU ranks have no CUDA graphs"); }
  void make_graph() override { fatal("CPU ranks have no CUDA graphs"); }
  void begin_capture() override { fatal("CPU ranks have no CUDA graphs"); }
  void end_capture() override { fatal("CPU ranks have no CUDA graphs"); }
  void launch_graph() override { fatal("CPU ranks have no CUDA graphs"); }
  std::string description() const override { return "device -1 [--:--] host memory"; }
};

}  // namespace

std::unique_ptr<Device> make_host_device() { return std::make_unique<HostDevice>(); }

}  // namespace talaria::bench
