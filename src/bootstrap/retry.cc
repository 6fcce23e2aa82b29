#include "bootstrap/retry.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>

namespace talaria {

double retry_budget_usec(const Config& config) {
  const double count = std::clamp<double>(config.socket_retry_count, 0, 1e4);
  return std::clamp<double>(config.socket_retry_sleep_msec, 0, 1e6) * 1000 * count * (count + 1) / 2;
}

int retry_pause_msec(const Config& config, int attempt) {
  const int64_t linear = std::clamp<int64_t>(config.socket_retry_sleep_msec, 1, 10000) * attempt;
  return static_cast<int>(std::min<int64_t>(linear, 1ll << std::min(attempt, 13)));
}

bool may_succeed_later(int error) {
  constexpr int kTransient[] = {ECONNREFUSED, ECONNRESET, ETIMEDOUT, EPIPE, EHOSTUNREACH, ENETUNREACH, ENETDOWN,
                                EAGAIN, EADDRNOTAVAIL, EINTR, EMFILE, ENFILE};
  return std::ranges::find(kTransient, error) != std::end(kTransient);
}

}  // namespace talaria
