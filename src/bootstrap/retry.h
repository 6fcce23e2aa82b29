// When and how often a connection is tried again: NCCL_SOCKET_RETRY_CNT pauses that grow by
// NCCL_SOCKET_RETRY_SLEEP_MSEC each.
#pragma once

#include "base/config.h"

namespace talaria {

// All the pauses together.
double retry_budget_usec(const Config& config);
// After attempt 1, 2, ... Pauses begin short, because usually the other side is only milliseconds late, and reach
// NCCL's after a few attempts.
int retry_pause_msec(const Config& config, int attempt);
// Is this an errno that may be another one later?
bool may_succeed_later(int error);

}  // namespace talaria
