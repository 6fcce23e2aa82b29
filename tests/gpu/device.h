// GPUs for tests: memory, streams and graphs through the driver API. Every wait is bounded.
//
// Functions throw std::runtime_error when the driver refuses; GoogleTest reports that as a failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "service/cuda_context.h"
#include "service/cuda_driver.h"

namespace talaria::gpu_test {

inline constexpr double kPatienceSeconds = 30;  // bound of every wait of the tests

// Entry points that only tests use.
struct TestCalls {
  explicit TestCalls(const DriverLibrary& library) : library_(library) {}
  const DriverLibrary library_;
  template <typename... Args>
  using Call = DriverCall<CUresult(Args...)>;
  Call<void*, CUdeviceptr, size_t, CUstream> copy_to_host{library_, "cuMemcpyDtoHAsync", 3020};
  Call<CUstream> stream_query{library_, "cuStreamQuery", 2000};
  Call<CUstream, CUstreamCaptureMode> begin_capture{library_, "cuStreamBeginCapture", 10010};
  Call<CUstream, CUgraph*> end_capture{library_, "cuStreamEndCapture", 10000};
  Call<CUgraphExec*, CUgraph, unsigned long long> instantiate{library_, "cuGraphInstantiateWithFlags", 11040};
  Call<CUgraphExec, CUstream> launch_graph{library_, "cuGraphLaunch", 10000};
  Call<CUgraphExec> destroy_exec{library_, "cuGraphExecDestroy", 10000};
  Call<CUgraph> destroy_graph{library_, "cuGraphDestroy", 10000};
};

int gpu_count();
const CudaDriver& driver();
const TestCalls& calls();
void check(CUresult result, const char* what);

// A GPU whose context this thread uses while the object lives.
class Device {
 public:
  explicit Device(int ordinal);
  int ordinal() const { return ordinal_; }

 private:
  int ordinal_;
  std::shared_ptr<PrimaryContext> context_;
  ContextGuard guard_;
};

class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  CUstream get() const { return stream_; }

 private:
  CUstream stream_ = nullptr;
};

// True once everything enqueued has ended; false after `seconds`. Throws if the work failed.
bool wait_for(CUstream stream, double seconds);

// Device memory. Freeing waits for the whole GPU: not while a rank on it may wait for this thread.
class Buffer {
 public:
  explicit Buffer(size_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::byte* data() const { return reinterpret_cast<std::byte*>(address_); }
  size_t bytes() const { return bytes_; }
  // Enqueued; `bytes` of the host side must stay until the stream was waited for.
  void write(size_t offset, std::span<const std::byte> bytes, CUstream stream);
  void read(size_t offset, std::span<std::byte> bytes, CUstream stream) const;
  void fill(size_t bytes, unsigned char value, CUstream stream);

 private:
  CUdeviceptr address_ = 0;
  size_t bytes_ = 0;
};

// A captured graph, ready for replay.
class Graph {
 public:
  template <typename Body>
  static Graph capture(CUstream stream, Body body, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
    check(calls().begin_capture.raw(stream, mode), "cuStreamBeginCapture");
    body();
    Graph graph;
    check(calls().end_capture.raw(stream, &graph.graph_), "cuStreamEndCapture");
    check(calls().instantiate.raw(&graph.exec_, graph.graph_, 0), "cuGraphInstantiate");
    return graph;
  }
  Graph(Graph&& other) noexcept;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();
  void launch(CUstream stream) const { check(calls().launch_graph.raw(exec_, stream), "cuGraphLaunch"); }

 private:
  Graph() = default;
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
};

}  // namespace talaria::gpu_test
