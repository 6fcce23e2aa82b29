// RemoteMover: the data half of one step on the CPU when some of its places lie in other processes.
//
// Sources of other processes are fetched into scratch, which stays in the second-level cache, and results are written
// to other processes while they are in it. A copy between a place here and a place there needs no scratch.
#pragma once

#include <cstddef>
#include <memory>

#include "engine/host/move.h"

namespace talaria {

// Addresses as their owners know them; the owner of a place is the process it lies in, 0: this one.
struct RemoteMovement {
  Movement movement;
  SmallList<int> source_owners;  // one per source
  SmallList<int> sink_owners;    // one per sink
};

// The process that could not be reached, and why (an errno); error 0: none.
struct Unreached {
  int process = 0;
  int error = 0;
};

class RemoteMover {
 public:
  // Like move(). When a process is not reached some sinks may have been written, all of the result's bytes or fewer.
  Unreached move(const RemoteMovement& remote);

 private:
  std::byte* scratch(size_t bytes);

  std::unique_ptr<std::byte[]> scratch_;
  size_t scratch_bytes_ = 0;
};

}  // namespace talaria
