#include "service/cuda_memory.h"

#include <cstring>

namespace talaria {

// --- DeviceBlock

Result<DeviceBlock> DeviceBlock::allocate(ContextPtr context, size_t bytes, CUstream stream) {
  const CudaDriver& driver = context->driver();
  ContextGuard guard(*context);
  TRY(guard.status());
  RelaxedCapture relaxed(driver);
  CUdeviceptr address = 0;
  TRY(driver.mem_alloc(&address, bytes));
  DeviceBlock block(context, address);
  TRY(driver.memset_async(address, 0, bytes, stream));
  TRY(driver.stream_synchronize(stream));
  return block;
}

DeviceBlock& DeviceBlock::operator=(DeviceBlock&& other) noexcept {
  if (this == &other) return *this;
  reset();
  context_ = std::move(other.context_);
  address_ = std::exchange(other.address_, 0);
  return *this;
}

void DeviceBlock::reset() {
  if (address_ == 0) return;
  ContextGuard guard(*context_);
  RelaxedCapture relaxed(context_->driver());
  context_->driver().mem_free.raw(std::exchange(address_, 0));
}

// --- PinnedBlock

Result<PinnedBlock> PinnedBlock::allocate(ContextPtr context, size_t bytes) {
  const CudaDriver& driver = context->driver();
  ContextGuard guard(*context);
  TRY(guard.status());
  RelaxedCapture relaxed(driver);
  void* host = nullptr;
  TRY(driver.mem_host_alloc(&host, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
  PinnedBlock block(context, host, 0);
  TRY(driver.mem_host_get_device_pointer(&block.device_, host, 0));
  std::memset(host, 0, bytes);
  return block;
}

PinnedBlock& PinnedBlock::operator=(PinnedBlock&& other) noexcept {
  if (this == &other) return *this;
  reset();
  context_ = std::move(other.context_);
  host_ = std::exchange(other.host_, nullptr);
  device_ = other.device_;
  return *this;
}

void PinnedBlock::reset() {
  if (host_ == nullptr) return;
  ContextGuard guard(*context_);
  RelaxedCapture relaxed(context_->driver());
  context_->driver().mem_free_host.raw(std::exchange(host_, nullptr));
}

// --- CudaStream

Result<CudaStream> CudaStream::create(ContextPtr context) {
  ContextGuard guard(*context);
  TRY(guard.status());
  RelaxedCapture relaxed(context->driver());
  CUstream stream = nullptr;
  TRY(context->driver().stream_create(&stream, CU_STREAM_NON_BLOCKING));
  return CudaStream(std::move(context), stream);
}

CudaStream& CudaStream::operator=(CudaStream&& other) noexcept {
  if (this == &other) return *this;
  reset();
  context_ = std::move(other.context_);
  stream_ = std::exchange(other.stream_, nullptr);
  return *this;
}

void CudaStream::reset() {
  if (stream_ == nullptr) return;
  ContextGuard guard(*context_);
  context_->driver().stream_destroy.raw(std::exchange(stream_, nullptr));
}

// --- CudaEvent

Result<CudaEvent> CudaEvent::create(ContextPtr context) {
  ContextGuard guard(*context);
  TRY(guard.status());
  CUevent event = nullptr;
  TRY(context->driver().event_create(&event, CU_EVENT_DISABLE_TIMING));
  return CudaEvent(std::move(context), event);
}

CudaEvent& CudaEvent::operator=(CudaEvent&& other) noexcept {
  if (this == &other) return *this;
  reset();
  context_ = std::move(other.context_);
  event_ = std::exchange(other.event_, nullptr);
  return *this;
}

void CudaEvent::reset() {
  if (event_ == nullptr) return;
  ContextGuard guard(*context_);
  context_->driver().event_destroy.raw(std::exchange(event_, nullptr));
}

bool CudaEvent::reached() const {
  if (event_ == nullptr) return true;
  RelaxedCapture relaxed(context_->driver());
  return context_->driver().event_query.raw(event_) != CUDA_ERROR_NOT_READY;
}

}  // namespace talaria
