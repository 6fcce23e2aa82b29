#include "gpu/device.h"

#include <sched.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "base/os.h"

namespace talaria::gpu_test {

int gpu_count() {
  static const int count = [] {
    const CudaDriver* found = find_cuda_driver();
    int devices = 0;
    return found != nullptr && found->device_get_count.raw(&devices) == CUDA_SUCCESS ? devices : 0;
  }();
  return count;
}

const CudaDriver& driver() { return *find_cuda_driver(); }

const TestCalls& calls() {
  static const TestCalls all(driver().library_);
  return all;
}

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  driver().get_error_name.raw(result, &name);
  throw std::runtime_error(std::string(what) + ": " + (name != nullptr ? name : std::to_string(result)));
}

namespace {

std::shared_ptr<PrimaryContext> retain(int ordinal) {
  auto context = PrimaryContext::retain(ordinal);
  if (!context.ok()) throw std::runtime_error(last_error_text());
  return *context;
}

}  // namespace

Device::Device(int ordinal) : ordinal_(ordinal), context_(retain(ordinal)), guard_(*context_) {}

Stream::Stream() { check(driver().stream_create.raw(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate"); }
Stream::~Stream() { driver().stream_destroy.raw(stream_); }

bool wait_for(CUstream stream, double seconds) {
  const double deadline = now_usec() + seconds * 1e6;
  for (;;) {
    const CUresult result = calls().stream_query.raw(stream);
    if (result == CUDA_SUCCESS) return true;
    if (result != CUDA_ERROR_NOT_READY) check(result, "cuStreamQuery");
    if (now_usec() > deadline) return false;
    sched_yield();
  }
}

Buffer::Buffer(size_t bytes) : bytes_(bytes) { check(driver().mem_alloc.raw(&address_, bytes), "cuMemAlloc"); }
Buffer::Buffer(Buffer&& other) noexcept
    : address_(std::exchange(other.address_, 0)), bytes_(std::exchange(other.bytes_, 0)) {}
Buffer::~Buffer() {
  if (address_ != 0) driver().mem_free.raw(address_);
}
void Buffer::write(size_t offset, std::span<const std::byte> bytes, CUstream stream) {
  if (bytes.empty()) return;
  check(driver().copy_to_device_async.raw(address_ + offset, bytes.data(), bytes.size(), stream), "cuMemcpyHtoDAsync");
}
void Buffer::read(size_t offset, std::span<std::byte> bytes, CUstream stream) const {
  if (bytes.empty()) return;
  // A copy to pageable memory waits inside the driver, where it can keep another rank of this GPU from launching the
  // kernel that the stream's own kernel waits for. So the stream is idle first.
  if (!wait_for(stream, kPatienceSeconds))
    throw std::runtime_error("the stream did not finish before a copy to the host");
  check(calls().copy_to_host.raw(bytes.data(), address_ + offset, bytes.size(), stream), "cuMemcpyDtoHAsync");
}
void Buffer::fill(size_t bytes, unsigned char value, CUstream stream) {
  check(driver().memset_async.raw(address_, value, bytes, stream), "cuMemsetD8Async");
}

Graph::Graph(Graph&& other) noexcept
    : graph_(std::exchange(other.graph_, nullptr)), exec_(std::exchange(other.exec_, nullptr)) {}
Graph::~Graph() {
  if (exec_ != nullptr) calls().destroy_exec.raw(exec_);
  if (graph_ != nullptr) calls().destroy_graph.raw(graph_);
}

}  // namespace talaria::gpu_test
