#include <cuda.h>
#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

#include "device.h"
#include "fatal.h"

namespace talaria::bench {
namespace {

// The driver's functions that we use, as symbols of libcuda.so.1. Null handle: no driver here.
struct Driver {
  void* handle;
  decltype(&cuInit) init;
  decltype(&cuGetErrorString) error_string;
  decltype(&cuDeviceGetCount) device_count;
  decltype(&cuDeviceGet) device_get;
  decltype(&cuDeviceGetName) device_name;
  decltype(&cuDeviceGetAttribute) device_attribute;
  decltype(&cuDevicePrimaryCtxRetain) retain_context;
  decltype(&cuCtxSetCurrent) set_current;
  decltype(&cuMemAlloc) allocate;
  decltype(&cuMemFree) release;
  decltype(&cuMemcpyHtoD) upload;
  decltype(&cuMemcpyDtoH) download;
  decltype(&cuMemsetD8) fill;
  decltype(&cuStreamCreate) create_stream;
  decltype(&cuStreamDestroy) destroy_stream;
  decltype(&cuStreamQuery) query_stream;
  decltype(&cuStreamSynchronize) synchronize;
  decltype(&cuStreamBeginCapture) begin_capture;
  decltype(&cuStreamEndCapture) end_capture;
  decltype(&cuGraphInstantiateWithFlags) instantiate;
  decltype(&cuGraphDestroy) destroy_graph;
  decltype(&cuGraphLaunch) launch_graph;
  decltype(&cuGraphExecDestroy) destroy_executable;
  decltype(&cuGraphUpload) upload_graph;
};

template <typename Function>
void find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  if (function == nullptr) fatal("the CUDA driver has no {}: it is too old", name);
}

// <cuda.h> renames functions to their newest form by macro; the names below are the symbols behind those.
Driver load_driver() {
  Driver driver{};
  void* const handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return driver;
  driver.handle = handle;
  find(handle, "cuInit", driver.init);
  find(handle, "cuGetErrorString", driver.error_string);
  find(handle, "cuDeviceGetCount", driver.device_count);
  find(handle, "cuDeviceGet", driver.device_get);
  find(handle, "cuDeviceGetName", driver.device_name);
  find(handle, "cuDeviceGetAttribute", driver.device_attribute);
  find(handle, "cuDevicePrimaryCtxRetain", driver.retain_context);
  find(handle, "cuCtxSetCurrent", driver.set_current);
  find(handle, "cuMemAlloc_v2", driver.allocate);
  find(handle, "cuMemFree_v2", driver.release);
  find(handle, "cuMemcpyHtoD_v2", driver.upload);
  find(handle, "cuMemcpyDtoH_v2", driver.download);
  find(handle, "cuMemsetD8_v2", driver.fill);
  find(handle, "cuStreamCreate", driver.create_stream);
  find(handle, "cuStreamDestroy_v2", driver.destroy_stream);
  find(handle, "cuStreamQuery", driver.query_stream);
  find(handle, "cuStreamSynchronize", driver.synchronize);
  find(handle, "cuStreamBeginCapture_v2", driver.begin_capture);
  find(handle, "cuStreamEndCapture", driver.end_capture);
  find(handle, "cuGraphInstantiateWithFlags", driver.instantiate);
  find(handle, "cuGraphDestroy", driver.destroy_graph);
  find(handle, "cuGraphLaunch", driver.launch_graph);
  find(handle, "cuGraphExecDestroy", driver.destroy_executable);
  find(handle, "cuGraphUpload", driver.upload_graph);
  return driver;
}

const Driver& driver() {
  static const Driver loaded = load_driver();
  return loaded;
}

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* text = nullptr;
  if (driver().error_string(result, &text) != CUDA_SUCCESS) text = "unknown error";
  fatal("{} failed: {} ({})", what, text, static_cast<int>(result));
}

