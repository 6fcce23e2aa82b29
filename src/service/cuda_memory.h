// DeviceBlock, PinnedBlock, CudaStream, CudaEvent: RAII for what an engine allocates on its device.
//
// Giving memory back can wait for the whole GPU, so owners hand these to the LaunchGate instead of dropping them while
// work may be in flight. Allocation works inside a capture and while kernels spin.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "base/status.h"
#include "service/cuda_context.h"

namespace talaria {

using ContextPtr = std::shared_ptr<const PrimaryContext>;

// Zeroed device memory. Whole 2 MiB units on request, so that sharing it by CUDA IPC shares nothing else.
class DeviceBlock {
 public:
  DeviceBlock() = default;
  static Result<DeviceBlock> allocate(ContextPtr context, size_t bytes, CUstream stream);
  DeviceBlock(DeviceBlock&& other) noexcept
      : context_(std::move(other.context_)), address_(std::exchange(other.address_, 0)) {}
  DeviceBlock& operator=(DeviceBlock&& other) noexcept;
  ~DeviceBlock() { reset(); }
  CUdeviceptr address() const { return address_; }

 private:
  DeviceBlock(ContextPtr context, CUdeviceptr address) : context_(std::move(context)), address_(address) {}
  void reset();

  ContextPtr context_;
  CUdeviceptr address_ = 0;
};

// Zeroed pinned host memory that every device can reach.
class PinnedBlock {
 public:
  PinnedBlock() = default;
  static Result<PinnedBlock> allocate(ContextPtr context, size_t bytes);
  PinnedBlock(PinnedBlock&& other) noexcept
      : context_(std::move(other.context_)), host_(std::exchange(other.host_, nullptr)), device_(other.device_) {}
  PinnedBlock& operator=(PinnedBlock&& other) noexcept;
  ~PinnedBlock() { reset(); }
  std::byte* host() const { return static_cast<std::byte*>(host_); }
  CUdeviceptr device() const { return device_; }

 private:
  PinnedBlock(ContextPtr context, void* host, CUdeviceptr device)
      : context_(std::move(context)), host_(host), device_(device) {}
  void reset();

  ContextPtr context_;
  void* host_ = nullptr;
  CUdeviceptr device_ = 0;
};

// A non-blocking stream of our own.
class CudaStream {
 public:
  CudaStream() = default;
  static Result<CudaStream> create(ContextPtr context);
  CudaStream(CudaStream&& other) noexcept
      : context_(std::move(other.context_)), stream_(std::exchange(other.stream_, nullptr)) {}
  CudaStream& operator=(CudaStream&& other) noexcept;
  ~CudaStream() { reset(); }
  CUstream get() const { return stream_; }

 private:
  CudaStream(ContextPtr context, CUstream stream) : context_(std::move(context)), stream_(stream) {}
  void reset();

  ContextPtr context_;
  CUstream stream_ = nullptr;
};

// An event without timing.
class CudaEvent {
 public:
  CudaEvent() = default;
  static Result<CudaEvent> create(ContextPtr context);
  CudaEvent(CudaEvent&& other) noexcept
      : context_(std::move(other.context_)), event_(std::exchange(other.event_, nullptr)) {}
  CudaEvent& operator=(CudaEvent&& other) noexcept;
  ~CudaEvent() { reset(); }
  CUevent get() const { return event_; }
  // Has everything before the last record ended? Also true when nothing was recorded, or when the work failed.
  bool reached() const;

 private:
  CudaEvent(ContextPtr context, CUevent event) : context_(std::move(context)), event_(event) {}
  void reset();

  ContextPtr context_;
  CUevent event_ = nullptr;
};

}  // namespace talaria
