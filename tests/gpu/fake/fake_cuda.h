// A CUDA driver without a GPU: libcuda.so.1 that keeps book of what it is asked, for tests of the host side.
//
// Memory is host memory, kernels do not run, work ends at once unless the test holds it. It is strict where the real
// driver is: a call that is unsafe during another thread's global capture fails unless the thread is in relaxed mode;
// a launch needs the stream's context to be current.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>
#include <vector>

namespace talaria::fake_cuda {

struct Launch {
  std::string kernel;
  CUstream stream;
  unsigned grid, block;
  std::vector<std::byte> parameter;  // the first 4 KB behind the kernel's only parameter
};

// Everything since reset().
struct Book {
  std::vector<Launch> launches;
  int allocations = 0;      // device and pinned, ever
  int live_allocations = 0;
  int context_depth = 0;    // pushes not yet popped, over all threads
  int stream_waits = 0;     // cuStreamWaitEvent, default flags
  int external_waits = 0;   // the same inside a capture, external
  int record_nodes = 0;
  int record_edges = 0;     // edges into record nodes that stand
  int ipc_opens = 0, ipc_closes = 0;
  std::vector<std::string> refused;  // calls that failed because of a capture or a wrong context
};

}  // namespace talaria::fake_cuda

// What the test steers. Exported by the fake library.
extern "C" {
talaria::fake_cuda::Book* fake_cuda_book();
void fake_cuda_hide(const char* name);        // an entry point this driver does not have
void fake_cuda_hold_work(int hold);           // events are not reached while 1
}
