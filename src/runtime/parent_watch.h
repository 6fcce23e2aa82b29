// ParentWatch: while a child communicator is being made, hears what becomes of the parent's ranks.
//
// A rank of the child may wait for one that has learnt of a fault in the parent, and so will never come. Nobody in the
// child could tell it; the parent's ring does, to those who listen. A thread, because init waits in many places.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "bootstrap/stop_flag.h"
#include "runtime/child.h"

namespace talaria {

class Communicator;

class ParentWatch {
 public:
  // Sets `stop` once a fault of the parent has settled. All outlive the object. `seat` is this rank's in the child.
  ParentWatch(const Communicator& parent, const Seat& seat, StopFlag& stop);
  ~ParentWatch() { end(); }
  ParentWatch(const ParentWatch&) = delete;
  ParentWatch& operator=(const ParentWatch&) = delete;

  // From here on `stop` is left alone.
  void end();
  // What the parent has heard, or hears within `usec`.
  std::optional<Departed> await_fault(double usec) const;

 private:
  void run(StopFlag& stop);

  const Communicator& parent_;
  const Seat& seat_;
  std::mutex mutex_;  // guards over_
  std::condition_variable change_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace talaria
