#include "service/launch_gate.h"

#include <algorithm>
#include <utility>

namespace talaria {

LaunchGate& LaunchGate::instance() {
  static LaunchGate& gate = *new LaunchGate();  // never destroyed: engines may outlive static destructors
  return gate;
}

void LaunchGate::enter(std::shared_ptr<GateMember> member) {
  collect();
  std::lock_guard lock(mutex_);
  live_.push_back(std::move(member));
}

void LaunchGate::retire(std::shared_ptr<GateMember> member) {
  {
    std::lock_guard lock(mutex_);
    std::erase(live_, member);
    retired_.push_back(std::move(member));
  }
  collect();
}

void LaunchGate::collect() {
  // Somebody launching means work in flight, so there is nothing to wait for: the next chance will do.
  std::unique_lock launches(gate_, std::try_to_lock);
  if (!launches.owns_lock()) return;
  std::vector<std::shared_ptr<GateMember>> doomed;
  {
    std::lock_guard lock(mutex_);
    const bool quiet = std::ranges::all_of(live_, [](const auto& member) { return member->idle(); }) &&
                       std::ranges::all_of(retired_, [](const auto& member) { return member->finished(); });
    if (quiet) doomed.swap(retired_);
  }
  doomed.clear();  // while launches are still held off
}

size_t LaunchGate::retired() {
  std::lock_guard lock(mutex_);
  return retired_.size();
}

}  // namespace talaria
