// Group: what one thread has started between ncclGroupStart and the matching ncclGroupEnd.
//
// Thread-local by the API's definition. Inits of a group run side by side, each on a thread of its own (children of
// one parent take turns, in the order of the calls, which is the same on all ranks); operations are
// bound per communicator and handed to the engines together, so that one thread can drive many ranks.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/call_check.h"
#include "runtime/communicator.h"

namespace talaria {

struct InitJob {
  Communicator** out;
  std::unique_ptr<Communicator> comm;
  // Makes it ready, or leaves it as it is where the rank gets none.
  std::function<Status(Communicator&)> make;
  Communicator* parent = nullptr;  // null: made by unique ids
};

class Group {
 public:
  // The calling thread's group.
  static Group& current();

  void start() { ++depth_; }
  Status end();
  bool open() const { return depth_ > 0; }
  void add(InitJob job) { inits_.push_back(std::move(job)); }
  void add(Communicator& comm, const Call& call) { calls_.emplace_back(&comm, call); }
  // The first error inside an open group makes its end fail and drops everything queued.
  void poison(Status status) {
    if (error_.ok()) error_ = status;
  }

 private:
  static Status run_inits(std::vector<InitJob> jobs);
  static Status run_calls(const CallList& calls);

  int depth_ = 0;
  Status error_;
  std::vector<InitJob> inits_;
  CallList calls_;
};

}  // namespace talaria