CUdeviceptr address(const std::byte* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

// A GPU through its primary context, which the library under test shares with us. The context is never released: other
// ranks of this process may use it.
class GpuDevice final : public Device {
 public:
  GpuDevice(int ordinal, bool null_stream) : ordinal_(ordinal) {
    check(driver().device_get(&device_, ordinal), "cuDeviceGet");
    check(driver().retain_context(&context_, device_), "cuDevicePrimaryCtxRetain");
    make_current();
    if (!null_stream) check(driver().create_stream(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  }
  ~GpuDevice() override {
    make_current();
    drop_graph();
    if (stream_ != nullptr) check(driver().destroy_stream(stream_), "cuStreamDestroy");
  }
  void make_current() override { check(driver().set_current(context_), "cuCtxSetCurrent"); }
  std::byte* allocate(size_t bytes) override {
    make_current();
    CUdeviceptr memory = 0;
    check(driver().allocate(&memory, bytes), fmt::format("cuMemAlloc of {} bytes", bytes).c_str());
    return reinterpret_cast<std::byte*>(memory);
  }
  void release(std::byte* memory) override {
    make_current();
    check(driver().release(address(memory)), "cuMemFree");
  }
  void upload(std::byte* to, const std::byte* from, size_t bytes) override {
    make_current();
    if (bytes > 0) check(driver().upload(address(to), from, bytes), "cuMemcpyHtoD");
    settle();
  }
  void download(std::byte* to, const std::byte* from, size_t bytes) override {
    make_current();
    if (bytes > 0) check(driver().download(to, address(from), bytes), "cuMemcpyDtoH");
  }
  void fill(std::byte* to, unsigned char value, size_t bytes) override {
    make_current();
    if (bytes > 0) check(driver().fill(address(to), value, bytes), "cuMemsetD8");
    settle();
  }
  std::byte* host_view(std::byte*) override { return nullptr; }
  cudaStream_t stream() override { return reinterpret_cast<cudaStream_t>(stream_); }
  bool idle() override {
    const CUresult result = driver().query_stream(stream_);
    if (result == CUDA_ERROR_NOT_READY) return false;
    check(result, "cuStreamQuery");
    return true;
  }
  bool has_graphs() const override { return stream_ != nullptr; }
  void begin_capture() override {
    make_current();
    check(driver().begin_capture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
  }
  void end_capture() override {
    make_current();
    check(driver().end_capture(stream_, &captured_), "cuStreamEndCapture");
  }
  void make_graph() override {
    make_current();
    check(driver().instantiate(&executable_, captured_, 0), "cuGraphInstantiate");
    check(driver().destroy_graph(captured_), "cuGraphDestroy");
    check(driver().upload_graph(executable_, stream_), "cuGraphUpload");
  }
  void drop_graph() override {
    if (executable_ != nullptr) check(driver().destroy_executable(executable_), "cuGraphExecDestroy");
    executable_ = nullptr;
  }
  void launch_graph() override { check(driver().launch_graph(executable_, stream_), "cuGraphLaunch"); }
  std::string description() const override {
    char name[128] = "";
    int bus = 0;
    int slot = 0;
    check(driver().device_name(name, sizeof(name), device_), "cuDeviceGetName");
    check(driver().device_attribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device_), "cuDeviceGetAttribute");
    check(driver().device_attribute(&slot, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, device_), "cuDeviceGetAttribute");
    return fmt::format("device {:2} [{:02x}:{:02x}] {}", ordinal_, bus, slot, name);
  }

 private:
  // Copies and fills may return before they have ended, and our stream does not wait for the default stream.
  void settle() { check(driver().synchronize(nullptr), "cuStreamSynchronize"); }
  int ordinal_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  CUgraph captured_ = nullptr;
  CUgraphExec executable_ = nullptr;
};

}  // namespace

int visible_gpus() {
  const char* const device = std::getenv("TALARIA_DEVICE");
  if (device != nullptr && std::string_view(device) == "host") return 0;
  int count = 0;
  if (driver().handle == nullptr || driver().init(0) != CUDA_SUCCESS) return 0;
  return driver().device_count(&count) == CUDA_SUCCESS ? count : 0;
}

std::unique_ptr<Device> make_gpu_device(int ordinal, bool null_stream) {
  return std::make_unique<GpuDevice>(ordinal, null_stream);
}

}  // namespace talaria::bench
