#include "runtime/wait_report.h"

#include <algorithm>

#include "base/log.h"
#include "schedule/collective.h"

namespace talaria {
namespace {

constexpr size_t kMostLines = 32;  // per rank: groups may have thousands of sends

std::string describe(const Work& work) {
  return fmt::format("operation {} ({})", work.sequence, name_of(static_cast<Operation>(work.operation)));
}

}  // namespace

std::string describe(const HostWait& wait) {
  return fmt::format("operation {} ({}), waiting for rank {} at step {} of round {}", wait.sequence,
                     name_of(static_cast<Operation>(wait.operation)), wait.peer, wait.step, wait.round);
}

void log_pending(uint32_t rank, std::span<const HostWait> waits, std::span<const Work> works) {
  if (!log_enabled(LogLevel::kWarn, kLogAll)) return;
  uint64_t last = 0;
  for (size_t i = 0; i < waits.size(); ++i) {
    last = std::max(last, waits[i].sequence);
    if (i < kMostLines) log_warn("pending on rank {}: {}", rank, describe(waits[i]));
  }
  size_t behind = 0;
  for (const Work& work : works) {
    if (work.sequence <= last) continue;
    if (++behind < kMostLines) log_warn("pending on rank {}: {}, queued", rank, describe(work));
  }
  if (waits.size() > kMostLines || behind >= kMostLines) {
    log_warn("pending on rank {}: {} waits and {} queued operations in all", rank, waits.size(), behind);
  }
}

}  // namespace talaria
