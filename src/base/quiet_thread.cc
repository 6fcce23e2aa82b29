#include "base/quiet_thread.h"

#include <signal.h>

#include <system_error>
#include <utility>

#include "base/os.h"

namespace talaria {

Result<std::thread> start_quiet_thread(const char* name, std::function<void()> body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  std::string reason;
  try {
    thread = std::thread([name, body = std::move(body)] {
      set_thread_name(name);
      body();
    });
  } catch (const std::system_error& error) {
    reason = error.what();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!reason.empty()) return fail(Code::kSystem, "cannot start the thread {}: {}", name, reason);
  return thread;
}

}  // namespace talaria
