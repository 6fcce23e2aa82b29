// Launcher: turns the submissions of a group into kernel launches.
//
// Works of ranks that share a GPU and a stream go into one launch as long as they need the same kernel; ranks that wait
// for each other thus run side by side. A repeated call allocates nothing. Used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "runtime/device_state.h"
#include "runtime/engine.h"

namespace talaria {

class Launcher {
 public:
  // One rank's part of a group.
  struct Part {
    DeviceState* state;
    StreamState stream;
    std::span<const Work> works;
    size_t next = 0;     // first work not yet launched
    bool taken = false;  // belongs to a launch group already
  };

  void begin() { parts_.clear(); }
  Status add(DeviceState& state, CUstream stream, std::span<const Work> works);
  Status launch_all();

 private:
  std::vector<Part> parts_;  // kept for its capacity
};

}  // namespace talaria
