// Device: memory, one stream, and graphs of one rank, on a GPU or on the host.
//
// The programs link nothing of CUDA: the driver is loaded at run time. Any failure ends the process with its reason.
// One thread uses a Device at a time.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <memory>
#include <string>

namespace talaria::bench {

class Device {
 public:
  virtual ~Device() = default;
  // Makes this the calling thread's current device.
  virtual void make_current() = 0;
  virtual std::byte* allocate(size_t bytes) = 0;
  virtual void release(std::byte* memory) = 0;
  virtual void upload(std::byte* to, const std::byte* from, size_t bytes) = 0;
  virtual void download(std::byte* to, const std::byte* from, size_t bytes) = 0;
  virtual void fill(std::byte* to, unsigned char value, size_t bytes) = 0;
  // Null when the host cannot read the memory itself; else the same bytes.
  virtual std::byte* host_view(std::byte* memory) = 0;

  virtual cudaStream_t stream() = 0;
  // Has everything put on the stream ended?
  virtual bool idle() = 0;

  virtual bool has_graphs() const = 0;
  // Captures and graphs: on one thread no graph may be made or dropped while any of its streams is captured, so all
  // ranks of a thread go through each of these before the next.
  virtual void drop_graph() = 0;
  virtual void begin_capture() = 0;
  virtual void end_capture() = 0;
  virtual void make_graph() = 0;  // of what was captured
  virtual void launch_graph() = 0;

  // For the header: "device  0 [1b:00] NVIDIA H200".
  virtual std::string description() const = 0;
};

std::unique_ptr<Device> make_host_device();

// Number of GPUs; 0 without a driver, with TALARIA_DEVICE=host, and in builds without CUDA. Initialises the driver.
int visible_gpus();
// With `null_stream` the stream is the device's default stream.
std::unique_ptr<Device> make_gpu_device(int ordinal, bool null_stream);

}  // namespace talaria::bench
