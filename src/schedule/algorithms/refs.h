// Short names for the Refs that algorithms write again and again.
#pragma once

#include "schedule/step.h"

namespace talaria {

inline Ref own_input(uint8_t flags = 0) { return Ref{Place::kInput, flags, 0, 0, 0}; }
inline Ref own_output() { return Ref{Place::kOutput, 0, 0, 0, 0}; }
// Next message from `peer`, or next slot to it: waited for and signalled.
inline Ref inbox(uint32_t peer, uint8_t fifo, uint8_t flags = 0) {
  return Ref{Place::kInbox, static_cast<uint8_t>(kWait | kSignal | flags), fifo, 0, peer};
}
inline Ref peer_input(uint32_t peer, uint8_t fifo, uint8_t flags = 0) {
  return Ref{Place::kPeerInput, static_cast<uint8_t>(kWait | kSignal | flags), fifo, 0, peer};
}
inline Ref peer_output(uint32_t peer, uint8_t fifo) {
  return Ref{Place::kPeerOutput, static_cast<uint8_t>(kWait | kSignal), fifo, 0, peer};
}
inline Ref ready_input(uint32_t peer) { return Ref{Place::kReady, kSignal, 0, 0, peer}; }
inline Ref ready_output(uint32_t peer) { return Ref{Place::kReady, kSignal, 1, 0, peer}; }
inline Ref signal_done(uint32_t peer) { return Ref{Place::kDone, kSignal, 0, 0, peer}; }
inline Ref wait_done(uint32_t peer) { return Ref{Place::kDone, kWait, 0, 0, peer}; }

}  // namespace talaria
