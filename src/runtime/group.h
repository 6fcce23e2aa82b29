// Group: what one thread has started between ncclGroupStart and the matching ncclGroupEnd.
//
// Thread-local by the API's definition. Communicators are made side by side; operations are bound per communicator and
// handed to the engines together, so that one thread can drive many ranks.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "runtime/call_check.h"
#include "runtime/communicator.h"
#include "runtime/init_job.h"

namespace talaria {

class Group {
 public:
  // The calling thread's group.
  static Group& current();

  void start() { ++depth_; }
  // kInProgress if communicators are being made in the background; operations are not.
  Status end();
  bool open() const { return depth_ > 0; }
  // kInvalidArgument for a non-blocking communicator among blocking ones, or the other way round.
  Status add(InitJob job);
  Status add(Communicator& comm, const Call& call);
  // The first error inside an open group makes its end fail and drops everything queued.
  void poison(Status status) {
    if (error_.ok()) error_ = status;
  }

 private:
  static Status run_calls(const CallList& calls);
  Status admit(bool blocking);

  int depth_ = 0;
  Status error_;
  std::optional<bool> blocking_;  // as the first one added; all are alike
  std::vector<InitJob> inits_;
  CallList calls_;
};

}  // namespace talaria
