#include "gpu/fake/fake_cuda.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>

using talaria::fake_cuda::Book;

struct CUctx_st {
  int device;
  unsigned references;
};
struct CUgraph_st {
  std::vector<CUgraphNode> nodes;
};
struct CUgraphNode_st {
  bool record;
  std::set<CUgraphNode> after;
};
struct CUstream_st {
  uint64_t id;
  CUcontext context;
  CUgraph graph = nullptr;  // while capturing
  cuuint64_t capture = 0;
  std::vector<CUgraphNode> last = {};
};
struct CUevent_st {
  int unused;
};
struct CUlib_st {
  int unused;
};
struct CUkern_st {
  std::string name;
};
struct CUfunc_st {
  std::string name;
  CUcontext context;
};

namespace {

constexpr int kDevices = 2;

struct Driver {
  std::recursive_mutex mutex;
  Book book;
  std::set<std::string> hidden;
  bool hold = false;
  uint64_t next_id = 10;
  int captures = 0;
  CUctx_st contexts[kDevices] = {{0, 0}, {1, 0}};
  CUstream_st defaults[kDevices] = {{1, &contexts[0]}, {2, &contexts[1]}};
  std::set<std::pair<CUcontext, CUcontext>> peers;
};

Driver& fake() {
  static Driver& driver = *new Driver();
  return driver;
}

thread_local std::vector<CUcontext> t_contexts;
thread_local CUstreamCaptureMode t_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUcontext current() { return t_contexts.empty() ? nullptr : t_contexts.back(); }

// Calls that the real driver refuses while a global capture is in progress.
bool refused(const char* name) {
  if (fake().captures == 0 || t_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  fake().book.refused.emplace_back(name);
  return true;
}

CUstream_st& resolve(CUstream stream) {
  if (stream != nullptr) return *stream;
  return fake().defaults[current() != nullptr ? current()->device : 0];
}

CUgraphNode add_node(CUgraph graph, bool record, const CUgraphNode* after, size_t count) {
  auto* node = new CUgraphNode_st{record, {after, after + count}};
  graph->nodes.push_back(node);
  if (record) fake().book.record_nodes++, fake().book.record_edges += static_cast<int>(count);
  return node;
}

// --- devices and contexts

CUresult init(unsigned) { return CUDA_SUCCESS; }
CUresult driver_version(int* version) { return *version = 13000, CUDA_SUCCESS; }
CUresult error_name(CUresult, const char** text) { return *text = "CUDA_ERROR_FAKE", CUDA_SUCCESS; }
CUresult error_string(CUresult, const char** text) { return *text = "fake error", CUDA_SUCCESS; }
CUresult device_get(CUdevice* device, int ordinal) {
  if (ordinal < 0 || ordinal >= kDevices) return CUDA_ERROR_INVALID_DEVICE;
  return *device = ordinal, CUDA_SUCCESS;
}
CUresult device_count(int* count) { return *count = kDevices, CUDA_SUCCESS; }
CUresult device_attribute(int* value, CUdevice_attribute, CUdevice) { return *value = 9, CUDA_SUCCESS; }
CUresult bus_id(char* text, int bytes, CUdevice device) {
  std::snprintf(text, static_cast<size_t>(bytes), "0000:%d%c:00.0", device + 1, 'B');
  return CUDA_SUCCESS;
}
CUresult can_access(int* possible, CUdevice, CUdevice) { return *possible = 1, CUDA_SUCCESS; }
CUresult retain(CUcontext* context, CUdevice device) {
  std::lock_guard lock(fake().mutex);
  *context = &fake().contexts[device];
  (*context)->references++;
  return CUDA_SUCCESS;
}
CUresult release(CUdevice device) {
  std::lock_guard lock(fake().mutex);
  fake().contexts[device].references--;
  return CUDA_SUCCESS;
}
CUresult push(CUcontext context) {
  std::lock_guard lock(fake().mutex);
  t_contexts.push_back(context);
  fake().book.context_depth++;
  return CUDA_SUCCESS;
}
CUresult pop(CUcontext* context) {
  std::lock_guard lock(fake().mutex);
  if (t_contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = t_contexts.back();
  t_contexts.pop_back();
  fake().book.context_depth--;
  return CUDA_SUCCESS;
}
CUresult get_current(CUcontext* context) { return *context = current(), CUDA_SUCCESS; }
CUresult current_device(CUdevice* device) {
  if (current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return *device = current()->device, CUDA_SUCCESS;
}
CUresult enable_peer(CUcontext peer, unsigned) {
  std::lock_guard lock(fake().mutex);
  return fake().peers.emplace(current(), peer).second ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

// --- code

// budget: the driver's signature
CUresult load_data(CUlibrary* library, const void*, CUjit_option*, void**, unsigned, CUlibraryOption*, void**,
                   unsigned) {
  return *library = new CUlib_st(), CUDA_SUCCESS;
}
CUresult unload(CUlibrary library) { return delete library, CUDA_SUCCESS; }
CUresult get_kernel(CUkernel* kernel, CUlibrary, const char* name) {
  return *kernel = new CUkern_st{name}, CUDA_SUCCESS;
}
CUresult get_function(CUfunction* function, CUkernel kernel) {
  if (current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return *function = new CUfunc_st{kernel->name, current()}, CUDA_SUCCESS;
}
CUresult function_load(CUfunction) { return CUDA_SUCCESS; }
CUresult function_attribute(int* value, CUfunction_attribute, CUfunction) { return *value = 32, CUDA_SUCCESS; }
// budget: the driver's signature
CUresult launch(CUfunction function, unsigned gx, unsigned, unsigned, unsigned bx, unsigned, unsigned, unsigned,
                CUstream stream, void** parameters, void**) {
  std::lock_guard lock(fake().mutex);
  CUstream_st& target = resolve(stream);
  if (current() != target.context || function->context != current()) {
    fake().book.refused.emplace_back("cuLaunchKernel in another context");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  const auto* bytes = static_cast<const std::byte*>(parameters[0]);
  fake().book.launches.push_back({function->name, stream, gx, bx, {bytes, bytes + 3 * 1024}});
  if (target.graph != nullptr) {
    target.last = {add_node(target.graph, false, target.last.data(), target.last.size())};
  }
  return CUDA_SUCCESS;
}

// --- memory

CUresult host_memory(void** address, size_t bytes) {
  std::lock_guard lock(fake().mutex);
  fake().book.allocations++;
  fake().book.live_allocations++;
  return (*address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)) != nullptr ? CUDA_SUCCESS
                                                                                     : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult mem_alloc(CUdeviceptr* address, size_t bytes) {
  if (refused("cuMemAlloc")) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return host_memory(reinterpret_cast<void**>(address), bytes);
}
CUresult host_free(void* address) {
  std::lock_guard lock(fake().mutex);
  if (refused("cuMemFree")) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  fake().book.live_allocations--;
  return std::free(address), CUDA_SUCCESS;
}
CUresult mem_free(CUdeviceptr address) { return host_free(reinterpret_cast<void*>(address)); }
CUresult host_alloc(void** address, size_t bytes, unsigned) {
  if (refused("cuMemHostAlloc")) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return host_memory(address, bytes);
}
CUresult device_pointer(CUdeviceptr* device, void* host, unsigned) {
  return *device = reinterpret_cast<CUdeviceptr>(host), CUDA_SUCCESS;
}
CUresult memset_async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream) {
  return std::memset(reinterpret_cast<void*>(to), value, bytes), CUDA_SUCCESS;
}
CUresult copy_async(CUdeviceptr to, const void* from, size_t bytes, CUstream) {
  return std::memcpy(reinterpret_cast<void*>(to), from, bytes), CUDA_SUCCESS;
}
CUresult copy_back(void* to, CUdeviceptr from, size_t bytes, CUstream) {
  return std::memcpy(to, reinterpret_cast<void*>(from), bytes), CUDA_SUCCESS;
}
CUresult ipc_get(CUipcMemHandle* handle, CUdeviceptr address) {
  std::memset(handle, 1, sizeof *handle);
  return std::memcpy(handle, &address, sizeof address), CUDA_SUCCESS;
}
CUresult ipc_open(CUdeviceptr* address, CUipcMemHandle handle, unsigned) {
  fake().book.ipc_opens++;
  return std::memcpy(address, &handle, sizeof *address), CUDA_SUCCESS;
}
CUresult ipc_close(CUdeviceptr) { return fake().book.ipc_closes++, CUDA_SUCCESS; }

// --- streams, events, graphs

CUresult stream_create(CUstream* stream, unsigned) {
  std::lock_guard lock(fake().mutex);
  return *stream = new CUstream_st{fake().next_id++, current()}, CUDA_SUCCESS;
}
CUresult stream_destroy(CUstream stream) { return delete stream, CUDA_SUCCESS; }
CUresult stream_synchronize(CUstream) {
  return refused("cuStreamSynchronize") ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}
CUresult stream_wait(CUstream stream, CUevent, unsigned flags) {
  std::lock_guard lock(fake().mutex);
  (flags == CU_EVENT_WAIT_EXTERNAL ? fake().book.external_waits : fake().book.stream_waits)++;
  CUstream_st& target = resolve(stream);
  if (flags == CU_EVENT_WAIT_EXTERNAL && target.graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (target.graph != nullptr) {
    target.last = {add_node(target.graph, false, target.last.data(), target.last.size())};
  }
  return CUDA_SUCCESS;
}
CUresult stream_id(CUstream stream, unsigned long long* id) {
  if (resolve(stream).graph != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;  // as the driver does
  return *id = resolve(stream).id, CUDA_SUCCESS;
}
// budget: the driver's signature
CUresult capture_info(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                      const CUgraphNode** last, size_t* count) {
  const CUstream_st& target = resolve(stream);
  *status = target.graph != nullptr ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  if (id != nullptr) *id = target.capture;
  if (graph != nullptr) *graph = target.graph;
  if (last != nullptr) *last = target.last.data();
  if (count != nullptr) *count = target.last.size();
  return CUDA_SUCCESS;
}
CUresult exchange_mode(CUstreamCaptureMode* mode) { return std::swap(*mode, t_mode), CUDA_SUCCESS; }
CUresult begin_capture(CUstream stream, CUstreamCaptureMode) {
  std::lock_guard lock(fake().mutex);
  stream->graph = new CUgraph_st();
  stream->capture = fake().next_id++;
  stream->last.clear();
  fake().captures++;
  return CUDA_SUCCESS;
}
CUresult end_capture(CUstream stream, CUgraph* graph) {
  std::lock_guard lock(fake().mutex);
  fake().captures--;
  return *graph = std::exchange(stream->graph, nullptr), CUDA_SUCCESS;
}
CUresult stream_query(CUstream) { return CUDA_SUCCESS; }
CUresult instantiate(CUgraphExec* exec, CUgraph, unsigned long long) { return *exec = nullptr, CUDA_SUCCESS; }
CUresult launch_graph(CUgraphExec, CUstream) { return CUDA_SUCCESS; }
CUresult destroy_graph(CUgraph) { return CUDA_SUCCESS; }
CUresult event_create(CUevent* event, unsigned) { return *event = new CUevent_st(), CUDA_SUCCESS; }
CUresult event_destroy(CUevent event) { return delete event, CUDA_SUCCESS; }
CUresult event_record(CUevent, CUstream) { return CUDA_SUCCESS; }
CUresult event_query(CUevent) {
  if (refused("cuEventQuery")) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return fake().hold ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}
CUresult event_synchronize(CUevent) {
  return refused("cuEventSynchronize") ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}
CUresult add_record(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count, CUevent) {
  std::lock_guard lock(fake().mutex);
  return *node = add_node(graph, true, after, count), CUDA_SUCCESS;
}
CUresult add_edges(CUgraph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!to[i]->after.insert(from[i]).second) return CUDA_ERROR_INVALID_VALUE;
    fake().book.record_edges += to[i]->record;
  }
  return CUDA_SUCCESS;
}
CUresult remove_edges(CUgraph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (to[i]->after.erase(from[i]) == 0) return CUDA_ERROR_INVALID_VALUE;
    fake().book.record_edges -= to[i]->record;
  }
  return CUDA_SUCCESS;
}

template <typename Function>
void* entry(Function* function) {
  return reinterpret_cast<void*>(function);
}

const std::map<std::string, void*>& entries() {
  static const std::map<std::string, void*>& all = *new std::map<std::string, void*>{
      {"cuInit", entry(init)}, {"cuDriverGetVersion", entry(driver_version)}, {"cuGetErrorName", entry(error_name)},
      {"cuGetErrorString", entry(error_string)}, {"cuDeviceGet", entry(device_get)},
      {"cuDeviceGetCount", entry(device_count)}, {"cuDeviceGetAttribute", entry(device_attribute)},
      {"cuDeviceGetPCIBusId", entry(bus_id)}, {"cuDeviceCanAccessPeer", entry(can_access)},
      {"cuDevicePrimaryCtxRetain", entry(retain)}, {"cuDevicePrimaryCtxRelease", entry(release)},
      {"cuCtxPushCurrent", entry(push)}, {"cuCtxPopCurrent", entry(pop)}, {"cuCtxGetCurrent", entry(get_current)},
      {"cuCtxGetDevice", entry(current_device)}, {"cuCtxEnablePeerAccess", entry(enable_peer)},
      {"cuLibraryLoadData", entry(load_data)}, {"cuLibraryUnload", entry(unload)},
      {"cuLibraryGetKernel", entry(get_kernel)}, {"cuKernelGetFunction", entry(get_function)},
      {"cuFuncLoad", entry(function_load)}, {"cuFuncGetAttribute", entry(function_attribute)},
      {"cuLaunchKernel", entry(launch)}, {"cuMemAlloc", entry(mem_alloc)}, {"cuMemFree", entry(mem_free)},
      {"cuMemHostAlloc", entry(host_alloc)}, {"cuMemFreeHost", entry(host_free)},
      {"cuMemHostGetDevicePointer", entry(device_pointer)}, {"cuMemsetD8Async", entry(memset_async)},
      {"cuMemcpyHtoDAsync", entry(copy_async)}, {"cuMemcpyDtoHAsync", entry(copy_back)},
      {"cuStreamQuery", entry(stream_query)}, {"cuGraphInstantiateWithFlags", entry(instantiate)},
      {"cuGraphLaunch", entry(launch_graph)}, {"cuGraphDestroy", entry(destroy_graph)},
      {"cuIpcGetMemHandle", entry(ipc_get)}, {"cuIpcOpenMemHandle", entry(ipc_open)},
      {"cuIpcCloseMemHandle", entry(ipc_close)}, {"cuStreamCreate", entry(stream_create)},
      {"cuStreamDestroy", entry(stream_destroy)}, {"cuStreamSynchronize", entry(stream_synchronize)},
      {"cuStreamWaitEvent", entry(stream_wait)}, {"cuStreamGetId", entry(stream_id)},
      {"cuStreamGetCaptureInfo", entry(capture_info)}, {"cuThreadExchangeStreamCaptureMode", entry(exchange_mode)},
      {"cuStreamBeginCapture", entry(begin_capture)}, {"cuStreamEndCapture", entry(end_capture)},
      {"cuEventCreate", entry(event_create)}, {"cuEventDestroy", entry(event_destroy)},
      {"cuEventRecord", entry(event_record)}, {"cuEventQuery", entry(event_query)},
      {"cuEventSynchronize", entry(event_synchronize)}, {"cuGraphAddEventRecordNode", entry(add_record)},
      {"cuGraphAddDependencies", entry(add_edges)}, {"cuGraphRemoveDependencies", entry(remove_edges)},
  };
  return all;
}

}  // namespace

extern "C" {

Book* fake_cuda_book() { return &fake().book; }
void fake_cuda_hide(const char* name) { fake().hidden.insert(name); }
void fake_cuda_hold_work(int hold) { fake().hold = hold != 0; }

CUresult cuGetProcAddress_v2(const char* name, void** function, int, cuuint64_t,
                             CUdriverProcAddressQueryResult* result) {
  const auto found = entries().find(name);
  const bool known = found != entries().end() && !fake().hidden.contains(name);
  *function = known ? found->second : nullptr;
  if (result != nullptr) *result = known ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return known ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // extern "C"
