// Tells through the log what is set and what is wrong with it. Thread-safe.
#pragma once

#include "base/config.h"

namespace talaria {

// read_config(), and these lines, each once per process: at WARN malformed lines of files, numbers that do not parse,
// NCCL_ and TALARIA_ variables that nobody knows with the nearest name that is known; at INFO (ENV) what is set, by
// whom, and whether it has an effect.
Config read_reported_config();

}  // namespace talaria
