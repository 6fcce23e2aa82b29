// Time that processes can compare.
#pragma once

#include <time.h>

namespace talaria::test {

inline double now_usec() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

}  // namespace talaria::test
