// CudaDriver: the entry points of libcuda that this library uses, found at run time.
//
// libcuda.so.1 is opened at first use, never linked, so the library loads on machines without a driver. Every entry
// point is asked for by name and by the version whose signature is written here, so it does not matter which toolkit
// this was built with. An entry point that the driver lacks is null; calling it is an error that says so.
// Thread-safe; constant once made.
#pragma once

#include <cuda.h>

#include "base/status.h"

namespace talaria {

// Finds entry points while a CudaDriver is made.
class DriverLibrary {
 public:
  explicit DriverLibrary(void* get_proc_address) : get_proc_address_(get_proc_address) {}
  // nullptr when the driver has no `name` in this version.
  void* find(const char* name, int version) const;

 private:
  void* get_proc_address_;
};

// Reports a failed call: kUnhandledCuda with the driver's name for the error.
Status driver_failure(const char* name, int version, CUresult result, bool missing);

template <typename Signature>
class DriverCall;

template <typename... Args>
class DriverCall<CUresult(Args...)> {
 public:
  DriverCall(const DriverLibrary& library, const char* name, int version)
      : name_(name), version_(version), call_(reinterpret_cast<Pointer>(library.find(name, version))) {}
  bool available() const { return call_ != nullptr; }
  // Calls, and reports a failure.
  Status operator()(Args... args) const {
    const CUresult result = raw(args...);
    return result == CUDA_SUCCESS ? Status() : driver_failure(name_, version_, result, !available());
  }
  // Calls, and leaves the judgement to the caller.
  CUresult raw(Args... args) const { return call_ != nullptr ? call_(args...) : CUDA_ERROR_NOT_FOUND; }

 private:
  using Pointer = CUresult (*)(Args...);
  const char* name_;
  int version_;
  Pointer call_;
};

struct CudaDriver {
  explicit CudaDriver(const DriverLibrary& library) : library_(library) {}

  const DriverLibrary library_;  // first: the rows below use it
  template <typename... Args>
  using Call = DriverCall<CUresult(Args...)>;

  Call<unsigned> init{library_, "cuInit", 2000};
  Call<int*> driver_get_version{library_, "cuDriverGetVersion", 2020};
  Call<CUresult, const char**> get_error_name{library_, "cuGetErrorName", 6000};
  Call<CUresult, const char**> get_error_string{library_, "cuGetErrorString", 6000};

  Call<CUdevice*, int> device_get{library_, "cuDeviceGet", 2000};
  Call<int*> device_get_count{library_, "cuDeviceGetCount", 2000};
  Call<int*, CUdevice_attribute, CUdevice> device_get_attribute{library_, "cuDeviceGetAttribute", 2000};
  Call<char*, int, CUdevice> device_get_pci_bus_id{library_, "cuDeviceGetPCIBusId", 4010};
  Call<int*, CUdevice, CUdevice> device_can_access_peer{library_, "cuDeviceCanAccessPeer", 4000};
  Call<CUcontext*, CUdevice> primary_context_retain{library_, "cuDevicePrimaryCtxRetain", 7000};
  Call<CUdevice> primary_context_release{library_, "cuDevicePrimaryCtxRelease", 11000};
  Call<CUcontext> context_push{library_, "cuCtxPushCurrent", 4000};
  Call<CUcontext*> context_pop{library_, "cuCtxPopCurrent", 4000};
  Call<CUcontext*> context_get{library_, "cuCtxGetCurrent", 4000};
  Call<CUdevice*> context_get_device{library_, "cuCtxGetDevice", 2000};
  Call<CUcontext, unsigned> enable_peer_access{library_, "cuCtxEnablePeerAccess", 4000};

