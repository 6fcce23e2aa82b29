// PrimaryContext, ContextGuard, RelaxedCapture: working on a device without disturbing the caller's thread.
#pragma once

#include <memory>

#include "base/status.h"
#include "service/cuda_driver.h"

namespace talaria {

// A device's primary context, retained while this lives. Thread-safe.
class PrimaryContext {
 public:
  static Result<std::shared_ptr<PrimaryContext>> retain(int device);
  PrimaryContext(const CudaDriver& driver, CUdevice device, int ordinal, CUcontext context)
      : driver_(driver), device_(device), ordinal_(ordinal), context_(context) {}
  ~PrimaryContext() { driver_.primary_context_release.raw(device_); }
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;

  const CudaDriver& driver() const { return driver_; }
  CUdevice device() const { return device_; }
  int ordinal() const { return ordinal_; }
  CUcontext handle() const { return context_; }

 private:
  const CudaDriver& driver_;
  CUdevice device_;
  int ordinal_;
  CUcontext context_;
};

// Makes a context current for a scope; the caller's context (hence its current device) comes back at the end.
class ContextGuard {
 public:
  explicit ContextGuard(const PrimaryContext& context)
      : driver_(context.driver()), status_(driver_.context_push(context.handle())) {}
  ~ContextGuard() {
    CUcontext popped;
    if (status_.ok()) driver_.context_pop.raw(&popped);
  }
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;
  Status status() const { return status_; }

 private:
  const CudaDriver& driver_;
  Status status_;
};

// While this lives, calls of this thread that have nothing to do with a capture in progress (allocations, queries,
// private streams) neither fail because of it nor invalidate it.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const CudaDriver& driver) : driver_(driver) { driver_.exchange_capture_mode.raw(&mode_); }
  ~RelaxedCapture() { driver_.exchange_capture_mode.raw(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const CudaDriver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace talaria
