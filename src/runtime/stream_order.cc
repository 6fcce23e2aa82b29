#include "runtime/stream_order.h"

#include <utility>

namespace talaria {

Result<StreamState> stream_state(const CudaDriver& driver, CUstream stream) {
  StreamState state{stream, 0, false, 0};
  unsigned long long id = 0;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t capture = 0;
  TRY(driver.stream_get_capture_info(stream, &status, &capture, nullptr, nullptr, nullptr));
  if (status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
    return fail(Code::kInvalidUsage, "the stream's capture has been invalidated; end it before using the stream");
  }
  state.capturing = status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  // The driver refuses the id of a capturing stream; its handle stays its own until the capture ends.
  if (!state.capturing) TRY(driver.stream_get_id(stream, &id));
  state.id = state.capturing ? reinterpret_cast<uint64_t>(stream) : id;
  state.capture = capture;
  return state;
}

Result<StreamOrder> StreamOrder::create(ContextPtr context, bool order_graphs) {
  StreamOrder order;
  order.launched_ = TRY(CudaEvent::create(context));
  order.captured_ = TRY(CudaEvent::create(context));
  order.context_ = std::move(context);
  order.order_graphs_ = order_graphs;
  return order;
}

StreamOrder::StreamOrder(StreamOrder&& other) noexcept { *this = std::move(other); }

StreamOrder& StreamOrder::operator=(StreamOrder&& other) noexcept {
  context_ = std::move(other.context_);
  launched_ = std::move(other.launched_);
  captured_ = std::move(other.captured_);
  order_graphs_ = other.order_graphs_;
  any_ = other.any_;
  stream_ = other.stream_;
  capture_ = other.capture_;
  capture_stream_ = other.capture_stream_;
  record_ = other.record_;
  recorded_after_ = other.recorded_after_;
  ever_captured_ = other.ever_captured_.load();
  return *this;
}

Status StreamOrder::before_launch(const StreamState& state) {
  const CudaDriver& driver = context_->driver();
  if (!state.capturing) {
    // A replay may have recorded the event on a stream we do not know.
    const bool replays = order_graphs_ && ever_captured();
    if (!replays && (!any_ || stream_ == state.id)) return Status();
    return driver.stream_wait_event(state.stream, launched_.get(), CU_EVENT_WAIT_DEFAULT);
  }
  if (state.capture != capture_) {
    return order_graphs_ ? driver.stream_wait_event(state.stream, launched_.get(), CU_EVENT_WAIT_EXTERNAL) : Status();
  }
  if (capture_stream_ == state.id) return Status();
  return driver.stream_wait_event(state.stream, captured_.get(), CU_EVENT_WAIT_DEFAULT);
}

Status StreamOrder::after_launch(const StreamState& state) {
  const CudaDriver& driver = context_->driver();
  if (!state.capturing) {
    any_ = true;
    stream_ = state.id;
    return driver.event_record(launched_.get(), state.stream);
  }
  if (state.capture != capture_) record_ = nullptr;
  capture_ = state.capture;
  capture_stream_ = state.id;
  ever_captured_.store(true, std::memory_order_relaxed);
  TRY(driver.event_record(captured_.get(), state.stream));
  return order_graphs_ ? record_in_graph(state) : Status();
}

// The record node hangs on the launch just captured; the stream goes on without it. A later launch of the capture moves
// the node's edge: edges of a graph under capture may be removed, nodes may not.
Status StreamOrder::record_in_graph(const StreamState& state) {
  const CudaDriver& driver = context_->driver();
  CUstreamCaptureStatus status;
  cuuint64_t capture = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* last = nullptr;
  size_t lasts = 0;
  TRY(driver.stream_get_capture_info(state.stream, &status, &capture, &graph, &last, &lasts));
  const CUgraphNode after = lasts == 1 ? last[0] : nullptr;
  if (record_ == nullptr) {
    TRY(driver.graph_add_event_record(&record_, graph, last, lasts, launched_.get()));
  } else {
    for (size_t i = 0; i < lasts; ++i) TRY(driver.graph_add_dependencies(graph, last + i, &record_, 1));
    if (recorded_after_ != nullptr) TRY(driver.graph_remove_dependencies(graph, &recorded_after_, &record_, 1));
  }
  recorded_after_ = after;
  return Status();
}

Status StreamOrder::drain() {
  ContextGuard guard(*context_);
  TRY(guard.status());
  RelaxedCapture relaxed(context_->driver());
  return context_->driver().event_synchronize(launched_.get());
}

}  // namespace talaria
