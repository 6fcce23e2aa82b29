// Threads of the library: named, and deaf to the application's signals.
#pragma once

#include <functional>
#include <thread>

#include "base/status.h"

namespace talaria {

// Runs `body` in a thread of that name (at most 15 characters). kSystem if the system gives none.
Result<std::thread> start_quiet_thread(const char* name, std::function<void()> body);

}  // namespace talaria
