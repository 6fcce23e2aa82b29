// StopFlag: ends the waits of one rank's bootstrap from outside, by any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "bootstrap/departure.h"

namespace talaria {

class StopFlag {
 public:
  // By the user: the others are told that this rank aborted.
  void stop() { stopped_.store(true); }
  // Because of what became of another rank: the others are told that. The first reason stands.
  void stop_because(const Departed& departed) {
    uint64_t none = 0;
    reason_.compare_exchange_strong(none, uint64_t{departed.rank} << 32 | static_cast<uint32_t>(departed.how));
    stopped_.store(true);
  }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  std::optional<Departed> reason() const {
    const uint64_t packed = reason_.load();
    if (packed == 0) return std::nullopt;
    return Departed{static_cast<uint32_t>(packed >> 32), static_cast<Departure>(packed & UINT32_MAX)};
  }
  // The user's wish stays, a reason goes.
  void forget_reason(const std::atomic<bool>& by_user) {
    reason_ = 0;
    stopped_ = false;
    if (by_user) stopped_ = true;
  }

 private:
  std::atomic<bool> stopped_{false};
  std::atomic<uint64_t> reason_{0};  // the rank in the high half, Departure in the low; 0 is none
};

}  // namespace talaria
