#include "runtime/parent_watch.h"

#include <algorithm>
#include <chrono>

#include "base/os.h"
#include "base/quiet_thread.h"
#include "runtime/communicator.h"

namespace talaria {
namespace {

constexpr std::chrono::milliseconds kLookEvery(2);

}  // namespace

ParentWatch::ParentWatch(const Communicator& parent, const Seat& seat, StopFlag& stop) : parent_(parent), seat_(seat) {
  Result<std::thread> thread = start_quiet_thread("talaria-watch", [this, &stop] { run(stop); });
  if (thread.ok()) thread_ = thread.value();
}

void ParentWatch::run(StopFlag& stop) {
  std::unique_lock lock(mutex_);
  while (!change_.wait_for(lock, kLookEvery, [this] { return over_; })) {
    const auto fault = parent_.hear_fault(true);
    if (!fault) continue;
    const auto found = std::ranges::find(seat_.origins, fault->rank);
    const auto rank = static_cast<uint32_t>(found - seat_.origins.begin());
    // Of a rank that is not of the child its members know nothing: this one gives up.
    const bool of_child = rank < seat_.nranks;
    return stop.stop_because(of_child ? Departed{rank, fault->how} : Departed{seat_.rank, Departure::kFailed});
  }
}

void ParentWatch::end() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  change_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::optional<Departed> ParentWatch::await_fault(double usec) const {
  const double until = now_usec() + usec;
  for (;;) {
    const auto fault = parent_.hear_fault(false);
    if (fault || parent_.released() || now_usec() > until) return fault;
    std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace talaria
