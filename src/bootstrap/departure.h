// Departure: how a rank stopped taking part in its communicator.
#pragma once

#include <cstdint>
#include <string>

namespace talaria {

// A fault is one after which the communicator cannot go on.
enum class Departure : uint32_t {
  kPresent,   // it takes part
  kDied,      // its connection closed without a goodbye, or its process ended
  kAborted,
  kMismatch,  // it met another call than its own
  kFailed,    // it gave up an operation half done
  kMissed,    // it left, but others still waited for it
  kAbsent,    // it did not come, or not take part in init, in time (TALARIA_INIT_TIMEOUT)
  kLeft,      // it destroyed its communicator, which harms nobody who does not wait for it
  kRevoked,   // it ended its operations on purpose, and starts no more
};
constexpr bool is_fault(Departure how) { return how != Departure::kPresent && how != Departure::kLeft; }

struct Departed {
  uint32_t rank;
  Departure how;
};
// "rank 3 aborted"
std::string describe(const Departed& departed);

}  // namespace talaria