  Call<CUlibrary*, const void*, CUjit_option*, void**, unsigned, CUlibraryOption*, void**, unsigned> library_load_data{
      library_, "cuLibraryLoadData", 12000};
  Call<CUlibrary> library_unload{library_, "cuLibraryUnload", 12000};
  Call<CUkernel*, CUlibrary, const char*> library_get_kernel{library_, "cuLibraryGetKernel", 12000};
  Call<CUfunction*, CUkernel> kernel_get_function{library_, "cuKernelGetFunction", 12000};
  Call<CUfunction> function_load{library_, "cuFuncLoad", 12040};
  Call<int*, CUfunction_attribute, CUfunction> function_get_attribute{library_, "cuFuncGetAttribute", 2020};
  Call<CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**>
      launch_kernel{library_, "cuLaunchKernel", 4000};

  Call<CUdeviceptr*, size_t> mem_alloc{library_, "cuMemAlloc", 3020};
  Call<CUdeviceptr> mem_free{library_, "cuMemFree", 3020};
  Call<void**, size_t, unsigned> mem_host_alloc{library_, "cuMemHostAlloc", 2020};
  Call<void*> mem_free_host{library_, "cuMemFreeHost", 2000};
  Call<CUdeviceptr*, void*, unsigned> mem_host_get_device_pointer{library_, "cuMemHostGetDevicePointer", 3020};
  Call<CUdeviceptr, unsigned char, size_t, CUstream> memset_async{library_, "cuMemsetD8Async", 3020};
  Call<CUdeviceptr, const void*, size_t, CUstream> copy_to_device_async{library_, "cuMemcpyHtoDAsync", 3020};
  Call<CUipcMemHandle*, CUdeviceptr> ipc_get_mem_handle{library_, "cuIpcGetMemHandle", 4010};
  Call<CUdeviceptr*, CUipcMemHandle, unsigned> ipc_open_mem_handle{library_, "cuIpcOpenMemHandle", 11000};
  Call<CUdeviceptr> ipc_close_mem_handle{library_, "cuIpcCloseMemHandle", 4010};

  Call<CUstream*, unsigned> stream_create{library_, "cuStreamCreate", 2000};
  Call<CUstream> stream_destroy{library_, "cuStreamDestroy", 4000};
  Call<CUstream> stream_synchronize{library_, "cuStreamSynchronize", 2000};
  Call<CUstream, CUevent, unsigned> stream_wait_event{library_, "cuStreamWaitEvent", 3020};
  Call<CUstream, unsigned long long*> stream_get_id{library_, "cuStreamGetId", 12000};
  Call<CUstream, CUstreamCaptureStatus*, cuuint64_t*, CUgraph*, const CUgraphNode**, size_t*> stream_get_capture_info{
      library_, "cuStreamGetCaptureInfo", 11030};
  Call<CUstreamCaptureMode*> exchange_capture_mode{library_, "cuThreadExchangeStreamCaptureMode", 10010};
  Call<CUevent*, unsigned> event_create{library_, "cuEventCreate", 2000};
  Call<CUevent> event_destroy{library_, "cuEventDestroy", 4000};
  Call<CUevent, CUstream> event_record{library_, "cuEventRecord", 2000};
  Call<CUevent> event_query{library_, "cuEventQuery", 2000};
  Call<CUevent> event_synchronize{library_, "cuEventSynchronize", 2000};
  Call<CUgraphNode*, CUgraph, const CUgraphNode*, size_t, CUevent> graph_add_event_record{
      library_, "cuGraphAddEventRecordNode", 11010};
  Call<CUgraph, const CUgraphNode*, const CUgraphNode*, size_t> graph_add_dependencies{
      library_, "cuGraphAddDependencies", 10000};
  Call<CUgraph, const CUgraphNode*, const CUgraphNode*, size_t> graph_remove_dependencies{
      library_, "cuGraphRemoveDependencies", 10000};
};

// The driver of this process, initialised. Fails (once per caller) when there is none or it is too old.
Result<const CudaDriver*> cuda_driver();
// The same; nullptr instead of an error, and nothing is logged.
const CudaDriver* find_cuda_driver();

}  // namespace talaria
