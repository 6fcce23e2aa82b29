// LaunchGate: the process-wide rule for giving GPU memory back.
//
// Closing a CUDA IPC mapping and freeing memory wait for the whole GPU and stall every launch of the process meanwhile,
// so two processes that do it while kernels wait for each other never end. Hence what an engine leaves behind is
// *retired* here and destroyed only when no engine of the process has work in flight, with launches held off.
// One instance per process. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace talaria {

// What the gate asks of an engine's machine state.
class GateMember {
 public:
  virtual ~GateMember() = default;
  // No work in flight, and none can start without passing the gate. May be called from any thread.
  virtual bool idle() const = 0;
  // The same after the engine is gone.
  virtual bool finished() const = 0;
};

class LaunchGate {
 public:
  static LaunchGate& instance();

  // Held while work is enqueued. Shared between all launching threads.
  [[nodiscard]] std::shared_lock<std::shared_mutex> launching() { return std::shared_lock(gate_); }
  // The same, not owned if launches are held off now.
  [[nodiscard]] std::shared_lock<std::shared_mutex> try_launching() {
    return std::shared_lock(gate_, std::try_to_lock);
  }

  void enter(std::shared_ptr<GateMember> member);
  // Takes over what the engine leaves behind, and destroys it as soon as the rule allows.
  void retire(std::shared_ptr<GateMember> member);
  // Destroys what is retired if nothing is in flight now. Called when engines come and go.
  void collect();
  size_t retired();  // for tests

 private:
  std::shared_mutex gate_;  // always taken before mutex_
  std::mutex mutex_;
  std::vector<std::shared_ptr<GateMember>> live_;
  std::vector<std::shared_ptr<GateMember>> retired_;
};

}  // namespace talaria
