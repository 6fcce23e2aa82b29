#include "bootstrap/root_thread.h"

#include <signal.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/os.h"
#include "bootstrap/root.h"

namespace talaria {
namespace {

struct RootThread {
  Root root;
  int stop;
};

void* run_root(void* argument) {
  const std::unique_ptr<RootThread> thread(static_cast<RootThread*>(argument));
  set_thread_name("talaria-root");
  thread->root.run(thread->stop);
  return nullptr;
}

Result<pthread_t> start_root(UniqueFd listener, const Secret& secret, int stop) {
  auto argument = std::unique_ptr<RootThread>(new RootThread{Root(std::move(listener), secret), stop});
  // The application's signals are for its own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const int error = pthread_create(&thread, nullptr, run_root, argument.get());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return fail(Code::kSystem, "Bootstrap: cannot start the root's thread: {}", strerror(error));
  argument.release();
  return thread;
}

}  // namespace

Result<std::unique_ptr<OwnedRoot>> OwnedRoot::start(UniqueFd listener, const Secret& secret) {
  std::unique_ptr<OwnedRoot> owned(new OwnedRoot);
  owned->stop_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!owned->stop_.valid()) return fail(Code::kSystem, "Bootstrap: eventfd failed: {}", strerror(errno));
  owned->thread_ = TRY(start_root(std::move(listener), secret, owned->stop_.get()));
  return owned;
}

OwnedRoot::~OwnedRoot() {
  if (thread_ == pthread_t{}) return;
  eventfd_write(stop_.get(), 1);
  pthread_join(thread_, nullptr);
}

Status start_detached_root(UniqueFd listener, const Secret& secret) {
  const pthread_t thread = TRY(start_root(std::move(listener), secret, -1));
  pthread_detach(thread);
  return Status();
}

}  // namespace talaria
