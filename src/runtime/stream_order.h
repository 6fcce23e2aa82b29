// StreamOrder: operations of one communicator run in issue order, whatever streams they are given.
//
// Eager: an event is recorded behind every launch and waited for only when the stream changes. Within one capture the
// same with an event of its own. Between graphs and eager launches: a graph begins with one external wait for the eager
// event and carries one node that records it behind the graph's last operation, off the stream's own path, so a graph
// costs two small nodes whatever its length. Used by one thread at a time, except reached().
#pragma once

#include <atomic>
#include <cstdint>

#include "base/status.h"
#include "service/cuda_memory.h"

namespace talaria {

// A caller's stream at the time of a call.
struct StreamState {
  CUstream stream;
  uint64_t id;          // eager: unlike the handle, never reused; in a capture: the handle
  bool capturing;
  uint64_t capture;     // identity of the capture, if capturing
};
Result<StreamState> stream_state(const CudaDriver& driver, CUstream stream);

class StreamOrder {
 public:
  StreamOrder() = default;
  static Result<StreamOrder> create(ContextPtr context, bool order_graphs);
  StreamOrder(StreamOrder&& other) noexcept;
  StreamOrder& operator=(StreamOrder&& other) noexcept;

  Status before_launch(const StreamState& state);
  Status after_launch(const StreamState& state);
  // Waits for everything launched, replays included if graphs are ordered.
  Status drain();
  // Has everything drain() waits for ended?
  bool reached() const { return launched_.reached(); }
  bool ever_captured() const { return ever_captured_.load(std::memory_order_relaxed); }

 private:
  Status record_in_graph(const StreamState& state);

  ContextPtr context_;
  CudaEvent launched_;   // behind the last eager launch, or the last operation of a replayed graph
  CudaEvent captured_;   // inside the capture in progress
  bool order_graphs_ = false;
  bool any_ = false;     // something was launched eagerly
  uint64_t stream_ = 0;  // of the last eager launch
  uint64_t capture_ = 0;         // last capture, and in it:
  uint64_t capture_stream_ = 0;  //   stream of the last launch
  CUgraphNode record_ = nullptr; //   the node that records launched_
  CUgraphNode recorded_after_ = nullptr;  // the only node before it, if there is just one
  std::atomic<bool> ever_captured_{false};
};

}  // namespace talaria
