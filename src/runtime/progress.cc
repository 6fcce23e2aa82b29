#include "runtime/progress.h"

#include <utility>

#include "base/quiet_thread.h"

namespace talaria {

void Progress::begin() {
  const std::lock_guard lock(mutex_);
  elsewhere_ = true;
  running_.store(true, std::memory_order_release);
}

bool Progress::end() {
  const std::lock_guard lock(mutex_);
  elsewhere_ = false;
  running_.store(false, std::memory_order_release);
  running_.notify_all();
  return abandoned_;
}

bool Progress::abandon() {
  const std::lock_guard lock(mutex_);
  abandoned_ = elsewhere_;
  return abandoned_;
}

Status Progress::run(const char* thread_name, std::function<void()> body) {
  const std::lock_guard lock(thread_mutex_);
  if (closed_) return fail(Code::kInvalidArgument, "the communicator has been destroyed by another thread");
  if (thread_.joinable()) thread_.join();  // what ran before has ended, or is about to
  running_.store(true, std::memory_order_release);
  Result<std::thread> started = start_quiet_thread(thread_name, std::move(body));
  if (started.ok()) thread_ = started.value();
  else end();
  return started.status();
}

void Progress::close() {
  const std::lock_guard lock(thread_mutex_);
  closed_ = true;
  if (thread_.joinable()) thread_.join();
}

}  // namespace talaria
