// Vector clocks and access logs: which accesses are ordered by flags, whatever the interleaving that happened to run.
//
// Every stream of every lane of every rank is a thread, and so is each rank's user. A flag's store carries its writer's
// clock, the wait for it takes the clock over. Two accesses to the same bytes race unless one's time is in the other's
// clock, or both read. So a missing wait is found even in a run in which the timing happened to be kind.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace talaria::sim {

using ThreadId = uint32_t;

class VectorClock {
 public:
  uint32_t now(ThreadId thread) const { return thread < times_.size() ? times_[thread] : 0; }
  bool covers(ThreadId thread, uint32_t time) const { return now(thread) >= time; }
  void tick(ThreadId thread) {
    if (times_.size() <= thread) times_.resize(thread + 1);
    ++times_[thread];
  }
  void join(const VectorClock& other) {
    if (times_.size() < other.times_.size()) times_.resize(other.times_.size());
    for (size_t i = 0; i < other.times_.size(); ++i) times_[i] = std::max(times_[i], other.times_[i]);
  }

 private:
  std::vector<uint32_t> times_;
};

// A thread with its clock, as accesses see it.
struct Observer {
  ThreadId thread;
  const VectorClock& clock;
};

// The accesses to one buffer since its user gave it away.
class AccessLog {
 public:
  // False when an earlier access conflicts with this one and is not ordered before it.
  bool record(uint64_t begin, uint64_t end, bool write, const Observer& who) {
    if (begin == end) return true;
    for (const Access& old : accesses_) {
      if (old.begin >= end || begin >= old.end || !(write || old.write)) continue;
      if (!who.clock.covers(old.thread, old.time)) return false;
    }
    accesses_.push_back(Access{begin, end, who.thread, who.clock.now(who.thread), write});
    return true;
  }
  bool all_before(const VectorClock& clock) const {
    return std::all_of(accesses_.begin(), accesses_.end(),
                       [&](const Access& access) { return clock.covers(access.thread, access.time); });
  }
  void clear() { accesses_.clear(); }

 private:
  struct Access {
    uint64_t begin, end;
    ThreadId thread;
    uint32_t time;
    bool write;
  };
  std::vector<Access> accesses_;
};

}  // namespace talaria::sim
